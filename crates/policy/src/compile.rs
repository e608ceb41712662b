//! A checked document made ready for decisions: tools in a hash map, patterns
//! sorted, paths in a tree, literals read, sentences written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::decision::ConditionInfo;
use crate::document::{
    Approval, Comparison, Condition, DefaultAction, Document, Limit, Mode, Rule, ToolEntry,
};
use crate::extract::PathTree;
use crate::json::{Place, escape_pointer};
use crate::matcher::Matcher;
use crate::path::{Context, Path, Segment};
use crate::pattern::{Pattern, is_pattern};
use crate::phrase::{self, Form};
use crate::problem::Problem;

/// A policy that can decide.
#[derive(Debug)]
pub struct CompiledPolicy {
    pub(crate) document: Document,
    hide: Names,
    pub(crate) all_tools: RuleSet,
    exact: HashMap<String, usize>,
    /// The most specific first.
    patterns: Vec<(Pattern, usize)>,
    entries: Vec<RuleSet>,
}

/// Names and patterns.
#[derive(Debug, Default)]
struct Names {
    exact: HashSet<String>,
    patterns: Vec<Pattern>,
}

impl Names {
    fn new(names: &[String]) -> Self {
        let (patterns, exact): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| is_pattern(name));
        Self {
            exact: exact.into_iter().cloned().collect(),
            patterns: patterns.into_iter().map(|name| Pattern::new(name)).collect(),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.exact.contains(name) || self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}

/// The rules of one entry.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    pub(crate) require: Vec<CompiledRule>,
    pub(crate) deny_if: Vec<CompiledRule>,
    pub(crate) approve_if: Vec<CompiledRule>,
    pub(crate) limits: Vec<CompiledLimit>,
    pub(crate) approval: Approval,
    pub(crate) paths: PathTree,
}

#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) pointer: Arc<str>,
    pub(crate) tests: Vec<Test>,
    /// For each condition of a `require`, what it asks for; for other rules one clause for all.
    pub(crate) words: Vec<String>,
    pub(crate) on_deny: Option<String>,
}

#[derive(Debug)]
pub(crate) struct CompiledLimit {
    pub(crate) pointer: Arc<str>,
    pub(crate) limit: Limit,
    /// Where the amount is found, and its path in words.
    pub(crate) amount: Option<(usize, String)>,
}

/// A condition made ready.
#[derive(Debug)]
pub(crate) enum Test {
    Compare { source: Source, matcher: Matcher, info: Arc<ConditionInfo> },
    Any(Vec<Test>),
    Not(Box<Test>),
}

/// Where a comparison's value comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A slot, and from the first `[*]` on the rest of the path.
    Slot(usize, Vec<Segment>),
    Context(Context),
}

/// Compiles a document, or tells every error in it.
pub fn compile(text: &str) -> Result<CompiledPolicy, Vec<Problem>> {
    crate::check::read(text).map(CompiledPolicy::new)
}

impl CompiledPolicy {
    pub(crate) fn new(document: Document) -> Self {
        let hide = Names::new(&document.hide);
        let builder = Builder { hide: &hide };
        let all_tools = builder.rule_set(&document.all_tools, "/all_tools");
        let mut exact = HashMap::with_capacity(document.tools.len());
        let mut patterns = Vec::new();
        let mut entries = Vec::with_capacity(document.tools.len());
        for (name, entry) in &document.tools {
            let index = entries.len();
            entries.push(builder.rule_set(entry, &format!("/tools/{}", escape_pointer(name))));
            if is_pattern(name) {
                patterns.push((Pattern::new(name), index));
            } else {
                exact.insert(name.clone(), index);
            }
        }
        patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.literals()));
        Self { document, hide, all_tools, exact, patterns, entries }
    }

    /// The document in its long form.
    pub const fn document(&self) -> &Document {
        &self.document
    }

    /// Whether it decides or watches.
    pub const fn mode(&self) -> Mode {
        self.document.mode
    }

    pub(crate) const fn default(&self) -> DefaultAction {
        self.document.default
    }

    /// Whether `hide` names the tool.
    pub fn hides(&self, tool: &str) -> bool {
        self.hide.matches(tool)
    }

    pub(crate) fn entry_index(&self, tool: &str) -> Option<usize> {
        self.exact.get(tool).copied().or_else(|| {
            let found = self.patterns.iter().find(|(pattern, _)| pattern.matches(tool));
            found.map(|(_, index)| *index)
        })
    }

    pub(crate) fn rules(&self, index: usize) -> Option<&RuleSet> {
        self.entries.get(index)
    }

    /// The entry whose rules hold for a tool: its name or pattern, and the rules.
    pub fn entry(&self, tool: &str) -> Option<(&str, &ToolEntry)> {
        let (name, entry) = self.document.tools.get(self.entry_index(tool)?)?;
        Some((name, entry))
    }

    /// All that bears on a tool as one text: equal texts mean equal rules, whatever else changed.
    pub fn rules_text(&self, tool: &str) -> String {
        let default = match self.document.default {
            DefaultAction::Allow => "allow",
            DefaultAction::Deny => "deny",
        };
        let rules = serde_json::json!({
            "mode": if self.mode() == Mode::Observe { "observe" } else { "enforce" },
            "default": default,
            "hidden": self.hides(tool),
            "all_tools": self.document.all_tools,
            "tool": self.entry(tool).map(|(_, entry)| entry),
        });
        rules.to_string()
    }

    /// The limits that calls of a tool are held to, each with its pointer.
    pub fn limits_of(&self, tool: &str) -> Vec<(&str, &Limit)> {
        let own = self.entry_index(tool).and_then(|index| self.rules(index));
        let sets = std::iter::once(&self.all_tools).chain(own);
        sets.flat_map(|set| &set.limits).map(|limit| (&*limit.pointer, &limit.limit)).collect()
    }
}

