//! Policy tests: a file of calls and the decisions that are expected of them.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_domain::{Category, Severity};

use crate::arguments::Arguments;
use crate::call::{CallInput, ToolFacts};
use crate::compile::CompiledPolicy;
use crate::decision::{Decision, Verdict};

/// A call as people write it in files: for `eval` and for tests.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFile {
    pub tool: String,
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub context: CallContext,
}

/// The facts of a call in a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallContext {
    pub grant: GrantContext,
    pub session: SessionContext,
    pub tool: ToolContext,
    /// RFC 3339.
    pub now: Option<String>,
}

/// `context.grant`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrantContext {
    pub label: String,
}

/// `context.session`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionContext {
    pub client_name: Option<String>,
}

/// `context.tool`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolContext {
    pub category: Option<String>,
    pub severity: Option<String>,
}

/// Why a file cannot be read as a call or as tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(String);

impl CallFile {
    /// Reads one call.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        crate::json::check_strict(text)
            .map_err(|error| FileError(format!("not JSON: {error} (byte {})", error.at)))?;
        serde_json::from_str(text).map_err(|error| FileError(format!("not a call: {error}")))
    }

    /// Decides the call: the tool known and unchanged, `now` where the file does not say it.
    pub fn decide(
        &self,
        policy: &CompiledPolicy,
        now: DateTime<Utc>,
    ) -> Result<Decision, FileError> {
        let raw = self.arguments.as_ref().map_or("{}", |raw| raw.get());
        let arguments =
            Arguments::parse(raw).map_err(|error| FileError(format!("arguments: {error}")))?;
        let now = match &self.context.now {
            None => now,
            Some(text) => DateTime::parse_from_rfc3339(text)
                .map_err(|_| FileError(format!("context.now: `{text}` is not an RFC 3339 time")))?
                .to_utc(),
        };
        let facts = ToolFacts {
            category: word("category", self.context.tool.category.as_ref(), Category::from_str)?,
            severity: word("severity", self.context.tool.severity.as_ref(), Severity::from_str)?,
            ..ToolFacts::KNOWN
        };
        Ok(policy.decide(&CallInput {
            facts,
            grant_label: &self.context.grant.label,
            client_name: self.context.session.client_name.as_deref(),
            ..CallInput::new(&self.tool, arguments, now)
        }))
    }
}

fn word<T, E: std::fmt::Display>(
    what: &str,
    text: Option<&String>,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, FileError> {
    let read =
        |text: &String| read(text).map_err(|e| FileError(format!("context.tool.{what}: {e}")));
    text.map(read).transpose()
}

/// What became of a call, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    Allow,
    Deny,
    Approve,
}

impl CaseOutcome {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Approve => "approve",
        }
    }
}

impl Decision {
    /// What becomes of the call: an observed one goes through.
    pub const fn outcome(&self) -> CaseOutcome {
        match self.verdict {
            Verdict::Forward => CaseOutcome::Allow,
            Verdict::Approve => CaseOutcome::Approve,
            Verdict::Deny | Verdict::Hide => CaseOutcome::Deny,
        }
    }
}

/// A file of tests.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CasesFile {
    /// The document itself, or the path of its file beside this one. The editor gives its own.
    #[serde(default)]
    pub policy: Option<Box<RawValue>>,
    /// The time of calls that name none.
    #[serde(default)]
    pub now: Option<String>,
    pub cases: Vec<Case>,
}

/// One test: a call and what is expected.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    #[serde(default)]
    pub name: Option<String>,
    pub tool: String,
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub context: CallContext,
    pub expect: Expect,
}

/// What is expected: the outcome, and whatever else is named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Expect {
    Outcome(CaseOutcome),
    Whole(ExpectWhole),
}

/// The long form of [`Expect`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectWhole {
    pub outcome: CaseOutcome,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    pub rule: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
}

/// How one test came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    pub name: String,
    pub passed: bool,
    /// What was found instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

/// How a file of tests came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CasesReport {
    pub passed: usize,
    pub failed: usize,
    pub results: Vec<CaseResult>,
}

impl CasesFile {
    /// Reads a file of tests.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        crate::json::check_strict(text)
            .map_err(|error| FileError(format!("not JSON: {error} (byte {})", error.at)))?;
        serde_json::from_str(text).map_err(|error| FileError(format!("not policy tests: {error}")))
    }
}

/// Runs tests against a policy. `now`: the time of calls that name none.
pub fn run_tests(policy: &CompiledPolicy, file: &CasesFile, now: DateTime<Utc>) -> CasesReport {
    let results: Vec<CaseResult> = file
        .cases
        .iter()
        .enumerate()
        .map(|(index, case)| run(policy, file, index, case, now))
        .collect();
    let passed = results.iter().filter(|result| result.passed).count();
    CasesReport { passed, failed: results.len() - passed, results }
}

fn run(
    policy: &CompiledPolicy,
    file: &CasesFile,
    index: usize,
    case: &Case,
    now: DateTime<Utc>,
) -> CaseResult {
    let name = case.name.clone().unwrap_or_else(|| format!("case {} ({})", index + 1, case.tool));
    let mut context = case.context.clone();
    context.now = context.now.or_else(|| file.now.clone());
    let call = CallFile { tool: case.tool.clone(), arguments: case.arguments.clone(), context };
    let differences = match call.decide(policy, now) {
        Ok(decision) => compare(&case.expect, &decision),
        Err(error) => vec![error.to_string()],
    };
    CaseResult { name, passed: differences.is_empty(), differences }
}

fn compare(expect: &Expect, decision: &Decision) -> Vec<String> {
    let (outcome, code, rule, message) = match expect {
        Expect::Outcome(outcome) => (*outcome, None, None, None),
        Expect::Whole(whole) => {
            (whole.outcome, whole.code.as_ref(), whole.rule.as_ref(), whole.message.as_ref())
        }
    };
    let pairs = [
        ("outcome", Some(outcome.as_str()), decision.outcome().as_str()),
        ("code", code.map(String::as_str), decision.code.as_str()),
        ("rule", rule.map(String::as_str), decision.rule.as_str()),
        ("message", message.map(String::as_str), decision.message.as_str()),
    ];
    let differs = pairs.iter().filter_map(|(what, wanted, found)| {
        let wanted = (*wanted)?;
        (wanted != *found).then(|| format!("{what}: expected `{wanted}`, found `{found}`"))
    });
    let mut out: Vec<String> = differs.collect();
    if !out.is_empty() && !decision.rule.is_empty() {
        out.push(format!("decided by {} ({})", decision.rule, decision.code));
    }
    out
}
