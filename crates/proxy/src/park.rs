//! Parking: the call is charged, written down, and held open for a while.

use std::sync::Arc;
use std::time::Duration;

use sluice_domain::{ApprovalStatus, Code, Outcome, ReservationId};
use sluice_mcp::ToolCall;
use sluice_policy::{ApprovalPlan, Decision};
use tokio::time::Instant;

use crate::call::limit_refusal;
use crate::decide::{self, Charged, Unsent};
use crate::exchange::{Exchange, Refusal};
use crate::hold::{PROGRESS_EVERY, Progress};
use crate::page;
use crate::ports::{Approval, ApprovalKey, Approvals, ParkError, ParkedCall};

/// What nobody decided is given back when somebody notices that its time is over: by then the counters
/// must still know what was charged for it, also after a night in which nobody looked.
const LATE: Duration = Duration::from_hours(24);

pub(crate) fn store_away(plan: &ApprovalPlan) -> Refusal {
    let message =
        "This call needs a person's approval, and the gateway cannot ask for it at the moment.";
    Refusal::new(Outcome::Denied, Code::LimitsUnavailable, &plan.rule, message)
}

/// Charges the call and parks it.
pub(crate) async fn park(
    exchange: &mut Exchange<'_>,
    approvals: &dyn Approvals,
    key: ApprovalKey,
    decision: &Decision,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Result<Approval, Refusal> {
    let inner = Arc::clone(&exchange.inner);
    let route = &exchange.entry.route;
    let expires = Duration::from_secs(u64::from(plan.expires));
    let session = exchange.session.as_ref();
    // Before it is charged: the counters remember the charge for longer than the approval can last.
    let at = (inner.clock)();
    let booking =
        match decide::charge(&inner, route, session, &tool.name, decision, Some(expires + LATE))
            .await
        {
            Charged::Booked(booking) => booking,
            Charged::Limited(limited) | Charged::Observed(limited) => {
                return Err(limit_refusal(&tool.name, &limited));
            }
        };
    let reservation = booking.as_ref().map_or_else(ReservationId::new, |booking| booking.id);
    // If the client goes meanwhile, nobody knows whether it was parked: what is not charged while
    // it waits is charged at its release.
    let unsent =
        booking.as_ref().map(|booking| Unsent::of(&inner, route.record.workspace, booking));
    let parked = approvals
        .park(ParkedCall {
            key,
            call: exchange.form.id,
            grant_label: route.record.grant.label.clone(),
            arguments: tool.arguments.to_owned(),
            rule: plan.rule.clone(),
            hold: Duration::from_secs(u64::from(plan.hold)),
            expires,
            approvers: plan.approvers.iter().map(ToString::to_string).collect(),
            quorum: u32::from(plan.quorum),
            self_allowed: plan.self_allowed,
            session: session.map(|session| session.id.clone()),
            client_name: exchange.client_name().map(str::to_owned),
            definition_hash: route.tool(&tool.name).map(|tool| tool.definition_hash.clone()),
            reservation,
            charges: decision.charges.clone(),
            demands: booking.as_ref().map_or_else(Vec::new, |booked| booked.demands().to_vec()),
            at,
        })
        .await;
    if let Some(unsent) = unsent {
        unsent.goes_on();
    }
    // Another identical call was faster, or it could not be parked: this charge is not needed.
    let kept = parked.as_ref().is_ok_and(|approval| approval.reservation == reservation);
    if let (Some(booking), false) = (&booking, kept) {
        decide::refund(&inner, route, booking).await;
    }
    parked.map_err(|error| match error {
        ParkError::TooMany => {
            let message = "Too many calls of this grant wait for approval already.";
            Refusal::new(Outcome::Denied, Code::TooManyPending, &plan.rule, message)
        }
        ParkError::Unavailable(_) => store_away(plan),
    })
}

/// Waits for a decision as long as the rule holds calls open.
pub(crate) async fn held(
    exchange: &Exchange<'_>,
    approvals: &dyn Approvals,
    approval: Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
    progress: Option<&Progress>,
) -> Approval {
    let page = match progress {
        Some(progress) => page::open(exchange, &approval, plan, tool, progress).await,
        None => None,
    };
    let approval = waited(exchange, approvals, approval, plan, progress).await;
    if let (Some(page), Some(progress)) = (page, progress)
        && approval.status != ApprovalStatus::Pending
    {
        page::close(&page, progress).await;
    }
    approval
}

async fn waited(
    exchange: &Exchange<'_>,
    approvals: &dyn Approvals,
    approval: Approval,
    plan: &ApprovalPlan,
    progress: Option<&Progress>,
) -> Approval {
    let until = Instant::now() + Duration::from_secs(u64::from(plan.hold));
    let deciding = approvals.decided(exchange.entry.route.record.workspace, approval.id);
    tokio::pin!(deciding);
    let mut told = 0;
    loop {
        if let Some(progress) = progress {
            progress.tell(told).await;
            told += 1;
        }
        let next =
            if progress.is_some() { (Instant::now() + PROGRESS_EVERY).min(until) } else { until };
        tokio::select! {
            decided = &mut deciding => return decided.unwrap_or(approval),
            () = exchange.inner.stop.cancelled() => return approval,
            () = tokio::time::sleep_until(next) => {}
        }
        if Instant::now() >= until {
            return approval;
        }
    }
}
