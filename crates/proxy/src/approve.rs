//! A call that a person is asked about: found or parked, waited for, and done as was decided.

use std::sync::Arc;

use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use sluice_domain::{ApprovalId, ApprovalStatus, Code, Outcome};
use sluice_mcp::ToolCall;
use sluice_policy::{ApprovalPlan, Decision};

use crate::approved;
use crate::call::book;
use crate::canonical;
use crate::exchange::{ApprovalRef, Exchange, Refusal};
use crate::headers;
use crate::hold::{Progress, streamed};
use crate::page::{self, Shown};
use crate::park::{held, park, store_away};
use crate::pass;
use crate::ports::{Approval, ApprovalKey, Approvals, Exception, StoreUnavailable};

/// Parks a call or finds it parked, waits for the decision, and does what was decided.
pub(crate) async fn approve(
    exchange: Box<Exchange<'_>>,
    decision: &Decision,
    tool: &ToolCall<'_>,
) -> Response {
    let told = exchange.envelope.progress_token.is_some() || page::may_open(&exchange);
    if told && headers::accepts_events(exchange.headers) {
        return streamed(exchange, decision.clone());
    }
    settle(exchange, decision, tool, None).await
}

pub(crate) fn key(exchange: &Exchange<'_>, tool: &ToolCall<'_>) -> Option<ApprovalKey> {
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
    mut exchange: Box<Exchange<'_>>,
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
            match (page::asks(&exchange), exchange.shown) {
                (true, _) => return page::asked(exchange, &approval, plan, tool),
                // Its user would not look: nobody there waits for it.
                (false, Some(Shown::Declined)) => approval,
                (false, _) => held(&exchange, &*approvals, approval, plan, tool, progress).await,
            }
        }
        Ok(approval) => approval,
        Err(refusal) => return exchange.refuse_call(&refusal),
    };
    let waited = exchange.recorder.elapsed_us() - started;
    exchange.recorder.note(|record| record.timing.approval_us = waited);
    decided(exchange, approvals, approval, plan, tool).await
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
    mut exchange: Box<Exchange<'_>>,
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

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What an agent is told of an approval.
pub(crate) fn told(exchange: &Exchange<'_>, approval: &Approval) -> ApprovalRef {
    let id: ApprovalId = approval.id;
    let slug = &exchange.entry.route.record.workspace_slug;
    let base = &exchange.inner.options.dashboard_url;
    ApprovalRef {
        id: id.to_string(),
        url: format!("{base}/w/{slug}/approvals/{id}"),
        expires_at: stamp(approval.expires_at),
    }
}

/// Answers as the approval stands; an approved call is run.
async fn decided(
    exchange: Box<Exchange<'_>>,
    approvals: Arc<dyn Approvals>,
    approval: Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    match approval.status {
        ApprovalStatus::Approved => {
            approved::release(exchange, approvals, approval, plan, tool).await
        }
        ApprovalStatus::Running | ApprovalStatus::Used => {
            approved::joined(exchange, &*approvals, approval, plan, tool).await
        }
        _ => stands(exchange, &approval, plan, tool),
    }
}

/// Tells how the approval stands, of a call that is not made here.
pub(crate) fn stands(
    exchange: Box<Exchange<'_>>,
    approval: &Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let note = approval.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    let noted = note.map(|note| format!(" Note: {note}")).unwrap_or_default();
    let (code, message) = match approval.status {
        ApprovalStatus::Pending => return pending(exchange, approval, plan, tool),
        ApprovalStatus::Denied => {
            (Code::ApprovalDenied, format!("A person refused this call.{noted}"))
        }
        other => (Code::ApprovalExpired, over(other).to_owned()),
    };
    let mut refusal = Refusal::new(Outcome::Denied, code, &plan.rule, &message);
    refusal.approval = Some(told(&exchange, approval));
    exchange.refuse_call(&refusal)
}

const fn over(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Approved => {
            "This call is approved, and was not made this time. Send it again to run it."
        }
        ApprovalStatus::Running => "This call was approved, and runs for another request.",
        ApprovalStatus::Used => {
            "This call was approved and ran once, for another request; its result cannot be given again."
        }
        ApprovalStatus::Unknown => {
            "This call was approved and sent, and its outcome is unknown. It is not run again."
        }
        ApprovalStatus::Expired | ApprovalStatus::Pending | ApprovalStatus::Denied => {
            "Nobody approved this call in time. Send it again to ask anew."
        }
    }
}

/// Tells that nobody decided yet, and how to go on.
pub(crate) fn pending(
    exchange: Box<Exchange<'_>>,
    approval: &Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let told = told(&exchange, approval);
    let message = format!(
        "{} Approval {} can be given at {} until {}. Send the same call again to wait for it or to run it once it is approved.",
        sentence(plan, tool),
        told.id,
        told.url,
        told.expires_at
    );
    let mut refusal = Refusal::new(Outcome::Waiting, Code::ApprovalPending, &plan.rule, &message);
    refusal.approval = Some(told);
    exchange.refuse_call(&refusal)
}

/// The rule's own words, or that a person must approve.
pub(crate) fn sentence(plan: &ApprovalPlan, tool: &ToolCall<'_>) -> String {
    let own = plan.on_deny.clone();
    own.unwrap_or_else(|| format!("{} needs a person's approval.", tool.name))
}
