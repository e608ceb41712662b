//! The engine on generated calls, and what became of them in the reference's words.

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{OnDrift, UnknownTools};
use sluice_policy::{Arguments, CallInput, CompiledPolicy, Decision, Settings, ToolFacts, Verdict};

use crate::generate::Call;
use crate::reference::Outcome;

/// Where the hours of calls are counted from.
const MONDAY: &str = "2026-11-30T00:00:00Z";

pub(crate) fn facts(call: &Call) -> ToolFacts {
    ToolFacts {
        known: call.known,
        changed: call.changed,
        held: call.held,
        category: call.category.map(|word| word.parse().expect("a category")),
        severity: call.severity.map(|word| word.parse().expect("a severity")),
    }
}

pub(crate) fn settings(call: &Call) -> Settings {
    Settings {
        unknown_tools: if call.by_policy { UnknownTools::ByPolicy } else { UnknownTools::Deny },
        on_drift: if call.drift_denied { OnDrift::Deny } else { OnDrift::AllowAndFlag },
        validate_arguments: call.validate.parse().expect("a setting"),
    }
}

pub(crate) fn decide(policy: &CompiledPolicy, call: &Call, arguments: &str) -> Decision {
    let misfit = || call.misfit.then(|| "x".to_owned());
    let arguments = Arguments::parse(arguments).expect("arguments");
    let midnight: DateTime<Utc> = MONDAY.parse().expect("a time");
    policy.decide(&CallInput {
        facts: facts(call),
        settings: settings(call),
        schema_problem: &misfit,
        grant_label: call.label,
        client_name: call.client,
        observe: call.observe,
        ..CallInput::new(&call.tool, arguments, midnight + TimeDelta::hours(call.hours))
    })
}

pub(crate) fn outcome(decision: &Decision) -> Outcome {
    let verdict = match decision.verdict {
        Verdict::Deny => "deny",
        Verdict::Hide => "hide",
        Verdict::Forward => "forward",
        Verdict::Approve => "approve",
    };
    let charges = decision.charges.iter().map(|charge| {
        format!(
            "{} {} {} {} {} {} {} {}",
            charge.counter,
            charge.window,
            charge.scope,
            charge.reset,
            charge.max.billionths() * 1_000,
            charge.rule,
            charge.amount.billionths() * 1_000,
            charge.on_unavailable
        )
    });
    Outcome {
        verdict,
        code: decision.code.as_str().to_owned(),
        rule: decision.rule.clone(),
        charges: charges.collect(),
        observed: decision.observed,
    }
}
