//! What is known of a call when it is decided.

use chrono::{DateTime, Utc};
use sluice_domain::{Category, OnDrift, ServerSettings, Severity, UnknownTools, ValidateArguments};

use crate::arguments::Arguments;

/// What the gateway knows of a tool, besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolFacts {
    /// The upstream's list names it.
    pub known: bool,
    /// Its definition changed since it was reviewed.
    pub changed: bool,
    /// It is held for review: signs of a poisoned definition.
    pub held: bool,
    pub category: Option<Category>,
    pub severity: Option<Severity>,
}

impl ToolFacts {
    /// Known, unchanged, unrated.
    pub const KNOWN: Self =
        Self { known: true, changed: false, held: false, category: None, severity: None };
    /// Not in the upstream's list.
    pub const UNKNOWN: Self = Self { known: false, ..Self::KNOWN };
}

/// The server's settings that bear on a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub unknown_tools: UnknownTools,
    pub on_drift: OnDrift,
    pub validate_arguments: ValidateArguments,
}

impl From<&ServerSettings> for Settings {
    fn from(settings: &ServerSettings) -> Self {
        Self {
            unknown_tools: settings.unknown_tools,
            on_drift: settings.on_drift,
            validate_arguments: settings.validate_arguments,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&ServerSettings::default())
    }
}

/// One call to decide.
#[derive(Clone, Copy)]
pub struct CallInput<'a> {
    pub tool: &'a str,
    pub arguments: Arguments<'a>,
    pub facts: ToolFacts,
    pub settings: Settings,
    /// Asked at its place in the order, and only there: what does not fit the pinned input schema.
    pub schema_problem: &'a dyn Fn() -> Option<String>,
    pub grant_label: &'a str,
    pub client_name: Option<&'a str>,
    pub now: DateTime<Utc>,
    /// The grant's own setting: decide and log, but let through.
    pub observe: bool,
    /// Keep argument values in the trace; otherwise only their types and sizes.
    pub show_values: bool,
}

fn fits() -> Option<String> {
    None
}

impl<'a> CallInput<'a> {
    /// A call of a known tool under default settings, for `..CallInput::new(…)`.
    pub fn new(tool: &'a str, arguments: Arguments<'a>, now: DateTime<Utc>) -> Self {
        Self {
            tool,
            arguments,
            facts: ToolFacts::KNOWN,
            settings: Settings::default(),
            schema_problem: &fits,
            grant_label: "",
            client_name: None,
            now,
            observe: false,
            show_values: false,
        }
    }
}

impl std::fmt::Debug for CallInput<'_> {
    /// Arguments may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallInput").field("tool", &self.tool).finish_non_exhaustive()
    }
}
