//! A document as sentences, each with the pointer of the part it tells.

use serde::Serialize;
use sluice_domain::{Amount, Scope};

use crate::document::{Approval, Approver, DefaultAction, Document, Limit, Mode, Rule, ToolEntry};
use crate::json::escape_pointer;
use crate::pattern::{Pattern, is_pattern};
use crate::phrase::{Form, clauses, per};

/// One part of a document in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleSentence {
    /// JSON Pointer into the normalised document.
    pub pointer: String,
    /// The tool's name or pattern, where the part is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub text: String,
}

/// Says a document in sentences, in its order.
pub fn sentences(document: &Document) -> Vec<RuleSentence> {
    let mut out = Out { list: Vec::new(), tool: None };
    if document.mode == Mode::Observe {
        out.say(
            "/mode",
            "Nothing is refused: decisions are logged, and every call goes through.".to_owned(),
        );
    }
    let default = match document.default {
        DefaultAction::Allow => "Tools that are not named here may be called.",
        DefaultAction::Deny => "Tools that are not named here are refused.",
    };
    out.say("/default", default.to_owned());
    for (index, name) in document.hide.iter().enumerate() {
        out.tool = Some(name.clone());
        let gone = if is_pattern(name) {
            "are hidden, and refused when called"
        } else {
            "is hidden, and refused when called"
        };
        out.say(&format!("/hide/{index}"), format!("{} {gone}.", subject(name)));
    }
    out.tool = None;
    out.entry("/all_tools", "Every tool", &document.all_tools, false);
    for (name, entry) in &document.tools {
        // What is hidden is told as that, and its rules never fire.
        let exact = !is_pattern(name);
        let gone = |hidden: &String| hidden == name || exact && Pattern::new(hidden).matches(name);
        if document.hide.iter().any(gone) {
            continue;
        }
        out.tool = Some(name.clone());
        let pointer = format!("/tools/{}", escape_pointer(name));
        out.entry(&pointer, &subject(name), entry, is_pattern(name));
    }
    out.list
}

fn subject(name: &str) -> String {
    if is_pattern(name) { format!("Tools named like `{name}`") } else { format!("`{name}`") }
}

struct Out {
    list: Vec<RuleSentence>,
    tool: Option<String>,
}

impl Out {
    fn say(&mut self, pointer: &str, text: String) {
        self.list.push(RuleSentence { pointer: pointer.to_owned(), tool: self.tool.clone(), text });
    }

    fn entry(&mut self, pointer: &str, who: &str, entry: &ToolEntry, plural: bool) {
        let is = if plural { "are" } else { "is" };
        if entry.is_empty() && self.tool.is_some() {
            return self.say(pointer, format!("{who} may be called."));
        }
        for (index, rule) in entry.require.iter().enumerate() {
            let text = match clause(rule, Form::Holds) {
                Some(words) => format!("{who} {is} refused unless {words}."),
                None => format!("{who} may be called: this rule has no conditions."),
            };
            self.say(&format!("{pointer}/require/{index}"), text);
        }
        for (index, rule) in entry.deny_if.iter().enumerate() {
            let when =
                clause(rule, Form::Is).map_or_else(String::new, |words| format!(" when {words}"));
            self.say(&format!("{pointer}/deny_if/{index}"), format!("{who} {is} refused{when}."));
        }
        let wait = if plural { "wait" } else { "waits" };
        for (index, rule) in entry.approve_if.iter().enumerate() {
            let when =
                clause(rule, Form::Is).map_or_else(String::new, |words| format!(" when {words}"));
            let text = format!("{who} {wait} for a person's approval{when}.");
            self.say(&format!("{pointer}/approve_if/{index}"), text);
        }
        for (index, limit) in entry.limits.iter().enumerate() {
            self.say(&format!("{pointer}/limits/{index}"), limited(who, limit));
        }
        if let Some(approval) = &entry.approval {
            self.say(&format!("{pointer}/approval"), approvals(approval));
        }
    }
}

fn clause(rule: &Rule, form: Form) -> Option<String> {
    clauses(&rule.conditions, form, &|_| true)
}

/// "`execute_code` may run 10 times a minute per grant."
pub(crate) fn limited(who: &str, limit: &Limit) -> String {
    if limit.max == Amount::ZERO {
        return format!("{who} may not run at all: the limit is 0.");
    }
    let span = per(limit.window, limit.reset);
    let scope = match limit.scope {
        Scope::Grant => "per grant",
        Scope::Session => "per session",
        Scope::Server => "for all grants of the server together",
        Scope::Workspace => "for the whole workspace together",
    };
    match &limit.increment_from {
        Some(path) => format!("{who} may use {} of `{path}` {span} {scope}.", limit.max),
        None if limit.max == Amount::ONE => format!("{who} may run once {span} {scope}."),
        None => format!("{who} may run {} times {span} {scope}.", limit.max),
    }
}

fn approvals(approval: &Approval) -> String {
    let mut parts = Vec::new();
    if let Some(hold) = approval.hold {
        parts.push(format!("a call is held open for {}", duration(hold)));
    }
    if let Some(expires) = approval.expires {
        parts.push(format!("an undecided approval is void after {}", duration(expires)));
    }
    if let Some(approvers) = &approval.approvers {
        let names: Vec<String> = approvers
            .iter()
            .map(|approver| match approver {
                Approver::Role(role) => format!("any {}", role.as_str().replace('_', " ")),
                Approver::Member(address) => address.clone(),
            })
            .collect();
        parts.push(format!("{} may decide", names.join(" or ")));
    }
    if let Some(quorum) = approval.quorum.filter(|quorum| *quorum > 1) {
        parts.push(format!("{quorum} people must approve"));
    }
    if approval.self_allowed == Some(false) {
        parts.push("the member who made the grant may not decide".to_owned());
    }
    if parts.is_empty() {
        return "Approvals go as usual.".to_owned();
    }
    format!("Approvals: {}.", parts.join("; "))
}

fn duration(seconds: u32) -> String {
    let (count, unit) = match seconds {
        s if s > 0 && s % 86_400 == 0 => (s / 86_400, "day"),
        s if s > 0 && s % 3_600 == 0 => (s / 3_600, "hour"),
        s if s > 0 && s % 60 == 0 => (s / 60, "minute"),
        s => (s, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
