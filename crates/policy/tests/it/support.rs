//! Short ways to say a policy and a call.

use chrono::{DateTime, TimeZone, Utc};
use sluice_policy::{Arguments, CallInput, CompiledPolicy, Decision, compile};

/// Monday 30 November 2026, 12:00 UTC.
pub(crate) fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).single().expect("a time")
}

pub(crate) fn policy(text: &str) -> CompiledPolicy {
    compile(text).unwrap_or_else(|problems| panic!("{text}: {problems:#?}"))
}

/// A policy that denies by default and has these tools.
pub(crate) fn tools(tools: &str) -> CompiledPolicy {
    policy(&format!(r#"{{"version":"1","default":"deny","tools":{tools}}}"#))
}

pub(crate) fn call<'a>(tool: &'a str, arguments: &'a str) -> CallInput<'a> {
    let arguments = Arguments::parse(arguments).unwrap_or_else(|e| panic!("{arguments}: {e}"));
    CallInput::new(tool, arguments, now())
}

pub(crate) fn decide(policy: &CompiledPolicy, tool: &str, arguments: &str) -> Decision {
    policy.decide(&call(tool, arguments))
}
