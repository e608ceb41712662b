//! The kinds of attack on agents and their tools, and the policy that stops or limits each.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_domain::{Category, OnDrift};

/// Something that happened or was shown, with a public source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// In our words.
    pub what: String,
    /// `2025-05` or `2025-05-26`.
    pub date: String,
    pub source: String,
}

/// What the policy, with the server's settings, does to the scenario's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioOutcome {
    Deny,
    Hide,
    Approve,
    /// The first calls pass; a counter stops the rest.
    Limit,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioCall {
    pub tool: String,
    pub arguments: Value,
}

/// The call that plays the attack.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub tool: String,
    pub arguments: Value,
    pub outcome: ScenarioOutcome,
    /// The tool's definition changed since it was reviewed.
    #[serde(default)]
    pub changed: bool,
    /// The reviewed list names the tool.
    #[serde(default = "yes")]
    pub known: bool,
    /// The server's setting for changed tools, where the attack is about it.
    #[serde(default)]
    pub on_drift: Option<OnDrift>,
    /// Ordinary work that the same policy lets through, or lets wait for a person.
    #[serde(default)]
    pub still_passes: Option<ScenarioCall>,
}

const fn yes() -> bool {
    true
}

/// One kind of attack.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    pub slug: String,
    pub title: String,
    /// One sentence for lists.
    pub summary: String,
    /// How it works, in our words; paragraphs are parted by an empty line.
    pub how: String,
    #[serde(default)]
    pub incident: Option<Incident>,
    /// What kinds of tool it uses.
    pub categories: Vec<Category>,
    /// A whole policy document that stops or limits it.
    pub policy: Value,
    /// What the policy does, in one sentence.
    pub effect: String,
    pub scenario: Scenario,
}

const ATTACKS: &str = include_str!("../catalogue/attacks.json");

// A test reads the same file and fails where this would fall back.
static ALL: LazyLock<Vec<Attack>> =
    LazyLock::new(|| serde_json::from_str(ATTACKS).unwrap_or_default());

/// Every kind of attack we know, in a fixed order.
pub fn attacks() -> &'static [Attack] {
    &ALL
}

/// Those that use tools of this category.
pub fn attacks_on(category: Category) -> impl Iterator<Item = &'static Attack> {
    ALL.iter().filter(move |attack| attack.categories.contains(&category))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chrono::DateTime;
    use sluice_policy::{Arguments, CallInput, Settings, ToolFacts, Verdict, check, compile};

    use super::*;

    struct Played {
        verdict: Verdict,
        charges: usize,
    }

    fn play(attack: &Attack, tool: &str, arguments: &Value, facts: ToolFacts) -> Played {
        let policy = compile(&attack.policy.to_string()).expect("a policy");
        let text = arguments.to_string();
        let arguments = Arguments::parse(&text).expect("arguments");
        let now = DateTime::from_timestamp(1_796_000_000, 0).expect("a time");
        let on_drift = attack.scenario.on_drift.unwrap_or(OnDrift::AllowAndFlag);
        let settings = Settings { on_drift, ..Settings::default() };
        let call = CallInput { facts, settings, ..CallInput::new(tool, arguments, now) };
        let decision = policy.decide(&call);
        Played { verdict: decision.verdict, charges: decision.charges.len() }
    }

    #[test]
    fn every_attack_is_read_and_its_policy_is_sound() {
        let all: Vec<Attack> = serde_json::from_str(ATTACKS).expect("attacks.json fits its type");
        assert!(all.len() >= 30 && all.len() == attacks().len());
        let mut slugs = HashSet::new();
        for attack in attacks() {
            assert!(slugs.insert(&attack.slug), "{} twice", attack.slug);
            let checked = check(&attack.policy.to_string(), None);
            assert!(checked.ok, "{}: {:?}", attack.slug, checked.problems);
            assert!(!attack.categories.is_empty() && attack.effect.ends_with('.'));
            if let Some(incident) = &attack.incident {
                assert!(incident.source.starts_with("https://") && incident.date.len() >= 7);
            }
        }
    }

    #[test]
    fn every_policy_stops_or_limits_its_scenario() {
        for attack in attacks() {
            let scenario = &attack.scenario;
            let facts =
                ToolFacts { known: scenario.known, changed: scenario.changed, ..ToolFacts::KNOWN };
            let played = play(attack, &scenario.tool, &scenario.arguments, facts);
            let expected = match scenario.outcome {
                ScenarioOutcome::Deny => played.verdict == Verdict::Deny,
                ScenarioOutcome::Hide => played.verdict == Verdict::Hide,
                ScenarioOutcome::Approve => played.verdict == Verdict::Approve,
                ScenarioOutcome::Limit => played.verdict == Verdict::Forward && played.charges > 0,
            };
            assert!(expected, "{}: {:?}", attack.slug, played.verdict);
        }
    }

    #[test]
    fn ordinary_work_goes_on() {
        for attack in attacks() {
            let Some(call) = &attack.scenario.still_passes else { continue };
            let played = play(attack, &call.tool, &call.arguments, ToolFacts::KNOWN);
            assert!(
                matches!(played.verdict, Verdict::Forward | Verdict::Approve),
                "{}: {:?}",
                attack.slug,
                played.verdict
            );
        }
    }

    #[test]
    fn every_category_has_attacks() {
        for category in Category::ALL {
            assert!(attacks_on(*category).next().is_some(), "{category}");
        }
    }
}
