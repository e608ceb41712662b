//! From the tree to the document. The shape is checked by the tables; here is
//! told what only meaning can tell. What is malformed is left out.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use sluice_domain::{Amount, OnUnavailable, Reset, Role, Scope, Window};

use crate::document::{
    Approval, Approver, Comparison, Condition, DefaultAction, Document, Limit, Mode, Rule,
    ToolEntry,
};
use crate::json::{Kind, Node, Place, to_value};
use crate::number::Decimal;
use crate::op::Op;
use crate::path::Path;
use crate::pattern::{Pattern, is_pattern};
use crate::problem::Problems;
use crate::shape::{MAX_CONDITIONS, MAX_LIMITS, MAX_RULES, duration_seconds};
use crate::short_forms::expand;

/// Characters of a regular expression.
pub(crate) const MAX_REGEX: usize = 1_000;
/// Bytes of a compiled one.
const MAX_REGEX_COMPILED: usize = 1 << 20;
/// Bytes of all compiled ones of a document.
const MAX_REGEX_ALL: usize = 64 << 20;
/// Memory of its lazily built states, for each thread that runs it.
const REGEX_CACHE: usize = 1 << 18;
/// Steps that comparing patterns with each other may take.
const PATTERN_WORK: usize = 8_000_000;

/// Reads a document; `problems` gets what does not make sense.
pub(crate) fn document(root: &Node<'_>, problems: &mut Problems<'_>) -> Document {
    let mut reader = Reader { problems, regexes: HashMap::new(), regex_budget: MAX_REGEX_ALL };
    let text = |key: &str| root.get(key).and_then(Node::text);
    let mut document = Document {
        description: text("description").map(str::to_owned),
        mode: if text("mode") == Some("observe") { Mode::Observe } else { Mode::Enforce },
        default: if text("default") == Some("allow") {
            DefaultAction::Allow
        } else {
            DefaultAction::Deny
        },
        hide: Vec::new(),
        all_tools: ToolEntry::default(),
        tools: Vec::new(),
    };
    let hidden = root.get("hide").map(Node::items).unwrap_or_default();
    document.hide.extend(hidden.iter().filter_map(Node::text).map(str::to_owned));
    if let Some(node) = root.get("all_tools") {
        document.all_tools = reader.entry(None, node, &Place::ROOT.key("all_tools")).entry;
    }
    let place = Place::ROOT.key("tools");
    for member in root.get("tools").map(Node::members).unwrap_or_default() {
        let expanded = reader.entry(Some(&member.key), &member.value, &place.key(&member.key));
        if expanded.hide && !document.hide.iter().any(|name| *name == member.key) {
            document.hide.push(member.key.clone().into_owned());
        }
        document.tools.push((member.key.clone().into_owned(), expanded.entry));
    }
    reader.patterns(root, &place);
    document
}

struct Reader<'r, 'a> {
    problems: &'r mut Problems<'a>,
    /// The same text is compiled once.
    regexes: HashMap<String, Result<Arc<Regex>, String>>,
    /// Compiled bytes that the document may still have.
    regex_budget: usize,
}

impl Reader<'_, '_> {
    fn entry(
        &mut self,
        tool: Option<&str>,
        node: &Node<'_>,
        place: &Place<'_>,
    ) -> crate::short_forms::Expanded {
        let short = tool.map(|tool| expand(tool, node)).unwrap_or_default();
        let mut entry = ToolEntry {
            require: self.rules(node, place, "require"),
            deny_if: self.rules(node, place, "deny_if"),
            approve_if: self.rules(node, place, "approve_if"),
            limits: limits(node),
            approval: node.get("approval").map(approval),
        };
        entry.deny_if.extend(short.entry.deny_if);
        entry.approve_if.extend(short.entry.approve_if);
        entry.limits.extend(short.entry.limits);
        if entry.rule_count() > MAX_RULES {
            let words =
                format!("{} rules here; at most {MAX_RULES} are allowed", entry.rule_count());
            self.problems.error("too_many", node.start, place, words);
        }
        if entry.limits.len() > MAX_LIMITS {
            let words =
                format!("{} limits here; at most {MAX_LIMITS} are allowed", entry.limits.len());
            self.problems.error("too_many", node.start, place, words);
        }
        crate::short_forms::Expanded { hide: short.hide, entry }
    }

    fn rules(&mut self, node: &Node<'_>, place: &Place<'_>, key: &str) -> Vec<Rule> {
        let place = place.key(key);
        let items = node.get(key).map(Node::items).unwrap_or_default();
        items.iter().enumerate().map(|(i, item)| self.rule(item, &place.index(i))).collect()
    }

