//! The words that a policy's traces share: written when a trace is first read, kept as long as the policy.

use std::sync::{Arc, OnceLock};

use crate::document::Comparison;
use crate::json::quote;
use crate::phrase;

/// What the numbers in a policy's traces stand for.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(super) rules: Vec<RuleText>,
    pub(super) conditions: Vec<ConditionText>,
}

#[derive(Debug)]
pub(super) struct RuleText {
    pub(super) pointer: Arc<str>,
    /// Its part of a trace's JSON, written when it is first asked for.
    json: OnceLock<Box<str>>,
}

#[derive(Debug)]
pub(super) struct ConditionText {
    pub(super) comparison: Arc<Comparison>,
    rule: Arc<str>,
    /// From the rule's pointer on.
    pub(super) inside: Box<str>,
    /// Written when a trace with it is first looked at.
    written: OnceLock<Written>,
}

/// A condition as the document states it, in words.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) pointer: Box<str>,
    pub(super) path: Box<str>,
    pub(super) wanted: Box<str>,
    /// The start of its JSON, up to its result.
    pub(super) json: Box<str>,
}

/// A number for a part of the policy.
pub(crate) type Number = u32;

pub(super) fn number(length: usize) -> Number {
    // A document of 256 KiB has not so many parts.
    Number::try_from(length).unwrap_or(Number::MAX)
}

impl Texts {
    /// A rule or a limit.
    pub(crate) fn rule(&mut self, pointer: &Arc<str>) -> Number {
        let number = number(self.rules.len());
        self.rules.push(RuleText { pointer: pointer.clone(), json: OnceLock::new() });
        number
    }

    /// A condition of a rule; `inside` leads from the rule to it.
    pub(crate) fn condition(
        &mut self,
        rule: &Arc<str>,
        inside: &str,
        comparison: &Arc<Comparison>,
    ) -> Number {
        let number = number(self.conditions.len());
        let (comparison, rule, inside) = (comparison.clone(), rule.clone(), inside.into());
        let written = OnceLock::new();
        self.conditions.push(ConditionText { comparison, rule, inside, written });
        number
    }
}

impl RuleText {
    pub(super) fn json(&self) -> &str {
        self.json.get_or_init(|| format!(",\"rule\":{}", quote(&self.pointer)).into())
    }
}

impl ConditionText {
    pub(super) fn written(&self) -> &Written {
        self.written.get_or_init(|| {
            let pointer = format!("{}{}", self.rule, self.inside);
            let path = self.comparison.path.to_string();
            let wanted = phrase::wanted(&self.comparison);
            let json = format!(
                "{{\"pointer\":{},\"path\":{},\"op\":\"{}\",\"wanted\":{},\"result\":\"",
                quote(&pointer),
                quote(&path),
                self.comparison.op.as_str(),
                quote(&wanted)
            );
            let (pointer, path, wanted) = (pointer.into(), path.into(), wanted.into());
            Written { pointer, path, wanted, json: json.into() }
        })
    }
}
