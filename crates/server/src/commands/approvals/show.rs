//! Approvals in lines for people. What agents and servers wrote is shown without control characters,
//! which a terminal would obey.

use serde_json::Value;

/// Longer values are cut in a table.
const CELL: usize = 40;

/// For sorting: the riskiest first, of those the oldest.
pub(super) fn urgency(approval: &Value) -> (usize, String) {
    let order = ["critical", "high", "medium", "low"];
    let severity = text(approval, "severity").to_ascii_lowercase();
    let rank = order.iter().position(|word| *word == severity).unwrap_or(order.len());
    (rank, text(approval, "created_at").to_owned())
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Without what a terminal would obey; line breaks stay where they are wanted.
fn harmless(text: &str, breaks: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Also what turns the reading direction around.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && !(breaks && c == '\n')) || turns {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn cell(text: &str) -> String {
    let text = harmless(text, false);
    if text.chars().count() <= CELL {
        return text;
    }
    let start: String = text.chars().take(CELL - 1).collect();
    format!("{start}…")
}

/// One line for each, under a head.
pub(super) fn table(items: &[Value]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let mut rows =
        vec![["ID", "STATE", "SEVERITY", "TOOL", "GRANT", "ASKED", "EXPIRES"].map(str::to_owned)];
    rows.extend(items.iter().map(|one| {
        let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { cell(text) };
        [
            text(one, "id").to_owned(),
            text(one, "status").to_owned(),
            or_none(text(one, "severity")),
            cell(text(one, "tool")),
            cell(text(&one["grant"], "label")),
            second(text(one, "created_at")),
            second(text(one, "expires_at")),
        ]
    }));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A time without its fraction.
fn second(at: &str) -> String {
    match at.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => at.to_owned(),
    }
}

/// Everything that a person decides by.
pub(super) fn whole(approval: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("{:<12} {}", format!("{name}:"), harmless(value, false)));
        }
    };
    say("Approval", text(approval, "id"));
    say("State", text(approval, "status"));
    say("Tool", text(approval, "tool"));
    let (category, severity) = (text(approval, "category"), text(approval, "severity"));
    say(
        "Risk",
        &[category, severity]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
    );
    say("Grant", text(&approval["grant"], "label"));
    say("Client", text(approval, "client_name"));
    let version = &approval["policy_version"];
    say("Rule", &format!("{} (policy version {version})", text(approval, "rule")));
    say("Asked", &second(text(approval, "created_at")));
    say("Expires", &second(text(approval, "expires_at")));
    let approvers: Vec<&str> =
        approval["approvers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let who = if approvers.is_empty() {
        "admins and policy managers".to_owned()
    } else {
        approvers.join(", ")
    };
    say("Decided by", &format!("{who}; {} needed", approval["quorum"]));
    say("Note", text(approval, "note"));
    lines.push("Arguments:".to_owned());
    lines.extend(arguments(&approval["arguments"]));
    let events = approval["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !events.is_empty() {
        lines.push("History:".to_owned());
        lines.extend(events.iter().map(event));
    }
    lines
}

fn arguments(arguments: &Value) -> Vec<String> {
    if arguments.is_null() {
        return vec!["  (no longer kept)".to_owned()];
    }
    let pretty = serde_json::to_string_pretty(arguments).unwrap_or_default();
    harmless(&pretty, true).lines().map(|line| format!("  {line}")).collect()
}

fn event(event: &Value) -> String {
    let who = text(event, "who");
    let by = if who.is_empty() { String::new() } else { format!(" by {who}") };
    let note = text(&event["detail"], "note");
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    harmless(&format!("  {} {}{by}{note}", second(text(event, "at")), text(event, "kind")), false)
}

/// What an approval came to.
pub(super) fn approved(approval: &Value) -> Vec<String> {
    let (id, tool) = (text(approval, "id"), harmless(text(approval, "tool"), false));
    if text(approval, "status") == "pending" {
        let words =
            format!("Approval {id}: your approval of {tool} counts; more people must approve it.");
        return vec![words];
    }
    vec![format!(
        "Approval {id}: approved. This call of {tool} runs once, when its agent holds it or sends it again."
    )]
}

/// What a refusal came to.
pub(super) fn denied(approval: &Value) -> Vec<String> {
    let (id, tool) = (text(approval, "id"), harmless(text(approval, "tool"), false));
    vec![format!("Approval {id}: denied. {tool} is not run.")]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        let tool = "pay\u{1b}[2J\u{9b}1m\u{202e}x\ny";
        let one = json!({"id": "a", "status": "pending", "tool": tool, "grant": {"label": "g\u{7}"},
            "arguments": {"t\u{9b}": "\u{1b}]0;x\u{7}\u{202e}"}, "created_at": "2026-11-30T12:00:00.123456Z"});
        for lines in [table(std::slice::from_ref(&one)), whole(&one), approved(&one), denied(&one)]
        {
            let harm = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!lines.iter().any(|line| line.contains(harm)), "{lines:?}");
        }
        assert!(table(&[one])[1].contains("2026-11-30T12:00:00Z"));
    }

    #[test]
    fn the_riskiest_come_first_and_of_those_the_oldest() {
        let one = |severity: Value, at: &str| json!({"severity": severity, "created_at": at});
        let mut all = [
            one(json!("Low"), "2026-11-30T01:00:00Z"),
            one(json!("critical"), "2026-11-30T03:00:00Z"),
            one(Value::Null, "2026-11-30T00:00:00Z"),
            one(json!("Critical"), "2026-11-30T02:00:00Z"),
        ];
        all.sort_by_cached_key(urgency);
        let hours: Vec<&str> = all.iter().map(|one| &text(one, "created_at")[11..13]).collect();
        assert_eq!(hours, ["02", "03", "01", "00"]);
    }
}
