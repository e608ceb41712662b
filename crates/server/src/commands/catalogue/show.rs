//! A record for people and as JSON. Its text is anybody's, and is cleaned before it is printed.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sluice_control::catalogue::{CatalogueRecord, Report};
use sluice_risk::catalogue::registry::clean;
use sluice_risk::grade::Looked;
use sluice_risk::recommended;

/// Text on one line that a terminal shows as it is.
pub(super) fn plain(text: &str) -> String {
    clean(text, 400)
}

pub(super) fn text(record: &CatalogueRecord) -> String {
    let entry = &record.entry;
    let mut text = format!("{} ({})\n", plain(&entry.title), plain(&entry.owner_name));
    let _ = writeln!(text, "{}", plain(&entry.summary));
    let version = entry.version.as_deref().map(|version| format!(", version {}", plain(version)));
    let _ = writeln!(
        text,
        "Identity: {} (as of the record of {}{})",
        entry.identity,
        plain(&entry.as_of),
        version.unwrap_or_default()
    );
    if let Some(lifecycle) = entry.lifecycle {
        let note = entry.lifecycle_note.as_deref().map(|note| format!(": {}", plain(note)));
        let _ = writeln!(text, "Lifecycle: {lifecycle}{}", note.unwrap_or_default());
    }
    for (name, value) in [("Address", &entry.upstream_url), ("Command", &entry.stdio_command)] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {}", plain(value));
        }
    }
    let _ = writeln!(text, "From: {}", plain(&entry.source));
    let grade = record.grade();
    let _ = writeln!(text, "\nGrade {}", grade.sentence());
    for one in &grade.signals {
        let points = one.points.map_or_else(|| "–".to_owned(), |points| points.to_string());
        let _ = writeln!(text, "  {points:>2} of {:>2}  {:<31} {}", one.of, one.signal, one.words);
    }
    if !entry.tools.is_empty() {
        let _ = writeln!(text, "\nTools");
    }
    for definition in &entry.tools {
        let looked = Looked::at(definition);
        let poisoned = if looked.findings > 0 { "  (looks poisoned)" } else { "" };
        let _ = writeln!(
            text,
            "  {:<8} {:<11} {}{poisoned}",
            looked.rating.severity,
            looked.rating.category,
            plain(&definition.name)
        );
    }
    if !record.changes.is_empty() {
        let _ = writeln!(text, "\nChanges");
    }
    for change in &record.changes {
        let _ = writeln!(
            text,
            "  {}  {:<8} {}",
            change.at.format("%Y-%m-%d %H:%M UTC"),
            change.kind,
            plain(&change.what)
        );
    }
    text.trim_end().to_owned()
}

pub(super) fn value(record: &CatalogueRecord) -> Value {
    let entry = &record.entry;
    let tools: Vec<Value> = entry
        .tools
        .iter()
        .map(|definition| {
            let looked = Looked::at(definition);
            json!({"name": definition.name, "category": looked.rating.category, "severity": looked.rating.severity,
                "reasons": looked.rating.reasons, "findings": looked.findings,
                "rule": recommended(&definition.name, looked.rating.category).fragment})
        })
        .collect();
    let changes: Vec<Value> = record
        .changes
        .iter()
        .map(|change| json!({"at": change.at, "kind": change.kind, "what": change.what}))
        .collect();
    json!({"name": entry.owner_name, "slug": entry.slug, "title": entry.title, "summary": entry.summary,
        "version": entry.version, "identity": entry.identity, "as_of": entry.as_of, "source": entry.source,
        "lifecycle": entry.lifecycle, "lifecycle_note": entry.lifecycle_note,
        "upstream_url": entry.upstream_url, "stdio_command": entry.stdio_command,
        "grade": record.grade(), "tools": tools, "changes": changes})
}

/// A reader's report.
pub(super) fn report(report: &Report) -> Value {
    json!({"id": report.id, "at": report.at, "page": report.page, "text": report.text,
        "contact": report.contact})
}
