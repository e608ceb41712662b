//! `cargo xtask risk-report`: how well the classifier and the scan for poisoned definitions do on
//! tools with known labels. The labelled sets are test data from outside the project; without them the
//! report says so and passes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;
use sluice_domain::{Category, ToolDefinition};
use sluice_risk::Rating;

use crate::disagreements::Disagreements;

/// The figures that CI holds; each a little below what is reached today.
const FLOORS: &[(&str, f64)] = &[
    ("read-only accuracy", 0.96),
    ("read-only accuracy, leave one vendor out", 0.94),
    ("five categories accuracy", 0.90),
    ("poison precision", 0.98),
    ("poison recall", 0.45),
];
/// Only of the set whose disagreements are written down.
const PLAIN: (&str, f64) = ("five categories accuracy, labels that are not noise", 0.97);
const DANGEROUS_MISSES: f64 = 0.03;
const FALSE_ALARMS: f64 = 0.02;
const VENDORS_ALARMS: f64 = 0.005;

/// Runs the report: `[--dir PATH] [--check] [--misses]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/risk/dev"));
    let (mut check, mut misses) = (false, false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--dir" => dir = PathBuf::from(rest.next().context("--dir needs a path")?),
            "--check" => check = true,
            "--misses" => misses = true,
            other => bail!(
                "unknown argument `{other}`; usage: risk-report [--dir PATH] [--check] [--misses]"
            ),
        }
    }
    if !dir.is_dir() {
        say("risk-report: no labelled tools at ../shared/risk/dev (or --dir); nothing measured");
        return Ok(());
    }
    let (annotated, catalogue) =
        (lines(&dir, "annotated.jsonl")?, lines(&dir, "policylayer.jsonl")?);
    let spoken = Spoken::of(annotated.iter().chain(&catalogue));
    let mut figures = BTreeMap::new();
    let mut notes = Notes { misses, written: Disagreements::read()? };
    let known = notes.written.is_of("annotated", annotated.len())
        && notes.written.is_of("policylayer", catalogue.len());
    read_only(&annotated, &spoken, &mut notes, &mut figures);
    categories(&catalogue, &spoken, known, &mut notes, &mut figures);
    if known {
        say(format!("Disagreements with a label: {}", notes.written.told()));
    }
    let definitions = (annotated.iter().map(|row| definition(row, "name", true)))
        .chain(catalogue.iter().map(|row| definition(row, "tool", true)));
    poison(&lines(&dir, "poison.jsonl")?, misses, &mut figures);
    vendors_alarms(definitions, &mut figures);
    let faults = if known { notes.written.faults() } else { Vec::new() };
    if check { hold(&figures, faults) } else { Ok(()) }
}

#[expect(clippy::print_stdout, reason = "a report is for standard output")]
fn say(line: impl AsRef<str>) {
    println!("{}", line.as_ref());
}

