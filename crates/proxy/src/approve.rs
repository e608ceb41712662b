//! A call that a person is asked about: parked, held open for a while, and run
//! at most once when it is approved.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use http::StatusCode;
use sluice_domain::{ApprovalId, ApprovalStatus, Code, Outcome, ReservationId};
use sluice_mcp::ToolCall;
use sluice_policy::{ApprovalPlan, Decision, Verdict};
use tokio::time::Instant;

use crate::call::{book, limit_refusal, refusal};
use crate::canonical;
use crate::decide::{self, Booking, Charged, Unsent};
use crate::exchange::{ApprovalRef, Exchange, Refusal};
use crate::headers;
use crate::hold::{PROGRESS_EVERY, Progress, streamed};
use crate::pass;
use crate::ports::{
    Approval, ApprovalKey, Approvals, Exception, ParkError, ParkedCall, StoreUnavailable,
};
use crate::release::Release;
use crate::state::Inner;

/// Parks a call or finds it parked, waits for the decision, and does what was decided.
pub(crate) async fn approve(
    exchange: Exchange<'_>,
    decision: &Decision,
    tool: &ToolCall<'_>,
) -> Response {
    let token = exchange.envelope.progress_token;
    match token.filter(|_| headers::accepts_events(exchange.headers)) {
        None => settle(exchange, decision, tool, None).await,
        Some(token) => streamed(exchange, decision.clone(), token.to_owned()),
    }
}

fn key(exchange: &Exchange<'_>, tool: &ToolCall<'_>) -> Option<ApprovalKey> {
    let route = &exchange.entry.route;
    let policy = route.record.policy.as_ref()?;
    Some(ApprovalKey {
        workspace: route.record.workspace,
        server: route.record.server.id,
        grant: route.record.grant.id,
        tool: tool.name.clone().into_owned(),
        arguments_digest: canonical::call_digest(tool.arguments, exchange.envelope.params),
        policy: policy.id,
        policy_version: policy.version,
        rules_digest: route.rules_digest(&tool.name),
    })
}

pub(crate) async fn settle(
    mut exchange: Exchange<'_>,
    decision: &Decision,
    tool: &ToolCall<'_>,
    progress: Option<&Progress>,
) -> Response {
    let started = exchange.recorder.elapsed_us();
    let (Some(approvals), Some(plan), Some(key)) =
        (exchange.inner.approvals.clone(), &decision.approval, key(&exchange, tool))
    else {
        let message = "This call needs a person's approval, and nobody can be asked here.";
        let (rule, code) = (&decision.rule, Code::ApprovalDenied);
        return exchange.refuse_call(&Refusal::new(Outcome::Denied, code, rule, message));
    };
    let now = (exchange.inner.clock)();
    let approval = match approvals.find(&key, now).await {
        Ok(Some(approval)) => Ok(approval),
        Ok(None) => match excepted(&exchange, &*approvals, &key, tool, now).await {
            Ok(Some(word)) => return let_through(exchange, decision, tool, &word).await,
            Ok(None) => park(&mut exchange, &*approvals, key, decision, plan, tool).await,
            Err(StoreUnavailable) => Err(store_away(plan)),
        },
        Err(StoreUnavailable) => Err(store_away(plan)),
    };
    let approval = match approval {
        Ok(approval) if approval.status == ApprovalStatus::Pending => {
            let workspace = exchange.entry.route.record.workspace;
            held(&exchange.inner, &*approvals, workspace, approval, plan, progress).await
        }
        Ok(approval) => approval,
        Err(refusal) => return exchange.refuse_call(&refusal),
    };
    let waited = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.approval_us = waited);
    decided(exchange, approvals, approval, decision, plan, tool).await
}

