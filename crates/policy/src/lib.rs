//! The policy language: parse, check, compile, decide, explain, simulate. Pure: no clock, no I/O, no async.
//!
//! The steps are visible: [`check`] tells everything that is wrong with a text, [`compile`] makes it
//! ready, [`CompiledPolicy::decide`] decides a call and says why.

mod approval;
mod arguments;
mod call;
mod cases;
mod charge;
mod check;
mod compile;
mod decide;
mod decision;
mod diff;
mod document;
pub mod edit;
mod evaluate;
mod extract;
mod input_schema;
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
mod sentences;
mod shape;
mod short_forms;
mod simulate;
mod suggest;
mod trace;

pub use arguments::{Arguments, ArgumentsError};
pub use call::{CallInput, Settings, ToolFacts};
pub use cases::{
    CallContext, CallFile, Case, CaseOutcome, CaseResult, CasesFile, CasesReport, Expect,
    ExpectWhole, FileError, GrantContext, SessionContext, ToolContext, run_tests,
};
pub use check::{Checked, KnownTool, check, check_bytes};
pub use compile::{CompiledPolicy, compile};
pub use decide::decide_without_policy;
pub use decision::{
    ApprovalPlan, Decision, Found, StepKind, StepResult, Truth, ValueKind, Verdict,
};
pub use diff::{Change, ChangeKind, diff};
pub use document::{
    Approval, Approver, Comparison, Condition, DefaultAction, Document, Limit, Mode, Rule,
    ToolEntry,
};
pub use input_schema::InputSchema;
pub use number::Decimal;
pub use op::Op;
pub use path::{Context, Path, Segment};
pub use phrase::limit_message;
pub use problem::{Problem, ProblemSeverity};
pub use sentences::{RuleSentence, sentences};
pub use shape::json_schema;
pub use short_forms::rate_counter;
pub use simulate::{
    ChangedCall, Comparison as SimulationComparison, PastServer, RecordedCall, SimulatedCall,
    SimulatedOutcome, Simulation, Tally, compare, simulate,
};
pub use suggest::nearest;
pub use trace::{ConditionTrace, Trace, TraceStep};
