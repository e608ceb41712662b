//! How long a search takes over half a million tools.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use sluice_risk::catalogue::{IndexBuilder, Texts, WordIndex};

const TOOLS: usize = 500_000;
const VERBS: &[&str] = &[
    "get", "list", "create", "update", "delete", "search", "send", "execute", "read", "write",
    "fetch", "export", "import", "cancel", "approve", "sync", "start", "stop", "merge", "publish",
];
const NOUNS: &[&str] = &[
    "file",
    "note",
    "issue",
    "payment",
    "invoice",
    "user",
    "message",
    "table",
    "record",
    "project",
    "page",
    "event",
    "contact",
    "report",
    "branch",
    "secret",
    "bucket",
    "query",
    "ticket",
    "order",
    "image",
    "model",
    "job",
    "deployment",
    "calendar",
    "channel",
    "comment",
    "customer",
    "document",
    "folder",
];

/// Names and descriptions as servers write them, with a rare word each so that the vocabulary is large.
fn index() -> WordIndex {
    let mut builder = IndexBuilder::default();
    for n in 0..TOOLS {
        let (verb, noun) = (VERBS[n % VERBS.len()], NOUNS[n / VERBS.len() % NOUNS.len()]);
        let rare = rare(n);
        let name = format!("{verb}_{noun}_{rare}");
        let description =
            format!("{verb}s a {noun} of the {rare} workspace and returns its fields as text");
        let also = format!("Server {}", n / 25);
        builder.add(&Texts { name: &name, also: &also, description: &description });
    }
    builder.finish()
}

/// A word that few share.
fn rare(n: usize) -> String {
    let mut left = n / 7;
    let mut word = String::from("k");
    for _ in 0..4 {
        let letter = u8::try_from(left % 26).unwrap_or_default();
        word.push(char::from(b'a' + letter));
        left /= 26;
    }
    word
}

/// Thousands of queries of every kind, by kind; the same in each run.
fn queries() -> Vec<(&'static str, Vec<String>)> {
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
    let common: Vec<String> = VERBS.iter().chain(NOUNS).map(|word| (*word).to_owned()).collect();
    let two: Vec<String> = VERBS
        .iter()
        .flat_map(|verb| NOUNS.iter().map(move |noun| format!("{verb} {noun}")))
        .collect();
    let typed = two.iter().flat_map(|words| (1..words.len()).map(|end| words[..end].to_owned()));
    let slips = two.iter().enumerate().map(|(n, words)| slipped(words, n));
    let names = (0..500).map(|n| {
        let at = n * 997;
        format!("{} {} {}", VERBS[at % 20], NOUNS[at / 20 % 30], rare(at))
    });
    let prose = (0..200).map(|n| {
        format!("a {} of the workspace and returns its fields as text {}", two[n * 3], rare(n))
    });
    let glued = (0..200)
        .map(|n| (0..8).map(|k| two[(n * 7 + k * 31) % two.len()].replace(' ', "")).collect());
    let wrong = (0..200).map(|n| {
        let eight: Vec<String> =
            (0..8).map(|k| slipped(&common[(n + k * 5) % common.len()], n + k)).collect();
        eight.join(" ")
    });
    let single = (0..100).map(|n| {
        let eight: Vec<&str> = (0..8).map(|k| letters[(n + k * 3) % 26].as_str()).collect();
        eight.join(" ")
    });
    vec![
        ("one letter", letters.clone()),
        ("two letters", pairs.collect()),
        ("a common word", common.clone()),
        ("two common words", two.clone()),
        ("half typed", typed.step_by(7).collect()),
        ("with a slip", slips.collect()),
        ("a whole name", names.collect()),
        ("a sentence of common words", prose.collect()),
        ("one very long word", glued.collect()),
        ("eight words with slips", wrong.collect()),
        ("eight single letters", single.collect()),
    ]
}

/// Two letters swapped, one left out, or another one, in turn.
fn slipped(words: &str, n: usize) -> String {
    let mut letters: Vec<char> = words.chars().collect();
    let at = 1 + n % letters.len().saturating_sub(2).max(1);
    match n % 3 {
        0 if at + 1 < letters.len() => letters.swap(at, at + 1),
        1 => drop(letters.remove(at)),
        _ => letters[at] = 'w',
    }
    letters.into_iter().collect()
}

/// Median, 95th part of a hundred and worst by kind of query; of each query the best of three, so that what
/// else the machine does does not count.
#[expect(clippy::print_stdout, reason = "a bench's figures are for standard output")]
fn spread(index: &WordIndex) {
    println!("{} MB for {TOOLS} tools", index.bytes() / 1_000_000);
    let row = |kind: &str, mut times: Vec<Duration>| {
        times.sort_unstable();
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
        let (median, p95, worst) = (at(50), at(95), at(100));
        println!(
            "{kind:<28}{:>6} queries  median {median:>9.2?}  p95 {p95:>9.2?}  worst {worst:>9.2?}",
            times.len()
        );
    };
    let mut all = Vec::new();
    for (kind, queries) in queries() {
        let mut times = Vec::new();
        for query in &queries {
            let once = || {
                let began = Instant::now();
                black_box(index.search(black_box(query), 500));
                began.elapsed()
            };
            times.push(once().min(once()).min(once()));
        }
        all.extend_from_slice(&times);
        row(kind, times);
    }
    row("all", all);
}

fn searches(criterion: &mut Criterion) {
    let index = index();
    spread(&index);
    let mut group = criterion.benchmark_group("search in 500,000 tools");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    for (kind, queries) in queries() {
        group.bench_function(kind, |bencher| {
            let mut next = queries.iter().cycle();
            bencher.iter(|| index.search(black_box(next.next().map_or("", |it| it)), 500));
        });
    }
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