/// Whether a person lets this very call pass for a while.
async fn excepted(
    exchange: &Exchange<'_>,
    approvals: &dyn Approvals,
    key: &ApprovalKey,
    tool: &ToolCall<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Exception>, StoreUnavailable> {
    let hash = exchange.entry.route.tool(&tool.name).map(|tool| tool.definition_hash.as_str());
    approvals.excepted(key, hash, now).await
}

/// Makes a call that need not be asked about; its limits hold as ever.
async fn let_through(
    mut exchange: Exchange<'_>,
    decision: &Decision,
    tool: &ToolCall<'_>,
    word: &Exception,
) -> Response {
    let message = format!("let through until {} by {}", stamp(word.until), word.by);
    match book(&mut exchange, decision, tool).await {
        Ok(booking) => {
            exchange.recorder.outcome(Outcome::Allowed, Code::Allowed, &message);
            exchange.recorder.unsettle();
            pass::forward(exchange, booking).await
        }
        Err(refusal) => exchange.refuse_call(&refusal),
    }
}

fn store_away(plan: &ApprovalPlan) -> Refusal {
    let message =
        "This call needs a person's approval, and the gateway cannot ask for it at the moment.";
    Refusal::new(Outcome::Denied, Code::LimitsUnavailable, &plan.rule, message)
}

/// Charges the call and parks it.
async fn park(
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
    let booking = match decide::charge(&inner, route, session, decision, Some(expires)).await {
        Charged::Booked(booking) => booking,
        Charged::Limited(limited) | Charged::Observed(limited) => {
            return Err(limit_refusal(&tool.name, &limited));
        }
    };
    let booked =
        booking.clone().unwrap_or(Booking { id: ReservationId::new(), demands: Vec::new() });
    let reservation = booked.id;
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
            demands: booked.demands,
            at: (inner.clock)(),
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
async fn held(
    inner: &Inner,
    approvals: &dyn Approvals,
    workspace: sluice_domain::WorkspaceId,
    approval: Approval,
    plan: &ApprovalPlan,
    progress: Option<&Progress>,
) -> Approval {
    let until = Instant::now() + Duration::from_secs(u64::from(plan.hold));
    let deciding = approvals.decided(workspace, approval.id);
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
            () = inner.stop.cancelled() => return approval,
            () = tokio::time::sleep_until(next) => {}
        }
        if Instant::now() >= until {
            return approval;
        }
    }
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What an agent is told of an approval.
fn told(exchange: &Exchange<'_>, approval: &Approval) -> ApprovalRef {
    let id: ApprovalId = approval.id;
    let slug = &exchange.entry.route.record.workspace_slug;
    let base = &exchange.inner.options.dashboard_url;
    ApprovalRef {
        id: id.to_string(),
        url: format!("{base}/w/{slug}/approvals/{id}"),
        expires_at: stamp(approval.expires_at),
    }
}

async fn decided(
    exchange: Exchange<'_>,
    approvals: Arc<dyn Approvals>,
    approval: Approval,
    decision: &Decision,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let note = approval.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    let noted = note.map(|note| format!(" Note: {note}")).unwrap_or_default();
    let (outcome, code, message) = match approval.status {
        ApprovalStatus::Approved => {
            return release(exchange, approvals, approval, tool).await;
        }
        ApprovalStatus::Running | ApprovalStatus::Used => {
            return joined(exchange, &approval, plan).await;
        }
        ApprovalStatus::Pending => {
            let told = told(&exchange, &approval);
            let sentence = plan
                .on_deny
                .clone()
                .unwrap_or_else(|| format!("{} needs a person's approval.", tool.name));
            let message = format!(
                "{sentence} Approval {} can be given at {} until {}. Send the same call again to wait for it or to run it once it is approved.",
                told.id, told.url, told.expires_at
            );
            (Outcome::Waiting, Code::ApprovalPending, message)
        }
        ApprovalStatus::Denied => {
            (Outcome::Denied, Code::ApprovalDenied, format!("A person refused this call.{noted}"))
        }
        ApprovalStatus::Expired => {
            let message = "Nobody approved this call in time. Send it again to ask anew.";
            (Outcome::Denied, Code::ApprovalExpired, message.to_owned())
        }
        ApprovalStatus::Unknown => {
            let message =
                "This call was approved and sent, and its outcome is unknown. It is not run again.";
            (Outcome::Denied, Code::ApprovalExpired, message.to_owned())
        }
    };
    let rule = if plan.rule.is_empty() { &decision.rule } else { &plan.rule };
    let mut refusal = Refusal::new(outcome, code, rule, &message);
    refusal.approval = Some(told(&exchange, &approval));
    exchange.refuse_call(&refusal)
}

/// Runs an approved call, after everything that it was approved under was looked at again.
async fn release(
    mut exchange: Exchange<'_>,
    approvals: Arc<dyn Approvals>,
    approval: Approval,
    tool: &ToolCall<'_>,
) -> Response {
    let inner = Arc::clone(&exchange.inner);
    let now = (inner.clock)();
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
        Ok(false) => {
            let plan = again.approval.clone();
            return match plan {
                Some(plan) => joined(exchange, &approval, &plan).await,
                None => exchange.refuse_call(&taken()),
            };
        }
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
    let claimed = Release::new(approvals, clock, workspace, approval.id, call, &inner.shared);
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
    let demands = decide::demands(route, exchange.session.as_ref(), &decision.charges);
    let booking = Booking { id: ReservationId::new(), demands };
    let workspace = route.record.workspace;
    let counters = &exchange.inner.counters;
    let rebooked = counters
        .rebook(workspace, approval.reservation, &approval.demands, booking.id, &booking.demands)
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
async fn joined(mut exchange: Exchange<'_>, approval: &Approval, plan: &ApprovalPlan) -> Response {
    let hold = Duration::from_secs(u64::from(plan.hold));
    let result = exchange.inner.shared.result(approval.id, hold).await;
    let id = exchange.raw_id().unwrap_or("null").to_owned();
    let result = result.and_then(|result| {
        std::str::from_utf8(&result).ok().and_then(|text| sluice_mcp::relabelled(text, &id))
    });
    if let Some(result) = result {
        let message = "answered with the result of the identical call that was approved";
        exchange.recorder.outcome(Outcome::Allowed, Code::Allowed, message);
        return exchange.form.message(StatusCode::OK, result.into_bytes());
    }
    let mut refusal = taken();
    refusal.rule.clone_from(&plan.rule);
    refusal.approval = Some(told(&exchange, approval));
    exchange.refuse_call(&refusal)
}
