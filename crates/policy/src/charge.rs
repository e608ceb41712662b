//! What a call's limits ask of the counters.

use sluice_domain::{Amount, Charge, Code, OnUnavailable};

use crate::compile::CompiledLimit;
use crate::decide::Set;
use crate::decision::{StepKind, StepResult};
use crate::evaluate::Facts;
use crate::item::Item;
use crate::message::read_amount;
use crate::phrase::limit_message;
use crate::trace::Trace;

/// A limit that no counter needs to be asked about.
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) rule: String,
    pub(crate) message: String,
    /// Of the limit that can never hold the call.
    pub(crate) counter: Option<String>,
}

/// The charges of every limit, and whether the log keeps all that they need.
pub(crate) fn gather(
    tool: &str,
    sets: &[Set<'_, '_, '_>],
    trace: &mut Trace,
) -> Result<(Vec<Charge>, bool), Refused> {
    let mut charges: Vec<Charge> = Vec::new();
    let mut counted: Vec<&CompiledLimit> = Vec::new();
    let mut all_told = true;
    let limits = sets.iter().flat_map(|set| set.rules.limits.iter().map(|l| (l, &set.facts)));
    for (limit, facts) in limits {
        let mut told = |step, result| trace.step(step, Some(limit.number), result);
        match amount(tool, limit, facts) {
            Ok(Some(amount)) => {
                let again = counted.iter().any(|old| same_source(old, limit));
                add(&mut charges, limit, amount, again);
                counted.push(limit);
                told(StepKind::Limit, StepResult::Charges);
            }
            Ok(None) => {
                add(&mut charges, limit, Amount::ZERO, false);
                all_told = false;
                told(StepKind::Amount, StepResult::CannotTell);
            }
            Err(message) => {
                told(StepKind::Amount, StepResult::Refused);
                let (code, rule) = (Code::AmountInvalid, limit.pointer.to_string());
                return Err(Refused { code, rule, message, counter: None });
            }
        }
    }
    match charges.iter().find(|charge| charge.amount > charge.max) {
        None => Ok((charges, all_told)),
        Some(never) => {
            let limit = counted.iter().find(|limit| *limit.pointer == never.rule);
            if let Some(limit) = limit {
                trace.refuse_limit(limit.number);
            }
            Err(Refused {
                code: Code::RateLimited,
                rule: never.rule.clone(),
                message: limit_message(tool, never, None),
                counter: Some(never.counter.clone()),
            })
        }
    }
}

/// `Ok(None)`: the log does not keep it.
fn amount(
    tool: &str,
    limit: &CompiledLimit,
    facts: &Facts<'_, '_>,
) -> Result<Option<Amount>, String> {
    let Some((slot, path)) = &limit.amount else { return Ok(Some(Amount::ONE)) };
    let item = facts.slots.get(*slot).copied().unwrap_or(Item::Missing);
    read_amount(tool, path, &item)
}

fn same_source(a: &CompiledLimit, b: &CompiledLimit) -> bool {
    let key = |limit: &CompiledLimit| (limit.limit.window, limit.limit.scope, limit.limit.reset);
    key(a) == key(b)
        && a.limit.counter == b.limit.counter
        && a.limit.increment_from == b.limit.increment_from
}

/// Limits of one call on the same counter are one charge: the smallest `max` holds, and what is
/// counted from the same source is counted once.
fn add(charges: &mut Vec<Charge>, limit: &CompiledLimit, amount: Amount, again: bool) {
    let rules = &limit.limit;
    let same = charges.iter_mut().find(|old| {
        old.counter == rules.counter
            && (old.window, old.scope, old.reset) == (rules.window, rules.scope, rules.reset)
    });
    if let Some(old) = same {
        if !again {
            old.amount = old.amount.saturating_add(amount);
        }
        if rules.max < old.max {
            old.max = rules.max;
            old.rule = limit.pointer.to_string();
        }
        if rules.on_unavailable == OnUnavailable::Deny {
            old.on_unavailable = OnUnavailable::Deny;
        }
        return;
    }
    charges.push(Charge {
        rule: limit.pointer.to_string(),
        counter: rules.counter.clone(),
        scope: rules.scope,
        window: rules.window,
        reset: rules.reset,
        max: rules.max,
        amount,
        increment_from: limit.amount.as_ref().map(|(_, path)| path.clone()),
        on_unavailable: rules.on_unavailable,
    });
}
