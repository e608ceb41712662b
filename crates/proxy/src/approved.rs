//! Releasing: an approved call runs once, after everything that it was approved under was looked at
//! again; identical calls get its result.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use sluice_domain::{ApprovalStatus, Code, Outcome, ReservationId};
use sluice_mcp::ToolCall;
use sluice_policy::{ApprovalPlan, Decision, Verdict};
use tokio::time::{Instant, timeout};

use crate::approve::{key, pending, stands, told};
use crate::call::{limit_refusal, refusal};
use crate::decide::{self, Booking};
use crate::exchange::{Exchange, Refusal};
use crate::pass;
use crate::ports::{Approval, Approvals, StoreUnavailable};
use crate::release::{Release, Which};

/// How often an identical call that is run elsewhere is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// What is over has its result there within this time, or has none.
const LAST: Duration = Duration::from_millis(300);

/// Runs an approved call, after everything that it was approved under was looked at again.
pub(crate) async fn release(
    mut exchange: Box<Exchange<'_>>,
    approvals: Arc<dyn Approvals>,
    approval: Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let inner = Arc::clone(&exchange.inner);
    let now = (inner.clock)();
    if given_up(&exchange).await {
        // Approved and unused, it waits for the next identical call.
        return pending(exchange, &approval, plan, tool);
    }
    let again = match rechecked(&mut exchange, &approval, tool, now).await {
        Ok(decision) => decision,
        Err(mut refusal) => {
            refusal.approval = Some(told(&exchange, &approval));
            return exchange.refuse_call(&refusal);
        }
    };
    let workspace = exchange.entry.route.record.workspace;
    match approvals.claim(workspace, approval.id, exchange.form.id, now).await {
        Ok(true) => {}
        // Somebody else was faster, or its time is over.
        Ok(false) => return joined(exchange, &*approvals, approval, plan, tool).await,
        Err(StoreUnavailable) => {
            let rule = again.rule.clone();
            let message =
                "The approval cannot be looked up at the moment, so the call was not made.";
            let code = Code::LimitsUnavailable;
            return exchange.refuse_call(&Refusal::new(Outcome::Denied, code, &rule, message));
        }
    }
    let clock = Arc::clone(&inner.clock);
    let call = exchange.form.id;
    let which = Which { workspace, id: approval.id, call };
    let claimed = Release::new(approvals, clock, which, &inner.shared);
    match rebooked(&exchange, &approval, &again, tool).await {
        Ok(booking) => {
            exchange.release = Some(claimed);
            exchange.recorder.outcome(Outcome::Allowed, Code::Allowed, "approved by a person");
            exchange.recorder.unsettle();
            pass::forward(exchange, booking).await
        }
        Err(mut refusal) => {
            claimed.not_run().await;
            refusal.approval = Some(told(&exchange, &approval));
            exchange.refuse_call(&refusal)
        }
    }
}

/// Whether the client gave up on this call while it waited.
async fn given_up(exchange: &Exchange<'_>) -> bool {
    let sessions = &exchange.inner.sessions;
    match (&exchange.open, exchange.envelope.id, exchange.recorder.at()) {
        (Some(open), _, _) => sessions.was_cancelled(open).await,
        (None, Some(id), Some(since)) => sessions.gave_up(&exchange.scope(), id, since).await,
        (None, _, _) => false,
    }
}

fn taken() -> Refusal {
    let message = "This call was approved once, and another request has used the approval.";
    Refusal::new(Outcome::Denied, Code::ApprovalExpired, "", message)
}

