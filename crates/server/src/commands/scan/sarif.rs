//! A scan as SARIF 2.1.0, which code scanning reads: a result for each tool that is rated above Low, each sign of
//! poison, each change and each server that was not read, on the line of the configuration file.

use std::path::Path;

use serde_json::{Value, json};
use sluice_domain::Severity;
use sluice_risk::catalogue::registry::clean;

use super::report::Report;
use super::servers::{Scanned, ScannedTool};

const RULES: &[(&str, &str, &str, &str)] = &[
    ("tool-critical", "A tool of critical severity can be used", "error", "9.0"),
    ("tool-high", "A tool of high severity can be used", "error", "7.0"),
    ("tool-medium", "A tool of medium severity can be used", "warning", "5.0"),
    ("poisoned-definition", "A tool's definition holds signs of hidden orders", "error", "9.5"),
    ("server-not-read", "A server's tools could not be read", "warning", "5.0"),
    ("changed-since-last-scan", "Something changed since the last scan", "warning", "5.0"),
];

pub(super) fn document(report: &Report) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, text, level, score)| {
            json!({"id": id, "shortDescription": {"text": text},
                "defaultConfiguration": {"level": level},
                "properties": {"security-severity": score, "tags": ["security", "mcp"]}})
        })
        .collect();
    let results: Vec<Value> = report
        .servers
        .iter()
        .flat_map(|(one, drift)| {
            let mut found: Vec<Value> =
                one.tools.iter().flat_map(|tool| of_tool(one, tool)).collect();
            if let Some(why) = &one.unread {
                found.push(result(
                    one,
                    "server-not-read",
                    None,
                    &format!("`{}` was not read: {}", clean(&one.name, 80), clean(why, 160)),
                ));
            }
            found.extend(drift.iter().map(|drift| {
                let of = drift.tool.as_deref().map(|tool| format!("`{}` of ", clean(tool, 80)));
                let text = format!(
                    "{}`{}`: {}",
                    of.unwrap_or_default(),
                    clean(&one.name, 80),
                    drift.words
                );
                result(one, "changed-since-last-scan", drift.tool.as_deref(), &text)
            }));
            found
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "sluice", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn of_tool(one: &Scanned, tool: &ScannedTool) -> Vec<Value> {
    let (name, rating) = (clean(&tool.name, 80), &tool.rating);
    let server = clean(&one.name, 80);
    let mut found = Vec::new();
    let rule = match rating.severity {
        Severity::Critical => Some("tool-critical"),
        Severity::High => Some("tool-high"),
        Severity::Medium => Some("tool-medium"),
        Severity::Low => None,
    };
    if let Some(rule) = rule {
        let why =
            rating.reasons.first().map(|it| format!(" ({}: “{}”)", it.cue, clean(&it.quote, 120)));
        let text = format!(
            "`{name}` of `{server}` is rated {}, {}{}",
            rating.category,
            rating.severity,
            why.unwrap_or_default()
        );
        found.push(result(one, rule, Some(&tool.name), &text));
    }
    found.extend(tool.findings.iter().map(|finding| {
        let text = format!(
            "The definition of `{name}` of `{server}` looks poisoned: {} in {}: “{}”",
            finding.kind,
            clean(&finding.place, 80),
            clean(&finding.quote, 160)
        );
        result(one, "poisoned-definition", Some(&tool.name), &text)
    }));
    found
}

fn result(one: &Scanned, rule: &str, tool: Option<&str>, text: &str) -> Value {
    let index = RULES.iter().position(|(id, ..)| *id == rule).unwrap_or_default();
    let print = format!("{rule}/{}/{}", one.name, tool.unwrap_or_default());
    json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": RULES[index].2,
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&one.file)},
            "region": {"startLine": one.line},
        }}],
        "partialFingerprints": {"serverAndTool/v1": print},
    })
}

/// A file of this folder relative to it, any other as a `file:` address.
fn uri(file: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let relative = if file.is_absolute() { file.strip_prefix(&here).ok() } else { Some(file) };
    match relative {
        Some(relative) => {
            let parts =
                relative.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
            let parts = parts.filter(|part| part != ".");
            let escape = |part: String| {
                part.replace('%', "%25").replace(' ', "%20").replace('#', "%23").replace('?', "%3F")
            };
            parts.map(escape).collect::<Vec<_>>().join("/")
        }
        None => url::Url::from_file_path(file).map(String::from).unwrap_or_default(),
    }
}