    fn rule(&mut self, node: &Node<'_>, place: &Place<'_>) -> Rule {
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        let key = place.key("conditions");
        let items = node.get("conditions").map(Node::items).unwrap_or_default();
        let mut rule =
            Rule { name: text("name"), conditions: Vec::new(), on_deny: text("on_deny") };
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            rule.conditions.extend(self.condition(item, &key.index(index), 0, &mut count));
        }
        if count > MAX_CONDITIONS && items.len() <= MAX_CONDITIONS {
            let words = format!("{count} conditions here; at most {MAX_CONDITIONS} are allowed");
            self.problems.error("too_many", node.start, place, words);
        }
        rule
    }

    fn condition(
        &mut self,
        node: &Node<'_>,
        place: &Place<'_>,
        depth: usize,
        count: &mut usize,
    ) -> Option<Condition> {
        // Deeper ones are told by the tables and not read, so that nothing recurses without bound.
        if depth > crate::json::MAX_DEPTH {
            return None;
        }
        if let Some(any) = node.get("any") {
            let place = place.key("any");
            let items = any.items().iter().enumerate();
            let inner = items
                .filter_map(|(i, item)| self.condition(item, &place.index(i), depth + 1, count));
            return Some(Condition::Any(inner.collect()));
        }
        if let Some(not) = node.get("not") {
            let inner = self.condition(not, &place.key("not"), depth + 1, count)?;
            return Some(Condition::Not(Box::new(inner)));
        }
        *count += 1;
        let op: Op = node.get("op")?.text()?.parse().ok()?;
        let value = node.get("value");
        let regex = match value.and_then(Node::text) {
            Some(text) if op == Op::Regex => self.regex(text, value?.start, &place.key("value")),
            _ => None,
        };
        let path = Path::parse(node.get("path")?.text()?).ok()?;
        let value = value.map_or(Value::Bool(true), to_value);
        Some(Condition::Compare(Arc::new(Comparison { path, op, value, regex })))
    }

    fn regex(&mut self, text: &str, at: usize, place: &Place<'_>) -> Option<Arc<Regex>> {
        if text.chars().count() > MAX_REGEX {
            let words = format!("a regular expression has at most {MAX_REGEX} characters");
            self.problems.error("regex_too_large", at, place, words);
            return None;
        }
        if !self.regexes.contains_key(text) {
            let built = build_regex(text, &mut self.regex_budget).map(Arc::new);
            self.regexes.insert(text.to_owned(), built);
        }
        match self.regexes.get(text)? {
            Ok(regex) => Some(regex.clone()),
            Err(words) => {
                let large = words.contains("compiled");
                let code = if large { "regex_too_large" } else { "bad_regex" };
                self.problems.error(code, at, place, words.clone());
                None
            }
        }
    }

    /// Patterns that are equally specific and can match the same name leave open whose rules hold.
    fn patterns(&mut self, root: &Node<'_>, place: &Place<'_>) {
        let members = root.get("tools").map(Node::members).unwrap_or_default();
        let mut by_literals: HashMap<usize, Vec<(Pattern, &str)>> = HashMap::new();
        let mut work = PATTERN_WORK;
        for member in members.iter().filter(|member| is_pattern(&member.key)) {
            let pattern = Pattern::new(&member.key);
            let equals = by_literals.entry(pattern.literals()).or_default();
            let clash = equals.iter().find(|(other, _)| {
                // Out of steps: refused, the safe side.
                pattern.overlaps(other, &mut work).unwrap_or(true)
            });
            if let Some((_, other)) = clash {
                let words = if work == 0 {
                    "too many long patterns to compare them all; use fewer or shorter ones"
                        .to_owned()
                } else {
                    format!(
                        "`{}` and `{other}` are equally specific and can match the same tool; make one of them more specific",
                        member.key
                    )
                };
                self.problems.error(
                    "ambiguous_pattern",
                    member.key_at,
                    &place.key(&member.key),
                    words,
                );
            } else {
                equals.push((pattern, &member.key));
            }
        }
    }
}

/// Tries small bounds first, so that the bound that held tells the size.
fn build_regex(text: &str, budget: &mut usize) -> Result<Regex, String> {
    for bound in [MAX_REGEX_COMPILED >> 7, MAX_REGEX_COMPILED >> 4, MAX_REGEX_COMPILED] {
        let built = RegexBuilder::new(text).size_limit(bound).dfa_size_limit(REGEX_CACHE).build();
        match built {
            Ok(regex) => {
                *budget = budget.checked_sub(bound).ok_or(
                    "the document's regular expressions are larger than 64 MiB when compiled",
                )?;
                return Ok(regex);
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                return Err(format!("not a regular expression: {why}"));
            }
        }
    }
    Err("this regular expression is larger than 1 MiB when compiled; repeat less".to_owned())
}

fn limits(node: &Node<'_>) -> Vec<Limit> {
    node.get("limits").map(Node::items).unwrap_or_default().iter().filter_map(limit).collect()
}

/// A limit as written, or `None` where the shape is wrong.
pub(crate) fn limit(node: &Node<'_>) -> Option<Limit> {
    let text = |key: &str| node.get(key).and_then(Node::text);
    Some(Limit {
        counter: text("counter")?.to_owned(),
        window: Window::from_str(text("window")?).ok()?,
        max: Amount::from_str(node.get("max")?.number()?).ok()?,
        scope: text("scope").and_then(|word| Scope::from_str(word).ok()).unwrap_or(Scope::Grant),
        increment_from: text("increment_from").and_then(|path| Path::parse(path).ok()),
        reset: text("reset").and_then(|word| Reset::from_str(word).ok()).unwrap_or(Reset::Sliding),
        on_unavailable: text("on_unavailable")
            .and_then(|word| OnUnavailable::from_str(word).ok())
            .unwrap_or(OnUnavailable::Deny),
    })
}

fn approval(node: &Node<'_>) -> Approval {
    let seconds = |key: &str| node.get(key).and_then(Node::text).and_then(duration_seconds);
    let quorum = node.get("quorum").and_then(Node::number).map(Decimal::read);
    let approvers = match node.get("approvers").map(|node| &node.kind) {
        Some(Kind::List(items)) => {
            Some(items.iter().filter_map(Node::text).filter_map(approver).collect())
        }
        _ => None,
    };
    Approval {
        hold: seconds("hold"),
        expires: seconds("expires"),
        approvers,
        quorum: quorum.and_then(|q| q.as_u64()).and_then(|q| u8::try_from(q).ok()),
        self_allowed: node.get("self").and_then(Node::boolean),
    }
}

fn approver(text: &str) -> Option<Approver> {
    if let Some(role) = text.strip_prefix("role:") {
        return Role::from_str(role).ok().map(Approver::Role);
    }
    text.strip_prefix("member:").map(|address| Approver::Member(address.to_lowercase()))
}