struct Builder<'b> {
    hide: &'b Names,
}

impl Builder<'_> {
    fn rule_set(&self, entry: &ToolEntry, pointer: &str) -> RuleSet {
        let mut paths = PathTree::default();
        let mut rules = |rules: &[Rule], kind: &str, form: Form| -> Vec<CompiledRule> {
            let pointers = (0..).map(|index: usize| format!("{pointer}/{kind}/{index}"));
            rules
                .iter()
                .zip(pointers)
                .map(|(rule, at)| self.rule(rule, at, form, &mut paths))
                .collect()
        };
        let require = rules(&entry.require, "require", Form::Must);
        let deny_if = rules(&entry.deny_if, "deny_if", Form::Is);
        let approve_if = rules(&entry.approve_if, "approve_if", Form::Is);
        let limits = entry.limits.iter().enumerate().map(|(index, limit)| CompiledLimit {
            pointer: format!("{pointer}/limits/{index}").into(),
            amount: match &limit.increment_from {
                Some(path @ Path::Arguments(segments)) => {
                    Some((paths.slot(segments), path.to_string()))
                }
                _ => None,
            },
            limit: limit.clone(),
        });
        let limits = limits.collect();
        let approval = entry.approval.clone().unwrap_or_default();
        RuleSet { require, deny_if, approve_if, limits, approval, paths }
    }

    fn rule(&self, rule: &Rule, pointer: String, form: Form, paths: &mut PathTree) -> CompiledRule {
        let may_show = |comparison: &Comparison| self.may_show(comparison);
        let words = match form {
            Form::Must => {
                rule.conditions.iter().map(|c| phrase::clause(c, form, &may_show)).collect()
            }
            Form::Is | Form::Holds => {
                phrase::clauses(&rule.conditions, form, &may_show).into_iter().collect()
            }
        };
        let place = format!("{pointer}/conditions");
        let root = Place::ROOT;
        let tests = rule
            .conditions
            .iter()
            .enumerate()
            .map(|(index, condition)| test(condition, &place, &root.index(index), paths));
        CompiledRule {
            tests: tests.collect(),
            pointer: pointer.into(),
            words,
            on_deny: rule.on_deny.clone(),
        }
    }

    /// A value that names a hidden tool is not repeated to an agent.
    fn may_show(&self, comparison: &Comparison) -> bool {
        !phrase::is_private(&comparison.path) && !self.names_hidden(&comparison.value)
    }

    fn names_hidden(&self, value: &serde_json::Value) -> bool {
        use serde_json::Value;
        match value {
            Value::String(text) => self.hide.matches(text),
            Value::Array(items) => items.iter().any(|item| self.names_hidden(item)),
            Value::Object(pairs) => {
                pairs.iter().any(|(key, item)| self.hide.matches(key) || self.names_hidden(item))
            }
            _ => false,
        }
    }
}

fn test(condition: &Condition, base: &str, place: &Place<'_>, paths: &mut PathTree) -> Test {
    match condition {
        Condition::Compare(comparison) => Test::Compare {
            source: match &comparison.path {
                Path::Context(context) => Source::Context(*context),
                Path::Arguments(segments) => {
                    let each = segments.iter().position(|s| *s == Segment::Each);
                    let (plain, rest) = segments.split_at(each.unwrap_or(segments.len()));
                    Source::Slot(paths.slot(plain), rest.to_vec())
                }
            },
            matcher: Matcher::new(comparison),
            info: Arc::new(ConditionInfo {
                pointer: format!("{base}{}", place.pointer()),
                path: comparison.path.to_string(),
                op: comparison.op,
                wanted: phrase::wanted(comparison),
            }),
        },
        Condition::Any(inner) => {
            let place = place.key("any");
            let tests = inner.iter().enumerate();
            Test::Any(tests.map(|(i, c)| test(c, base, &place.index(i), paths)).collect())
        }
        Condition::Not(inner) => Test::Not(Box::new(test(inner, base, &place.key("not"), paths))),
    }
}