/// Decides again under the route as it is now: the approval is good only for what was approved.
async fn rechecked(
    exchange: &mut Exchange<'_>,
    approval: &Approval,
    tool: &ToolCall<'_>,
    now: DateTime<Utc>,
) -> Result<Decision, Refusal> {
    let before = key(exchange, tool).map(|key| key.rules_digest);
    let found = exchange.inner.cache.find(&exchange.token).await;
    let server = exchange.entry.route.record.server.id;
    match found {
        Ok(Some(entry)) if entry.route.admits(Some(server), now).is_ok() => exchange.entry = entry,
        _ => {
            let message =
                "The grant was revoked or has expired since, so the approved call was not made.";
            return Err(Refusal::new(Outcome::Denied, Code::ApprovalExpired, "", message));
        }
    }
    if key(exchange, tool).map(|key| key.rules_digest) != before {
        let message = "The policy changed since the call was approved, so it was not made. Send it again to ask anew.";
        return Err(Refusal::new(Outcome::Denied, Code::ApprovalExpired, "", message));
    }
    let hash = exchange.entry.route.tool(&tool.name).map(|tool| tool.definition_hash.clone());
    if hash != approval.definition_hash {
        let message =
            "The tool's definition changed since the call was approved, so it was not made.";
        return Err(Refusal::new(Outcome::Denied, Code::ToolChanged, "(drift)", message));
    }
    let shown = decide::shown(&exchange.inner, &exchange.entry.route, &tool.name).await;
    let client = exchange.client_name();
    let decision = decide::decide(&exchange.inner, &exchange.entry, tool, shown, client, now)
        .map_err(|problem| Refusal::new(Outcome::Denied, Code::ArgumentsInvalid, "", &problem))?;
    match decision.verdict {
        Verdict::Approve | Verdict::Forward => Ok(decision),
        Verdict::Deny | Verdict::Hide => Err(refusal(&decision)),
    }
}

/// Moves the charge from the time of parking to now.
async fn rebooked(
    exchange: &Exchange<'_>,
    approval: &Approval,
    decision: &Decision,
    tool: &ToolCall<'_>,
) -> Result<Option<Booking>, Refusal> {
    let route = &exchange.entry.route;
    let session = exchange.session.as_ref();
    let prepared = decide::prepared(route, session, &tool.name, &decision.charges);
    let booking = Booking { id: ReservationId::new(), prepared };
    let workspace = route.record.workspace;
    let counters = &exchange.inner.counters;
    let rebooked = counters
        .rebook(workspace, approval.reservation, &approval.demands, booking.id, booking.demands())
        .await;
    match rebooked {
        Ok(reserved) if reserved.granted => Ok(Some(booking)),
        Ok(reserved) => Err(decide::limited(&decision.charges, &reserved)
            .map_or_else(taken, |limited| limit_refusal(&tool.name, &limited))),
        Err(error) => match decide::unavailable(decision) {
            None => Ok(error.doubtful.then_some(booking)),
            Some(limited) => {
                // Charged or not, and the parked charge given back or not: the next release charges.
                if error.doubtful {
                    decide::refund(&exchange.inner, route, &booking).await;
                }
                Err(limit_refusal(&tool.name, &limited))
            }
        },
    }
}

/// The same call is being run, or was, for another request: its result is this one's too.
pub(crate) async fn joined(
    mut exchange: Box<Exchange<'_>>,
    approvals: &dyn Approvals,
    approval: Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let until = Instant::now() + Duration::from_secs(u64::from(plan.hold));
    let (workspace, mut approval) = (exchange.entry.route.record.workspace, approval);
    let inner = Arc::clone(&exchange.inner);
    let result = inner.shared.result(workspace, approval.id);
    tokio::pin!(result);
    let result = loop {
        // Who runs it may fall, or put it back; then there is no result to wait for.
        match approvals.decided(workspace, approval.id).await {
            Ok(now) if now.status == ApprovalStatus::Running => approval = now,
            Ok(now) => {
                approval = now;
                break timeout(LAST, &mut result).await.ok().flatten();
            }
            Err(StoreUnavailable) => {}
        }
        if Instant::now() >= until {
            break timeout(LAST, &mut result).await.ok().flatten();
        }
        if let Ok(result) = timeout(LOOK, &mut result).await {
            break result;
        }
    };
    let id = exchange.raw_id().unwrap_or("null").to_owned();
    let result = result.and_then(|result| {
        std::str::from_utf8(&result).ok().and_then(|text| sluice_mcp::relabelled(text, &id))
    });
    if let Some(result) = result {
        let message = "answered with the result of the identical call that was approved";
        exchange.recorder.outcome(Outcome::Allowed, Code::Allowed, message);
        return exchange.form.message(StatusCode::OK, result.into_bytes());
    }
    stands(exchange, &approval, plan, tool)
}
