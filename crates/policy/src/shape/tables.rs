//! The tables themselves: every key of the language.

use super::formats::{
    APPROVER, ARGUMENT_PATH, COUNTER, EXPIRES, HOLD, PATH, RATE, RULE_NAME, WINDOW,
};
use super::{Extra, Field, ObjectShape, Shape};
use crate::op::Op;

/// Bytes of a document.
pub(crate) const MAX_TEXT: usize = 256 * 1024;
const MAX_TOOLS: usize = 2_000;
pub(crate) const MAX_RULES: usize = 64;
pub(crate) const MAX_CONDITIONS: usize = 32;
pub(crate) const MAX_LIMITS: usize = 16;
/// Levels of `any` and `not`.
pub(crate) const MAX_NESTING: usize = 4;
/// The largest whole amount: 15 digits.
pub(crate) const MAX_WHOLE: u64 = 999_999_999_999_999;
const MAX_WINDOW_SECONDS: u64 = 31 * 86_400;

const fn field(key: &'static str, shape: Shape, help: &'static str) -> Field {
    Field { key, shape, required: false, help }
}

const fn required(key: &'static str, shape: Shape, help: &'static str) -> Field {
    Field { key, shape, required: true, help }
}

pub(crate) static DOCUMENT: ObjectShape = ObjectShape {
    name: "document",
    what: "a policy document",
    extra: Extra::None,
    fields: &[
        required(
            "version",
            Shape::Words { what: "version", words: &["1"] },
            "The language's version: \"1\".",
        ),
        field("description", Shape::Text, "What the policy is for."),
        field(
            "mode",
            Shape::Words { what: "mode", words: &["enforce", "observe"] },
            "`observe`: decide and log, but let calls through.",
        ),
        required(
            "default",
            Shape::Words { what: "default", words: &["allow", "deny"] },
            "The fate of a tool that no entry of `tools` names.",
        ),
        field(
            "hide",
            Shape::List { item: &Shape::Name, min: 0, max: MAX_TOOLS },
            "Names or patterns: gone from the list, and refused when called.",
        ),
        field(
            "all_tools",
            Shape::Object(&ALL_TOOLS),
            "Rules for every call, besides the tool's own; they never widen access.",
        ),
        field(
            "tools",
            Shape::Tools { entry: &Shape::Object(&ENTRY), max: MAX_TOOLS },
            "Exact name or pattern to rules; {} allows the tool.",
        ),
    ],
};

static RULES: Shape = Shape::Object(&RULE);
static LIMIT_SHAPE: Shape = Shape::Object(&LIMIT);

const REQUIRE: Field = field(
    "require",
    Shape::List { item: &RULES, min: 0, max: MAX_RULES },
    "Each must hold, or the call is denied.",
);
const DENY_IF: Field = field(
    "deny_if",
    Shape::List { item: &RULES, min: 0, max: MAX_RULES },
    "Any that holds denies the call.",
);
const APPROVE_IF: Field = field(
    "approve_if",
    Shape::List { item: &RULES, min: 0, max: MAX_RULES },
    "Any that holds parks the call until a person decides.",
);
const LIMITS: Field = field(
    "limits",
    Shape::List { item: &LIMIT_SHAPE, min: 0, max: MAX_LIMITS },
    "How much may happen in a window.",
);
const APPROVAL_FIELD: Field = field("approval", Shape::Object(&APPROVAL), "How approvals go.");

static ALL_TOOLS: ObjectShape = ObjectShape {
    name: "all_tools",
    what: "`all_tools`",
    extra: Extra::None,
    fields: &[REQUIRE, DENY_IF, APPROVE_IF, LIMITS, APPROVAL_FIELD],
};

static ENTRY: ObjectShape = ObjectShape {
    name: "tool",
    what: "a tool's entry",
    extra: Extra::Entry,
    fields: &[
        REQUIRE,
        DENY_IF,
        APPROVE_IF,
        LIMITS,
        APPROVAL_FIELD,
        field(
            "rate_limit",
            Shape::Either(&RATE, &RATE_LIMIT),
            "Short for one limit of each MCP session.",
        ),
        field(
            "action",
            Shape::Words { what: "action", words: &["allow", "deny", "require_approval", "hide"] },
            "Short for the rule of that name.",
        ),
        field("reason", Shape::Text, "The message for the agent; only beside `action: deny`."),
    ],
};

static RATE_LIMIT: ObjectShape = ObjectShape {
    name: "rate_limit",
    what: "a rate limit",
    extra: Extra::None,
    fields: &[
        required("max", Shape::Whole { min: 0, max: MAX_WHOLE }, "Calls in a window."),
        required("window", Shape::Whole { min: 1, max: MAX_WINDOW_SECONDS }, "Seconds."),
    ],
};

static RULE: ObjectShape = ObjectShape {
    name: "rule",
    what: "a rule",
    extra: Extra::None,
    fields: &[
        field("name", Shape::Format(&RULE_NAME), "A name for people."),
        required(
            "conditions",
            Shape::List { item: &Shape::Condition, min: 0, max: MAX_CONDITIONS },
            "All must hold; none: always holds.",
        ),
        field("on_deny", Shape::Text, "Replaces the sentence for the agent."),
    ],
};

pub(super) static COMPARISON: ObjectShape = ObjectShape {
    name: "comparison",
    what: "a condition",
    extra: Extra::Comparison,
    fields: &[
        required("path", Shape::Format(&PATH), "What to look at."),
        required("op", Shape::Words { what: "operator", words: Op::WORDS }, "How to compare."),
        field("value", Shape::Value, "What to compare with."),
    ],
};

static LIMIT: ObjectShape = ObjectShape {
    name: "limit",
    what: "a limit",
    extra: Extra::Limit,
    fields: &[
        required("counter", Shape::Format(&COUNTER), "The counter's name."),
        required("window", Shape::Format(&WINDOW), "The span that is counted."),
        required("max", Shape::Amount, "The most in a window."),
        field(
            "scope",
            Shape::Words { what: "scope", words: &["grant", "session", "server", "workspace"] },
            "Whose calls are counted together; default `grant`.",
        ),
        field(
            "increment_from",
            Shape::Format(&ARGUMENT_PATH),
            "The argument whose value is counted; otherwise each call counts 1.",
        ),
        field(
            "reset",
            Shape::Words { what: "reset", words: &["sliding", "calendar"] },
            "`sliding` (default): no more than max in any window-long span; `calendar`: anew at UTC borders.",
        ),
        field(
            "on_unavailable",
            Shape::Words { what: "on_unavailable", words: &["deny", "allow"] },
            "What happens while counters cannot be reached; default `deny`.",
        ),
    ],
};

static APPROVAL: ObjectShape = ObjectShape {
    name: "approval",
    what: "an approval block",
    extra: Extra::None,
    fields: &[
        field(
            "hold",
            Shape::Format(&HOLD),
            "How long the call is held open: 0s to 10m, default 50s.",
        ),
        field(
            "expires",
            Shape::Format(&EXPIRES),
            "When an undecided approval is void: 1m to 7d, default 30m.",
        ),
        field(
            "approvers",
            Shape::List { item: &Shape::Format(&APPROVER), min: 1, max: 64 },
            "Who may decide; default admins and policy managers.",
        ),
        field("quorum", Shape::Whole { min: 1, max: 5 }, "How many must approve; default 1."),
        field("self", Shape::Boolean, "false: the member who made the grant may not decide."),
    ],
};
