//! A checked document made ready for decisions: tools in a hash map, patterns
//! sorted, paths in a tree, literals read, parts numbered for the traces.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::document::{
    Comparison, Condition, DefaultAction, Document, Limit, Mode, Rule, ToolEntry,
};
use crate::extract::PathTree;
use crate::json::escape_pointer;
use crate::matcher::Matcher;
use crate::path::{Context, Path, Segment};
use crate::pattern::{Pattern, is_pattern};
use crate::phrase;
use crate::problem::Problem;
use crate::trace::{Number, Texts};

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
    pub(crate) texts: Arc<Texts>,
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

/// The rules of one entry, each list in the order of the document's.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    pub(crate) require: Vec<CompiledRule>,
    pub(crate) deny_if: Vec<CompiledRule>,
    pub(crate) approve_if: Vec<CompiledRule>,
    pub(crate) limits: Vec<CompiledLimit>,
    pub(crate) paths: PathTree,
    /// Comparisons of all its rules.
    pub(crate) comparisons: usize,
}

impl RuleSet {
    /// Steps that its rules and limits can put into a trace.
    pub(crate) const fn steps(&self) -> usize {
        self.require.len() + self.deny_if.len() + self.approve_if.len() + self.limits.len()
    }
}

#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) number: Number,
    pub(crate) pointer: Arc<str>,
    pub(crate) tests: Vec<Test>,
}

#[derive(Debug)]
pub(crate) struct CompiledLimit {
    pub(crate) number: Number,
    pub(crate) pointer: Arc<str>,
    pub(crate) limit: Limit,
    /// Where the amount is found, and its path in words.
    pub(crate) amount: Option<(usize, String)>,
}

/// A condition made ready.
#[derive(Debug)]
pub(crate) enum Test {
    Compare { source: Source, matcher: Matcher, number: Number },
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
        let mut builder = Builder::default();
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
        let texts = Arc::new(builder.texts);
        Self { document, hide, all_tools, exact, patterns, entries, texts }
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

    /// The entry by its index: compiled, and as the document has it.
    pub(crate) fn rules(&self, index: usize) -> Option<(&RuleSet, &ToolEntry)> {
        Some((self.entries.get(index)?, &self.document.tools.get(index)?.1))
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
        let own = self.entry_index(tool).and_then(|index| self.entries.get(index));
        let sets = std::iter::once(&self.all_tools).chain(own);
        sets.flat_map(|set| &set.limits).map(|limit| (&*limit.pointer, &limit.limit)).collect()
    }

    /// A value that names a hidden tool is not repeated to an agent.
    pub(crate) fn may_show(&self, comparison: &Comparison) -> bool {
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

#[derive(Default)]
struct Builder {
    texts: Texts,
}

impl Builder {
    fn rule_set(&mut self, entry: &ToolEntry, pointer: &str) -> RuleSet {
        let mut set = RuleSet::default();
        set.require = self.rules(&entry.require, &format!("{pointer}/require"), &mut set);
        set.deny_if = self.rules(&entry.deny_if, &format!("{pointer}/deny_if"), &mut set);
        set.approve_if = self.rules(&entry.approve_if, &format!("{pointer}/approve_if"), &mut set);
        let limits = entry.limits.iter().enumerate().map(|(index, limit)| {
            let pointer: Arc<str> = format!("{pointer}/limits/{index}").into();
            let amount = match &limit.increment_from {
                Some(path @ Path::Arguments(segments)) => {
                    Some((set.paths.slot(segments), path.to_string()))
                }
                _ => None,
            };
            let number = self.texts.rule(&pointer);
            CompiledLimit { number, pointer, amount, limit: limit.clone() }
        });
        set.limits = limits.collect();
        set
    }

    fn rules(&mut self, rules: &[Rule], place: &str, set: &mut RuleSet) -> Vec<CompiledRule> {
        let mut inside = String::new();
        let mut out = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let pointer: Arc<str> = format!("{place}/{index}").into();
            let number = self.texts.rule(&pointer);
            let mut tests = Vec::with_capacity(rule.conditions.len());
            for (index, condition) in rule.conditions.iter().enumerate() {
                inside.clear();
                inside.push_str("/conditions");
                push_index(&mut inside, index);
                tests.push(self.test(condition, &pointer, &mut inside, set));
            }
            out.push(CompiledRule { number, pointer, tests });
        }
        out
    }

    /// `inside`: the way from the rule to the condition.
    fn test(
        &mut self,
        condition: &Condition,
        rule: &Arc<str>,
        inside: &mut String,
        set: &mut RuleSet,
    ) -> Test {
        let length = inside.len();
        let test = match condition {
            Condition::Compare(comparison) => {
                set.comparisons += 1;
                Test::Compare {
                    source: source(&comparison.path, &mut set.paths),
                    matcher: Matcher::new(comparison),
                    number: self.texts.condition(rule, inside, comparison),
                }
            }
            Condition::Any(inner) => {
                let tests = inner.iter().enumerate().map(|(index, condition)| {
                    inside.truncate(length);
                    inside.push_str("/any");
                    push_index(inside, index);
                    self.test(condition, rule, inside, set)
                });
                Test::Any(tests.collect())
            }
            Condition::Not(inner) => {
                inside.push_str("/not");
                Test::Not(Box::new(self.test(inner, rule, inside, set)))
            }
        };
        inside.truncate(length);
        test
    }
}

fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    pointer.push_str(&index.to_string());
}

fn source(path: &Path, paths: &mut PathTree) -> Source {
    match path {
        Path::Context(context) => Source::Context(*context),
        Path::Arguments(segments) => {
            let each = segments.iter().position(|s| *s == Segment::Each);
            let (plain, rest) = segments.split_at(each.unwrap_or(segments.len()));
            Source::Slot(paths.slot(plain), rest.to_vec())
        }
    }
}
