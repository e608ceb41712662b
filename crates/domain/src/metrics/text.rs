//! The list as Prometheus reads it, and as people do.

use std::fmt::Write as _;

use super::{ALL, Family, Sample};

/// `/metrics`, in Prometheus' text format.
pub fn exposition() -> String {
    let mut out = String::with_capacity(16 * 1024);
    for family in ALL {
        let meta = family.meta();
        let mut told = false;
        family.samples(&mut |sample| {
            if !told {
                // What help texts hold needs no escaping; a test says so.
                let _ = writeln!(out, "# HELP {} {}", meta.name, meta.help);
                let _ = writeln!(out, "# TYPE {} {}", meta.name, meta.kind.as_str());
                told = true;
            }
            line(&mut out, *family, sample);
        });
    }
    out
}

fn line(out: &mut String, family: &dyn Family, sample: Sample<'_>) {
    let meta = family.meta();
    let mut labels: Vec<String> = meta
        .labels
        .iter()
        .zip(sample.values)
        .map(|(label, value)| format!("{}=\"{value}\"", label.name))
        .collect();
    match sample.bound {
        Some(bound) if bound.is_infinite() => labels.push("le=\"+Inf\"".to_owned()),
        Some(bound) => labels.push(format!("le=\"{bound}\"")),
        None => {}
    }
    let _ = write!(out, "{}{}", meta.name, sample.suffix);
    if !labels.is_empty() {
        let _ = write!(out, "{{{}}}", labels.join(","));
    }
    let _ = writeln!(out, " {}", sample.value);
}

/// The table of `/docs/metrics`, in Markdown.
pub fn page() -> String {
    let mut out =
        String::from("| metric | kind | labels | what it tells |\n| --- | --- | --- | --- |\n");
    for family in ALL {
        let meta = family.meta();
        let labels: Vec<String> =
            meta.labels.iter().map(|label| format!("`{}`", label.name)).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let (name, kind) = (meta.name, meta.kind.as_str());
        let _ = writeln!(out, "| `{name}` | {kind} | {labels} | {} |", meta.help);
    }
    out.push_str("\nThe values that labels can have:\n\n| label | values |\n| --- | --- |\n");
    let mut seen = Vec::new();
    for label in ALL.iter().flat_map(|family| family.meta().labels) {
        if seen.contains(label) {
            continue;
        }
        seen.push(*label);
        let values: Vec<String> = label.values.iter().map(|value| format!("`{value}`")).collect();
        let _ = writeln!(out, "| `{}` | {} |", label.name, values.join(", "));
    }
    out
}
