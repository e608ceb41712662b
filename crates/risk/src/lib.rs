//! Classifies tools, explains why, recommends rules, knows the kinds of attack.
//!
//! Pure: no clock, no network, no model. The same definition always gets the same rating, and every
//! rating quotes the words that decided it.

mod attacks;
pub mod catalogue;
mod classify;
mod entry;
mod findings;
pub mod grade;
mod guides;
mod lexicon;
mod options;
mod rating;
mod recommend;
mod text;
mod words;

pub use attacks::{Attack, Incident, Scenario, ScenarioCall, ScenarioOutcome, attacks, attacks_on};
pub use classify::classify;
pub use findings::{Finding, FindingKind, findings};
pub use guides::{Guide, guides};
pub use options::{OptionError, OptionField, OptionKind, RuleOption, options};
pub use rating::{Confidence, Cue, Direction, Modifier, ModifierKind, Rating, Reason, Signal};
pub use recommend::{
    RatedTool, Recommended, RecommendedPolicy, Rest, counter_name, recommended, recommended_policy,
};
pub use text::is_invisible;
