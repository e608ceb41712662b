//! The policy language: parse, check, compile, decide, explain, simulate. Pure: no clock, no I/O, no async.
//!
//! The steps are visible: [`check`] tells everything that is wrong with a text, [`compile`] makes it
//! ready, [`CompiledPolicy::decide`] decides a call and says why.

mod approval;
mod arguments;
mod call;
mod check;
mod compile;
mod decide;
mod decision;
mod document;
mod evaluate;
mod extract;
mod item;
mod json;
mod lint;
mod matcher;
mod message;
mod normalise;
mod number;
mod op;
mod path;
mod pattern;
mod phrase;
mod problem;
mod read;
pub mod recorded;
mod shape;
mod short_forms;
mod suggest;

pub use arguments::{Arguments, ArgumentsError};
pub use call::{CallInput, Settings, ToolFacts};
pub use check::{Checked, KnownTool, check};
pub use compile::{CompiledPolicy, compile};
pub use decide::decide_without_policy;
pub use decision::{
    ApprovalPlan, ConditionInfo, ConditionTrace, Decision, Found, StepKind, StepResult, TraceStep,
    Truth, ValueKind, Verdict,
};
pub use document::{
    Approval, Approver, Comparison, Condition, DefaultAction, Document, Limit, Mode, Rule,
    ToolEntry,
};
pub use op::Op;
pub use path::{Context, Path, Segment};
pub use phrase::limit_message;
pub use problem::{Problem, ProblemSeverity};
pub use shape::json_schema;
pub use short_forms::rate_counter;
