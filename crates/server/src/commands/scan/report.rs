//! What a scan found, for people and as JSON. All text of servers is cleaned before it is printed.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::Severity;
use sluice_risk::catalogue::registry::clean;

use super::servers::{Scanned, ScannedTool};
use super::state::{Drift, State};

const MOST_NAME: usize = 80;
const MOST_QUOTE: usize = 160;

/// One scan.
pub(super) struct Report {
    pub(super) at: DateTime<Utc>,
    pub(super) servers: Vec<(Scanned, Vec<Drift>)>,
    /// `file#name` of servers that were there at the last scan.
    pub(super) gone: Vec<String>,
    /// There was a scan before.
    compared: bool,
}

impl Report {
    pub(super) fn new(scanned: Vec<Scanned>, before: Option<&State>, at: DateTime<Utc>) -> Self {
        let gone = before.map(|before| before.gone(&scanned).map(str::to_owned).collect());
        let with_drift = |one: Scanned| {
            let drift = before.map(|before| before.drift_of(&one)).unwrap_or_default();
            (one, drift)
        };
        Self {
            at,
            servers: scanned.into_iter().map(with_drift).collect(),
            gone: gone.unwrap_or_default(),
            compared: before.is_some(),
        }
    }

    /// Why the scan fails, in sentences; empty: it does not.
    pub(super) fn reasons(
        &self,
        fail_on: Option<Severity>,
        fail_on_drift: bool,
        allow_unread: bool,
    ) -> Vec<String> {
        let mut reasons = Vec::new();
        for (one, drift) in &self.servers {
            let name = clean(&one.name, MOST_NAME);
            if let Some(least) = fail_on {
                for tool in &one.tools {
                    let shown = clean(&tool.name, MOST_NAME);
                    if !tool.findings.is_empty() {
                        reasons.push(format!(
                            "the definition of `{shown}` of `{name}` looks poisoned"
                        ));
                    } else if tool.rating.severity >= least {
                        reasons.push(format!(
                            "`{shown}` of `{name}` is rated {}",
                            tool.rating.severity
                        ));
                    }
                }
                if let Some(why) = one.unread.as_ref().filter(|_| !allow_unread) {
                    reasons.push(format!("`{name}` was not read: {}", clean(why, MOST_QUOTE)));
                }
            }
            if fail_on_drift {
                let tell = |one: &Drift| match &one.tool {
                    Some(tool) => {
                        format!("`{}` of `{name}`: {}", clean(tool, MOST_NAME), one.words)
                    }
                    None => format!("`{name}`: {}", one.words),
                };
                reasons.extend(drift.iter().map(tell));
            }
        }
        if fail_on_drift {
            reasons.extend(
                self.gone.iter().map(|key| format!("`{}` is gone", clean(key, MOST_QUOTE))),
            );
        }
        reasons
    }

    pub(super) fn text(&self, reasons: &[String]) -> String {
        let mut text = String::new();
        for (one, drift) in &self.servers {
            let (name, shown) = (clean(&one.name, MOST_NAME), clean(&one.shown, MOST_QUOTE));
            let _ = writeln!(text, "{name}  ({shown})\n  {}:{}", one.file.display(), one.line);
            if let Some(why) = &one.unread {
                let _ =
                    writeln!(text, "  Not read: {}.", clean(why, MOST_QUOTE).trim_end_matches('.'));
            }
            if let Some(record) = one.record {
                let _ = writeln!(
                    text,
                    "  What follows is the catalogue's record of {}, read {}.",
                    record.owner_name, record.as_of
                );
            }
            let _ = writeln!(text, "  Grade {}", one.grade.sentence());
            for tool in &one.tools {
                line(&mut text, tool);
            }
            for one in drift {
                let tool = one.tool.as_deref().map(|tool| clean(tool, MOST_NAME));
                let _ = writeln!(
                    text,
                    "  Changed: {}{}",
                    tool.map(|it| format!("`{it}`: ")).unwrap_or_default(),
                    one.words
                );
            }
            text.push('\n');
        }
        for key in &self.gone {
            let _ = writeln!(text, "Gone since the last scan: {}", clean(key, MOST_QUOTE));
        }
        text.push_str(&self.summary());
        for reason in reasons {
            let _ = write!(text, "\nFails: {reason}");
        }
        text
    }

    /// `2 servers, 1 not read; 7 tools: 1 Critical, 2 High, 1 Medium, 3 Low`
    fn summary(&self) -> String {
        let unread = self.servers.iter().filter(|(one, _)| one.unread.is_some()).count();
        let tools = || self.servers.iter().flat_map(|(one, _)| &one.tools);
        let counts: Vec<String> = Severity::ALL
            .iter()
            .rev()
            .map(|severity| {
                (severity, tools().filter(|it| it.rating.severity == *severity).count())
            })
            .filter(|(_, count)| *count > 0)
            .map(|(severity, count)| format!("{count} {severity}"))
            .collect();
        let mut text = format!(
            "{}, {unread} not read; {}",
            plural(self.servers.len(), "server"),
            plural(tools().count(), "tool")
        );
        if !counts.is_empty() {
            let _ = write!(text, ": {}", counts.join(", "));
        }
        if !self.compared {
            text.push_str(". This is the first scan; the next one tells what changed");
        }
        text.push('.');
        text
    }

    pub(super) fn json(&self, reasons: &[String]) -> Value {
        let servers: Vec<Value> = self
            .servers
            .iter()
            .map(|(one, drift)| {
                json!({"name": one.name, "file": one.file.display().to_string(), "line": one.line,
                    "address": one.shown, "read": one.unread.is_none(), "why_not_read": one.unread,
                    "record": one.record.map(|record| json!({"slug": record.slug, "as_of": record.as_of})),
                    "grade": one.grade, "drift": drift,
                    "tools": one.tools.iter().map(tool).collect::<Vec<_>>()})
            })
            .collect();
        let worst =
            self.servers.iter().flat_map(|(one, _)| &one.tools).map(|it| it.rating.severity).max();
        json!({"version": 1, "scanned_at": self.at, "first_scan": !self.compared, "servers": servers,
            "gone": self.gone, "highest_severity": worst, "fails": reasons})
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn line(text: &mut String, tool: &ScannedTool) {
    let rating = &tool.rating;
    let name = clean(&tool.name, MOST_NAME);
    let why = rating
        .reasons
        .first()
        .map(|reason| format!("{}: “{}”", reason.cue, clean(&reason.quote, MOST_QUOTE)));
    let why = why.unwrap_or_else(|| "nothing recognised, so not taken to be harmless".to_owned());
    let _ = writeln!(text, "  {:<8} {:<11} {name}  ({why})", rating.severity, rating.category);
    for finding in &tool.findings {
        let _ = writeln!(
            text,
            "           Looks poisoned: {} in {}: “{}”",
            finding.kind,
            clean(&finding.place, MOST_NAME),
            clean(&finding.quote, MOST_QUOTE)
        );
    }
}

fn tool(tool: &ScannedTool) -> Value {
    let rating = &tool.rating;
    json!({"name": tool.name, "category": rating.category, "severity": rating.severity,
        "base_severity": rating.base, "confidence": rating.confidence, "reasons": rating.reasons,
        "modifiers": rating.modifiers, "signals": rating.signals, "findings": tool.findings,
        "definition_hash": tool.hash})
}
