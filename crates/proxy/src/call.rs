//! A `tools/call`: decide, charge, park if a person is asked, forward.

use std::sync::Arc;

use axum::response::Response;
use sluice_domain::metrics;
use sluice_domain::{Charge, Code, Outcome};
use sluice_mcp::ToolCall;
use sluice_policy::{Decision, Verdict, limit_message};

use crate::approve;
use crate::arguments;
use crate::decide::{self, Booking, Charged, Limited};
use crate::exchange::{Exchange, Refusal};
use crate::{follow, pass};

/// Longest trace that is logged.
const MAX_TRACE: usize = 32 * 1024;

/// Decides a call and does what was decided.
pub(crate) async fn call(mut exchange: Box<Exchange<'_>>, tool: &ToolCall<'_>) -> Response {
    let now = (exchange.inner.clock)();
    let shown = decide::shown(&exchange.inner, &exchange.entry.route, &tool.name).await;
    let client = exchange.client_name();
    let decided = decide::decide(&exchange.inner, &exchange.entry, tool, shown, client, now);
    let decision = match decided {
        Ok(decision) => decision,
        Err(problem) => {
            let message = format!("The arguments cannot be read: {problem}.");
            return exchange.refuse_call(&Refusal::new(
                Outcome::Denied,
                Code::ArgumentsInvalid,
                "(arguments)",
                &message,
            ));
        }
    };
    note(&mut exchange, &decision, tool);
    let goes_on = matches!(decision.verdict, Verdict::Forward | Verdict::Approve);
    if goes_on
        && exchange.modern()
        && let Some(rounds) =
            follow::continues(&exchange.inner, &exchange.entry, exchange.envelope).await
    {
        // The same call, with what the server asked for: charged and approved when it first came.
        exchange.rounds = rounds;
        return pass::forward(exchange, None).await;
    }
    match decision.verdict {
        Verdict::Deny | Verdict::Hide => exchange.refuse_call(&refusal(&decision)),
        Verdict::Approve => Box::pin(approve::approve(exchange, &decision, tool)).await,
        Verdict::Forward => match book(&mut exchange, &decision, tool).await {
            Ok(booking) => pass::forward(exchange, booking).await,
            Err(refusal) => exchange.refuse_call(&refusal),
        },
    }
}

/// What the log keeps of a decision and its call.
fn note(exchange: &mut Exchange<'_>, decision: &Decision, tool: &ToolCall<'_>) {
    let values = exchange.entry.route.record.server.settings.log_argument_values;
    let arguments = arguments::for_log(tool.arguments, values);
    let trace = decision.trace.to_json_within(MAX_TRACE);
    exchange.recorder.note(|record| {
        record.arguments = Some(arguments);
        record.trace = trace;
        record.code = decision.code;
        record.rule.clone_from(&decision.rule);
        record.observed = decision.observed;
        record.counter.clone_from(&decision.counter);
        if decision.observed {
            record.message.clone_from(&decision.message);
            record.outcome = would_be(decision);
        } else if let Some(schema) = &decision.schema_note {
            record.message = schema.chars().take(512).collect();
        }
    });
}

/// The outcome that an observed call would have had.
const fn would_be(decision: &Decision) -> Outcome {
    match (decision.would_be, decision.code) {
        (_, Code::RateLimited) => Outcome::Limited,
        (Some(Verdict::Hide), _) => Outcome::Hidden,
        (Some(Verdict::Approve), _) => Outcome::Waiting,
        (Some(Verdict::Deny), _) => Outcome::Denied,
        (Some(Verdict::Forward) | None, _) => Outcome::Allowed,
    }
}

/// A refusal by rule.
pub(crate) fn refusal(decision: &Decision) -> Refusal {
    let outcome = match (decision.verdict, decision.code) {
        (Verdict::Hide, _) => Outcome::Hidden,
        (_, Code::RateLimited) => Outcome::Limited,
        _ => Outcome::Denied,
    };
    Refusal {
        counter: decision.counter.clone(),
        ..Refusal::new(outcome, decision.code, &decision.rule, &decision.message)
    }
}

/// A refusal by limit.
pub(crate) fn limit_refusal(tool: &str, limited: &Limited) -> Refusal {
    let Limited { code, charge, retry_after_s } = limited;
    let message = match code {
        Code::RateLimited if charge.rule == decide::DAY_RULE => day_message(charge, *retry_after_s),
        Code::RateLimited => limit_message(tool, charge, *retry_after_s),
        _ => unavailable_message(tool, charge),
    };
    Refusal {
        counter: Some(charge.counter.clone()),
        retry_after_s: *retry_after_s,
        ..Refusal::new(Outcome::Limited, *code, &charge.rule, &message)
    }
}

fn day_message(charge: &Charge, retry_after_s: Option<u64>) -> String {
    let most = charge.max;
    let limited = format!(
        "The operator of this gateway allows this workspace {most} tool calls a day (UTC), whichever tool they are for."
    );
    match retry_after_s {
        Some(seconds) => format!("{limited} Retry after {seconds} s."),
        None => limited,
    }
}

fn unavailable_message(tool: &str, charge: &Charge) -> String {
    format!(
        "{tool} is limited by the counter {}, which cannot be read at the moment, so the call was not made. Try again later.",
        charge.counter
    )
}

/// Books the call's charges.
pub(crate) async fn book(
    exchange: &mut Exchange<'_>,
    decision: &Decision,
    tool: &ToolCall<'_>,
) -> Result<Option<Booking>, Refusal> {
    let inner = Arc::clone(&exchange.inner);
    let started = exchange.recorder.elapsed_us();
    let (route, session) = (&exchange.entry.route, exchange.session.as_ref());
    let verdict = decide::charge(&inner, route, session, &tool.name, decision, None).await;
    let waited = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.limits_us = waited);
    if !decision.charges.is_empty() {
        metrics::LIMITS.micros([], u64::try_from(waited).unwrap_or(0));
    }
    match verdict {
        Charged::Booked(booking) => Ok(booking),
        Charged::Limited(limited) => Err(limit_refusal(&tool.name, &limited)),
        Charged::Observed(limited) => {
            let refusal = limit_refusal(&tool.name, &limited);
            exchange.recorder.note(|record| {
                // A rule that came first stays what the log says.
                if !record.observed {
                    record.observed = true;
                    record.outcome = refusal.outcome;
                    record.code = refusal.code;
                    record.rule = refusal.rule;
                    record.message = refusal.message;
                    record.counter = refusal.counter;
                    record.retry_after_s =
                        refusal.retry_after_s.and_then(|s| i64::try_from(s).ok());
                }
            });
            Ok(None)
        }
    }
}