fn lines(dir: &Path, file: &str) -> anyhow::Result<Vec<Value>> {
    let path = dir.join(file);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let number = |(at, line): (usize, &str)| {
        let mut row: Value =
            serde_json::from_str(line).with_context(|| format!("line {} of {file}", at + 1))?;
        row["line"] = Value::from(at + 1);
        Ok(row)
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(number).collect()
}

fn line_of(row: &Value) -> u64 {
    row.get("line").and_then(Value::as_u64).unwrap_or_default()
}

/// What is told of disagreements.
struct Notes {
    misses: bool,
    written: Disagreements,
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn definition(row: &Value, name: &str, annotations: bool) -> ToolDefinition {
    let present = |key: &str| row.get(key).filter(|it| !it.is_null()).cloned();
    let words = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    ToolDefinition {
        name: text(row, name).to_owned(),
        title: words("title"),
        description: words("description"),
        input_schema: present("inputSchema"),
        output_schema: present("outputSchema"),
        annotations: present("annotations").filter(|_| annotations),
    }
}

/// Right and all.
#[derive(Default, Clone, Copy)]
struct Tally {
    right: u32,
    all: u32,
}

impl Tally {
    fn add(&mut self, right: bool) {
        self.right += u32::from(right);
        self.all += 1;
    }

    fn share(self) -> f64 {
        f64::from(self.right) / f64::from(self.all.max(1))
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({} of {})", self.share(), self.right, self.all)
    }
}

/// Which vendors use a word in names and at the head of descriptions.
///
/// The rules have no fitted parameters, so leaving a vendor out means: a word that no other vendor of the
/// set uses counts as one we would not have known, and the tool as not recognised.
struct Spoken<'a>(BTreeMap<String, BTreeSet<&'a str>>);

impl<'a> Spoken<'a> {
    fn of(rows: impl Iterator<Item = &'a Value>) -> Self {
        let mut words: BTreeMap<String, BTreeSet<&'a str>> = BTreeMap::new();
        for row in rows {
            let head = text(row, "description").split_whitespace().take(25);
            let name =
                if text(row, "name").is_empty() { text(row, "tool") } else { text(row, "name") };
            for word in std::iter::once(name).chain(head).flat_map(parts) {
                words.entry(word).or_default().insert(text(row, "server"));
            }
        }
        Self(words)
    }

    /// Some deciding word is used by another vendor, or parameters decided.
    fn known_without(&self, vendor: &str, rating: &Rating) -> bool {
        rating.reasons.iter().any(|reason| {
            reason.place.starts_with("args")
                || parts(&reason.quote).any(|word| {
                    self.0.get(&word).is_some_and(|vendors| vendors.iter().any(|it| *it != vendor))
                })
        })
    }
}

/// Lower-case words, split at humps and at whatever is not a letter.
fn parts(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in text.chars() {
        if !c.is_alphabetic() || small && c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// Vendors' own `readOnlyHint`, which the classifier does not get to see.
fn read_only(
    rows: &[Value],
    spoken: &Spoken<'_>,
    notes: &mut Notes,
    figures: &mut BTreeMap<&'static str, f64>,
) {
    let mut all = Tally::default();
    let (mut dangerous, mut left_out, mut with_hints) =
        (Tally::default(), Tally::default(), Tally::default());
    let mut vendors: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut matrix = [[0_u32; 2]; 2];
    for row in rows {
        let blanket = row
            .get("server_flags")
            .and_then(Value::as_array)
            .is_some_and(|flags| flags.iter().any(|flag| flag == "blanket_annotations"));
        let Some(label) = row.get("label_read_only").and_then(Value::as_bool).filter(|_| !blanket)
        else {
            continue;
        };
        let rating = sluice_risk::classify(&definition(row, "name", false));
        let reads = rating.category == Category::Read;
        all.add(reads == label);
        left_out.add((reads && spoken.known_without(text(row, "server"), &rating)) == label);
        let hinted = sluice_risk::classify(&definition(row, "name", true));
        with_hints.add((hinted.category == Category::Read) == label);
        vendors.entry(text(row, "server")).or_default().add(reads == label);
        matrix[usize::from(!label)][usize::from(!reads)] += 1;
        if !label {
            dangerous.add(reads);
        }
        if reads != label {
            let label = if label { "read-only" } else { "not read-only" };
            miss(row, ("annotated", "name"), label, &rating, notes);
        }
    }
    let mean = vendors.values().map(|it| it.share()).sum::<f64>()
        / f64::from(u32::try_from(vendors.len().max(1)).unwrap_or(u32::MAX));
    say("Read-only or not, against vendors' annotations (hidden from the classifier)");
    say(format!("  {:<16}{:>10}{:>14}", "label \\ rated", "read-only", "not read-only"));
    for (name, row) in ["read-only", "not read-only"].iter().zip(matrix) {
        say(format!("  {name:<16}{:>10}{:>14}", row[0], row[1]));
    }
    say(format!(
        "  accuracy {all}; dangerous misses {dangerous}; mean of {} vendors {mean:.3}",
        vendors.len()
    ));
    say(format!(
        "  leave one vendor out {left_out}; with the annotations shown to it {with_hints}"
    ));
    figures.insert("read-only accuracy", all.share());
    figures.insert("read-only accuracy, leave one vendor out", left_out.share());
    figures.insert("dangerous misses", dangerous.share());
    if notes.misses {
        for (vendor, tally) in vendors.iter().filter(|(_, it)| it.right < it.all) {
            say(format!("  {vendor}: {tally}"));
        }
    }
}

fn categories(
    rows: &[Value],
    spoken: &Spoken<'_>,
    known: bool,
    notes: &mut Notes,
    figures: &mut BTreeMap<&'static str, f64>,
) {
    let (mut all, mut left_out, mut plain) = (Tally::default(), Tally::default(), Tally::default());
    let mut matrix = [[0_u32; 5]; 5];
    for row in rows {
        let Ok(label) = text(row, "category").parse::<Category>() else { continue };
        let rating = sluice_risk::classify(&definition(row, "tool", false));
        all.add(rating.category == label);
        let familiar = spoken.known_without(text(row, "server"), &rating);
        left_out.add(if familiar { rating.category == label } else { label == Category::Write });
        matrix[label as usize][rating.category as usize] += 1;
        if !known || !notes.written.is_noise("policylayer", line_of(row)) {
            plain.add(rating.category == label);
        }
        if rating.category != label {
            miss(row, ("policylayer", "tool"), label.as_str(), &rating, notes);
        }
    }
    say("Five categories, against a public catalogue's labels");
    let head: Vec<String> = Category::ALL.iter().map(|it| format!("{:>12}", it.as_str())).collect();
    say(format!("  {:<14}{}", "label \\ rated", head.concat()));
    for (label, row) in Category::ALL.iter().zip(matrix) {
        let cells: Vec<String> = row.iter().map(|cell| format!("{cell:>12}")).collect();
        say(format!("  {:<14}{}", label.as_str(), cells.concat()));
    }
    say(format!("  accuracy {all}; leave one vendor out {left_out}"));
    figures.insert("five categories accuracy", all.share());
    if known {
        say(format!("  accuracy against the labels that are not noise {plain}"));
        figures.insert(PLAIN.0, plain.share());
    }
}

fn miss(row: &Value, (file, name): (&str, &str), label: &str, rating: &Rating, notes: &mut Notes) {
    let written = notes.written.meet(file, line_of(row));
    if !notes.misses {
        return;
    }
    let written = written.map_or_else(
        || "nothing is written of it".to_owned(),
        |(verdict, why)| format!("{verdict}: {why}"),
    );
    let why: BTreeSet<String> =
        rating.reasons.iter().map(|it| format!("{}: {}", it.place, it.quote)).collect();
    let description: String =
        text(row, "description").split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = description.chars().take(110).collect();
    say(format!(
        "    {file} {}: {} / {} is {label}, rated {} ({}): {}\n        {start}\n        {written}",
        line_of(row),
        text(row, "server"),
        text(row, name),
        rating.category,
        rating.confidence,
        why.into_iter().collect::<Vec<_>>().join("; "),
    ));
}

fn poison(rows: &[Value], misses: bool, figures: &mut BTreeMap<&'static str, f64>) {
    let (mut precision, mut recall, mut alarms) =
        (Tally::default(), Tally::default(), Tally::default());
    for row in rows {
        let poisoned = row.get("label").and_then(Value::as_i64) == Some(1);
        let tool = ToolDefinition {
            name: "tool".to_owned(),
            title: None,
            description: Some(text(row, "text").to_owned()),
            input_schema: None,
            output_schema: None,
            annotations: None,
        };
        let found = sluice_risk::findings(&tool);
        let flagged = !found.is_empty();
        if flagged {
            precision.add(poisoned);
        }
        if poisoned {
            recall.add(flagged);
        } else {
            alarms.add(flagged);
        }
        if misses && flagged != poisoned {
            let start: String = text(row, "text")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(400)
                .collect();
            let why: Vec<String> =
                found.iter().map(|it| format!("{}: {}", it.kind, it.quote)).collect();
            say(format!(
                "    {} [{}] {}\n        {start}",
                if poisoned { "missed" } else { "false alarm" },
                text(row, "kind"),
                why.join("; ")
            ));
        }
    }
    say("Poisoned definitions");
    say(format!("  precision {precision}; recall {recall}; false alarms on benign texts {alarms}"));
    figures.insert("poison precision", precision.share());
    figures.insert("poison recall", recall.share());
    figures.insert("false alarms", alarms.share());
}

/// Definitions of vendors' own servers, which are taken to be honest.
fn vendors_alarms(
    definitions: impl Iterator<Item = ToolDefinition>,
    figures: &mut BTreeMap<&'static str, f64>,
) {
    let mut alarms = Tally::default();
    for tool in definitions {
        alarms.add(!sluice_risk::findings(&tool).is_empty());
    }
    say(format!("  whole definitions of vendors' servers with an alarm {alarms}"));
    figures.insert("alarms on vendors' definitions", alarms.share());
}

fn hold(figures: &BTreeMap<&'static str, f64>, faults: Vec<String>) -> anyhow::Result<()> {
    let mut broken = faults;
    let plain = Some(&PLAIN).filter(|it| figures.contains_key(it.0));
    for (name, floor) in FLOORS.iter().chain(plain) {
        let reached = figures.get(name).copied().unwrap_or_default();
        if reached < *floor {
            broken.push(format!("{name} is {reached:.3}, below {floor}"));
        }
    }
    for (name, ceiling) in [
        ("dangerous misses", DANGEROUS_MISSES),
        ("false alarms", FALSE_ALARMS),
        ("alarms on vendors' definitions", VENDORS_ALARMS),
    ] {
        let reached = figures.get(name).copied().unwrap_or(1.0);
        if reached > ceiling {
            broken.push(format!("{name} are {reached:.3}, above {ceiling}"));
        }
    }
    if broken.is_empty() {
        say("All figures hold.");
        return Ok(());
    }
    bail!("{}", broken.join("; "))
}
