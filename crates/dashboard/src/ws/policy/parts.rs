//! What the pages of a policy show alike: its rules in words with their lines and calls, the
//! document with numbered lines, its problems, and a change in words.

use askama::Template;
use sluice_policy::{Problem, ProblemSeverity, RuleSentence, compile, sentences};

use super::places::{Places, segment};
use crate::faults::sentence;
use crate::next::encode;
use crate::ui::Html;
use crate::ui::code::json_lines;
use crate::ui::text::{count, ticks};

/// A document in sentences; none where it cannot be read.
pub(crate) fn told(document: &str) -> Vec<RuleSentence> {
    compile(document).map(|compiled| sentences(compiled.document())).unwrap_or_default()
}

/// A rule as a sentence.
#[derive(Debug)]
struct Said {
    html: Html,
    pointer: String,
    line: usize,
    /// Words and address of the calls that it decided.
    calls: Option<(&'static str, String)>,
}

impl Said {
    /// What links to this rule ends in; an id has no blanks.
    fn id(&self) -> &str {
        if self.pointer.contains(char::is_whitespace) { "" } else { &self.pointer }
    }
}

/// A document's rules in words.
#[derive(Debug, Template)]
#[template(path = "ws/policy_rules.html")]
pub(crate) struct Rules {
    rows: Vec<Said>,
}

impl askama::filters::HtmlSafe for Rules {}

impl Rules {
    /// `logs`: the log's address with the policy as its filter; without it there are no links to calls.
    pub(crate) fn new(document: &str, logs: Option<&str>) -> Self {
        let places = Places::of(document);
        let row = |rule: RuleSentence| Said {
            html: ticks(&rule.text),
            line: line(&places, &rule),
            calls: logs.and_then(|logs| calls(logs, &rule)),
            pointer: rule.pointer,
        };
        Self { rows: told(document).into_iter().map(row).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A name that a short form hides stands at its tool.
fn line(places: &Places, rule: &RuleSentence) -> usize {
    match &rule.tool {
        Some(tool) if rule.pointer.starts_with("/hide/") && places.get(&rule.pointer).is_none() => {
            places.line(&format!("/tools/{}", segment(tool)))
        }
        _ => places.line(&rule.pointer),
    }
}

/// The calls that a rule decided, where the log can tell them.
fn calls(logs: &str, rule: &RuleSentence) -> Option<(&'static str, String)> {
    let exact = rule.tool.as_deref().filter(|tool| !tool.contains(['*', '?']));
    let of_tool = |tool: &str| format!("{logs}&tool={}", encode(tool));
    let by_rule = |id: &str| format!("{logs}&rule={}", encode(id));
    let kinds = ["require", "deny_if", "approve_if", "limits"];
    let kind = rule.pointer.rsplit('/').nth(1).unwrap_or_default();
    if rule.pointer == "/default" {
        return rule.text.contains("refused").then(|| ("Calls refused", by_rule("(default deny)")));
    }
    if rule.pointer.starts_with("/hide/") {
        let hidden = by_rule("(hidden)");
        let all = exact.map_or(hidden.clone(), |tool| format!("{hidden}&tool={}", encode(tool)));
        return Some(("Calls refused", all));
    }
    match (kinds.contains(&kind), exact) {
        (true, _) if kind == "approve_if" => Some(("Calls parked", by_rule(&rule.pointer))),
        (true, _) => Some(("Calls refused", by_rule(&rule.pointer))),
        (false, Some(tool)) if !rule.pointer.ends_with("/approval") => {
            Some(("Its calls", of_tool(tool)))
        }
        _ => None,
    }
}

/// The document with numbered lines, so that a rule and a problem can lead to theirs.
#[derive(Debug, Template)]
#[template(path = "ws/policy_json.html")]
pub(crate) struct Numbered {
    label: String,
    lines: Vec<(Html, &'static str)>,
    /// What is left out.
    more: String,
}

impl askama::filters::HtmlSafe for Numbered {}

/// A document of 256 KiB may be all line ends.
const MAX_LINES: usize = 20_000;

impl Numbered {
    pub(crate) fn new(label: &str, document: &str, problems: &[Problem]) -> Self {
        let class = |number: usize| {
            let here = problems.iter().filter(|problem| problem.line as usize == number);
            match here.map(|problem| problem.severity).min() {
                Some(ProblemSeverity::Error) => " l-err",
                Some(ProblemSeverity::Warning) => " l-warn",
                None => "",
            }
        };
        let mut lines = json_lines(document);
        let more = match lines.len().saturating_sub(MAX_LINES) {
            0 => String::new(),
            more => count(more, "more line", None),
        };
        lines.truncate(MAX_LINES);
        let marked: std::collections::HashSet<u32> =
            problems.iter().map(|problem| problem.line).collect();
        let lines = lines
            .into_iter()
            .zip(1_u32..)
            .map(|(line, number)| {
                (line, if marked.contains(&number) { class(number as usize) } else { "" })
            })
            .collect();
        Self { label: label.to_owned(), lines, more }
    }
}

/// One problem of a document.
#[derive(Debug)]
struct Found {
    error: bool,
    line: u32,
    column: u32,
    pointer: String,
    message: Html,
    suggestion: Option<String>,
}

/// Everything that is wrong or odd about a document.
#[derive(Debug, Template)]
#[template(path = "ws/policy_problems.html")]
pub(crate) struct Problems {
    rows: Vec<Found>,
    more: usize,
}

impl askama::filters::HtmlSafe for Problems {}

const MAX_PROBLEMS: usize = 200;

impl Problems {
    pub(crate) fn new(problems: &[Problem]) -> Self {
        let row = |problem: &Problem| Found {
            error: problem.severity == ProblemSeverity::Error,
            line: problem.line,
            column: problem.column,
            pointer: problem.pointer.clone(),
            message: ticks(&sentence(&problem.message)),
            suggestion: problem.suggestion.clone(),
        };
        Self {
            rows: problems.iter().take(MAX_PROBLEMS).map(row).collect(),
            more: problems.len().saturating_sub(MAX_PROBLEMS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// What a change means: the sentences that go and those that come.
#[derive(Debug, Template)]
#[template(path = "ws/policy_change.html")]
pub(crate) struct SaidChange {
    rows: Vec<(bool, Html)>,
    more: usize,
}

impl askama::filters::HtmlSafe for SaidChange {}

impl SaidChange {
    /// At most `most` sentences are shown, the rest is counted.
    pub(crate) fn new(before: &str, after: &str, most: usize) -> Self {
        let (old, new) = (told(before), told(after));
        let texts = |list: &[RuleSentence]| -> std::collections::HashSet<String> {
            list.iter().map(|rule| rule.text.clone()).collect()
        };
        let (was, is) = (texts(&old), texts(&new));
        let gone = old
            .iter()
            .filter(|rule| !is.contains(&rule.text))
            .map(|rule| (false, ticks(&rule.text)));
        let come = new
            .iter()
            .filter(|rule| !was.contains(&rule.text))
            .map(|rule| (true, ticks(&rule.text)));
        let mut rows: Vec<_> = gone.chain(come).collect();
        let more = rows.len().saturating_sub(most);
        rows.truncate(most);
        Self { rows, more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
  "version": "1",
  "default": "deny",
  "hide": ["drop_all"],
  "tools": {
    "run": {"limits": [{"counter": "run_rate", "window": "minute", "max": 10}]},
    "wipe": {"action": "hide"},
    "<b>": {}
  }
}"#;

    #[test]
    fn each_rule_is_a_sentence_with_its_line_and_its_calls() {
        let html = Rules::new(DOCUMENT, Some("/w/a/logs?policy=p")).to_string();
        assert!(html.contains("<code>run</code> may run 10 times a minute per grant."), "{html}");
        assert!(html.contains("id=\"/tools/run/limits/0\""), "{html}");
        assert!(html.contains("href=\"#L6\""), "{html}");
        assert!(html.contains("href=\"#L7\""), "a short form leads to its tool: {html}");
        assert!(html.contains("/w/a/logs?policy=p&#38;rule=/tools/run/limits/0"), "{html}");
        assert!(html.contains("rule=%28default%20deny%29"), "{html}");
        assert!(!html.contains("<b>"), "{html}");
        assert!(!Rules::new(DOCUMENT, None).to_string().contains("/logs"));
    }

    #[test]
    fn problems_lead_to_their_lines_and_escape_what_they_repeat() {
        let text = "{\n \"version\": \"1\",\n \"default\": \"deny\",\n \"<img src=x>\": 1\n}";
        let checked = sluice_policy::check(text, None);
        let html = Problems::new(&checked.problems).to_string();
        assert!(html.contains("href=\"#L4\""), "{html}");
        assert!(html.contains("Line 4, column"), "{html}");
        assert!(!html.contains("<img"), "{html}");
        let lines = Numbered::new("Lines", text, &checked.problems).to_string();
        assert!(lines.contains("class=\"l l-err\" id=\"L4\""), "{lines}");
        assert!(!lines.contains("<img"), "{lines}");
    }

    #[test]
    fn a_change_is_told_in_sentences() {
        let after = DOCUMENT.replace("\"max\": 10", "\"max\": 20");
        let html = SaidChange::new(DOCUMENT, &after, 10).to_string();
        assert!(html.contains("10 times a minute") && html.contains("20 times a minute"), "{html}");
        assert!(html.find("10 times") < html.find("20 times"), "what goes comes first");
        let same = SaidChange::new(DOCUMENT, &DOCUMENT.replace("  ", " "), 10).to_string();
        assert!(same.contains("same rules"), "{same}");
        let cut = SaidChange::new("{}", DOCUMENT, 1).to_string();
        assert!(cut.contains(&format!("and {} more", told(DOCUMENT).len() - 1)), "{cut}");
    }

    #[test]
    fn a_document_of_line_ends_stays_small() {
        let html = Numbered::new("x", &"\n".repeat(200_000), &[]).to_string();
        assert!(html.len() < 3_000_000, "{}", html.len());
        assert!(html.contains("180,000 more lines"));
    }
}
