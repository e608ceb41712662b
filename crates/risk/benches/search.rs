//! How long a search takes over half a million tools.

use std::hint::black_box;
use std::time::Duration;

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

const QUERIES: &[&str] = &[
    "execute",
    "exceute",
    "create payment",
    "e",
    "get file",
    "delte user",
    "read file of the workspace",
    "paymnt",
    "get_invoice_kaaaa",
    "zzzzqqqq",
    "calendr event",
    "server 17",
];

fn searches(criterion: &mut Criterion) {
    let index = index();
    let mut group = criterion.benchmark_group("search in 500,000 tools");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    for query in QUERIES {
        group.bench_function(*query, |bencher| {
            bencher.iter(|| index.search(black_box(query), 500));
        });
    }
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
