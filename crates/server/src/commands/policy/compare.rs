//! `sluice policy compare`: what one document would do otherwise than another to calls of a log.

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use sluice_policy::{
    PastServer, RecordedCall, SimulatedCall, SimulatedOutcome, Simulation, SimulationComparison,
    ToolFacts, compare as outcomes,
};

use super::{Answer, FINE, many, one_input, policy, pretty, read, usage};

/// Changed calls that are told one by one; `--json` has all.
const TOLD: usize = 20;

/// A line of the log's export (`calls.ndjson`), or one written by hand; what else it holds is not read.
#[derive(Debug, Deserialize)]
struct Line {
    at: DateTime<Utc>,
    tool: Option<String>,
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    grant_id: String,
    #[serde(default)]
    grant_label: String,
    session: Option<String>,
    client_name: Option<String>,
}

impl Line {
    /// A call of a tool; the tool counts as known and unchanged, as for `eval`.
    fn call(self) -> Option<RecordedCall> {
        let named = !self.grant_id.is_empty();
        Some(RecordedCall {
            at: self.at,
            tool: self.tool?,
            facts: ToolFacts::KNOWN,
            arguments: self.arguments.map(|raw| raw.get().to_owned()).filter(|text| text != "null"),
            grant: if named { self.grant_id } else { self.grant_label.clone() },
            grant_label: self.grant_label,
            session: self.session,
            client_name: self.client_name,
        })
    }
}

fn calls(file: &Path) -> Result<Vec<RecordedCall>, Answer> {
    let bytes = read(file)?;
    let shown = file.display();
    let text = std::str::from_utf8(&bytes).map_err(|_| usage(format!("{shown} is not UTF-8")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(index, line)| {
        let line = serde_json::from_str::<Line>(line);
        line.map_err(|error| usage(format!("{shown}, line {}: {error}", index + 1)))
    });
    let lines: Vec<Line> = read.collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter_map(Line::call).collect())
}

/// Compares two documents on the calls of a log.
pub(super) fn compare(
    before: &Path,
    after: &Path,
    log: &Path,
    json: bool,
) -> Result<Answer, Answer> {
    one_input([before, after, log])?;
    let old = policy(before, &read(before)?)?;
    let new = policy(after, &read(after)?)?;
    let calls = calls(log)?;
    let found = outcomes(&old, &new, &calls, &PastServer::default());
    let text = if json {
        pretty(&serde_json::to_value(&found).unwrap_or_default())
    } else {
        said(&found, &calls)
    };
    Ok(Answer { text, code: FINE })
}

fn sum(name: &str, of: &Simulation) -> String {
    let mut text = format!(
        "{name} would have refused {} of {}, parked {}, and let {} through; {} cannot be told.\n",
        of.refused,
        many(of.total, "call"),
        of.parked,
        of.allowed,
        of.cannot_tell
    );
    for (what, tallies) in [("rule", &of.rules), ("grant", &of.grants)] {
        for tally in tallies {
            writeln!(text, "    {what} {}: {}", tally.name, many(tally.calls, "call")).ok();
        }
    }
    text
}

fn side(call: &SimulatedCall) -> String {
    let word = match call.outcome {
        SimulatedOutcome::Allow => "allow",
        SimulatedOutcome::Deny => "deny",
        SimulatedOutcome::Approve => "approve",
        SimulatedOutcome::CannotTell => "cannot tell",
    };
    if call.rule.is_empty() { word.to_owned() } else { format!("{word} by {}", call.rule) }
}

fn said(found: &SimulationComparison, calls: &[RecordedCall]) -> String {
    let mut text = sum("The first", &found.before) + &sum("The second", &found.after);
    writeln!(
        text,
        "The second stops {} that the first let through, and lets {} through that it stopped; \
         {} cannot be told.",
        found.stricter, found.looser, found.cannot_tell
    )
    .ok();
    for one in found.changed.iter().take(TOLD) {
        let Some(call) = calls.get(one.index) else { continue };
        let (at, tool, grant) = (call.at.to_rfc3339(), &call.tool, &call.grant_label);
        let (before, after) = (side(&one.before), side(&one.after));
        writeln!(text, "    {at} {tool} ({grant}): {before} -> {after}").ok();
    }
    if found.changed.len() > TOLD {
        writeln!(text, "    and {} more", found.changed.len() - TOLD).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::policy::USAGE;

    const OPEN: &str = r#"{"version":"1","default":"allow"}"#;
    const TIGHT: &str = r#"{"version":"1","default":"deny","tools":{
        "run":{"limits":[{"counter":"run","window":"minute","max":2}]},
        "pay":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}]}}}"#;
    const LOG: &str = r#"{"at":"2026-11-30T12:00:00Z","tool":"run","arguments":{"code":{"$type":"string"}},"grant_label":"a","outcome":"allowed"}
{"at":"2026-11-30T12:00:01Z","tool":"run","arguments":{},"grant_label":"a"}

{"at":"2026-11-30T12:00:02Z","tool":"run","arguments":{},"grant_label":"a"}
{"at":"2026-11-30T12:00:03Z","tool":null,"method":"initialize"}
{"at":"2026-11-30T12:00:04Z","tool":"pay","arguments":{"amount":{"$type":"number"}},"grant_label":"b"}
{"at":"2026-11-30T12:00:05Z","tool":"rm","arguments":{},"grant_label":"b"}
"#;

    fn answer(result: Result<Answer, Answer>) -> (String, u8) {
        let (Ok(answer) | Err(answer)) = result;
        (answer.text, answer.code)
    }

    #[test]
    fn two_documents_are_compared_on_a_log_and_what_it_does_not_keep_is_not_guessed() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            file
        };
        let (open, tight) = (place("open.json", OPEN), place("tight.json", TIGHT));
        let log = place("calls.ndjson", LOG);
        let (text, code) = answer(compare(&open, &tight, &log, false));
        assert_eq!(code, FINE, "{text}");
        let second = "The second would have refused 2 of 5 calls, parked 0, and let 2 through; 1 cannot be told.";
        assert!(text.contains(second), "{text}");
        assert!(text.contains("rule /tools/run/limits/0: 1 call"), "{text}");
        assert!(text.contains("grant b: 1 call"), "{text}");
        assert!(text.contains("stops 2 that the first let through, and lets 0 through"), "{text}");
        assert!(text.contains("rm (b): allow -> deny by (default deny)"), "{text}");

        let (text, _) = answer(compare(&tight, &open, &log, true));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&value["stricter"], &value["looser"]), (&json!(0), &json!(2)), "{text}");
        assert_eq!(value["cannot_tell"], 1);

        let bad = place("bad.ndjson", "{\"tool\":\"run\"}\n");
        let (text, code) = answer(compare(&open, &tight, &bad, false));
        assert!(code == USAGE && text.contains("line 1: missing field `at`"), "{text}");
    }
}
