//! What was decided, and why.

use serde::Serialize;
use sluice_domain::{Charge, Code};

use crate::document::Approver;
use crate::trace::Trace;

/// What to do with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Refuse and say why.
    Deny,
    /// Refuse as if the tool did not exist.
    Hide,
    /// Forward, once the charges are reserved.
    Forward,
    /// Park for a person, once the charges are reserved.
    Approve,
}

/// The decision about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Of the decision that was taken, or under `observe` would have been.
    pub code: Code,
    /// JSON Pointer into the normalised document, `(hidden)` and the like, or empty.
    pub rule: String,
    /// For the agent, without a prefix.
    pub message: String,
    /// To reserve in one step before the call goes on.
    pub charges: Vec<Charge>,
    pub approval: Option<ApprovalPlan>,
    /// The counter that can never hold the call (code `rate_limited` without a retry).
    pub counter: Option<String>,
    /// The policy or the grant only watches: limits and unavailable counters must not stop the call either.
    pub observing: bool,
    /// Forwarded although the policy says otherwise.
    pub observed: bool,
    /// The verdict that `observed` set aside.
    pub would_be: Option<Verdict>,
    /// The log does not keep what a rule needs (simulation only); the rest is the decision without it.
    pub cannot_tell: bool,
    /// What does not fit the pinned input schema, where the server's setting is `log`.
    pub schema_note: Option<String>,
    /// Every step that was looked at, in order.
    pub trace: Trace,
}

/// How the approval of a parked call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPlan {
    /// The rule that asked.
    pub rule: String,
    /// Seconds that the call is held open.
    pub hold: u32,
    /// Seconds until it is void.
    pub expires: u32,
    pub approvers: Vec<Approver>,
    pub quorum: u8,
    /// Whether the member who made the grant may decide.
    pub self_allowed: bool,
    /// The rule's own sentence for the agent, if it has one.
    pub on_deny: Option<String>,
}

/// A step of the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    Hide,
    UnknownTool,
    Drift,
    Held,
    Default,
    Require,
    DenyIf,
    Schema,
    Amount,
    Limit,
    ApproveIf,
}

impl StepKind {
    /// The word in a trace.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hide => "hide",
            Self::UnknownTool => "unknown_tool",
            Self::Drift => "drift",
            Self::Held => "held",
            Self::Default => "default",
            Self::Require => "require",
            Self::DenyIf => "deny_if",
            Self::Schema => "schema",
            Self::Amount => "amount",
            Self::Limit => "limit",
            Self::ApproveIf => "approve_if",
        }
    }
}

/// How a step came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// It lets the call go on.
    Passed,
    /// It refuses the call.
    Refused,
    /// It parks the call.
    Parks,
    /// A charge to reserve.
    Charges,
    /// Noted in the log only.
    Noted,
    /// The log does not keep what it needs (simulation only).
    CannotTell,
}

impl StepResult {
    /// The word in a trace.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Parks => "parks",
            Self::Charges => "charges",
            Self::Noted => "noted",
            Self::CannotTell => "cannot_tell",
        }
    }
}

/// A value's type and size, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Found {
    #[serde(rename = "type")]
    pub kind: ValueKind,
    /// Bytes of JSON text.
    pub bytes: usize,
}

/// JSON's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    Null,
    Boolean,
    Number,
    String,
    List,
    Object,
}

impl ValueKind {
    /// The word in a trace.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::List => "list",
            Self::Object => "object",
        }
    }

    /// With its article, for messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// The truth of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    True,
    False,
    /// Undecidable: nothing is there.
    Missing,
    /// Undecidable: another type is there.
    WrongType,
    /// The log does not keep the value (simulation only).
    CannotTell,
}

impl Truth {
    pub(crate) const fn of(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }

    /// `true`, `false`, `unknown` or `cannot_tell`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Missing | Self::WrongType => "unknown",
            Self::CannotTell => "cannot_tell",
        }
    }

    pub(crate) const fn why(self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("missing"),
            Self::WrongType => Some("wrong_type"),
            _ => None,
        }
    }
}
