//! Brings the approver's page up at a client that can open pages: by URL elicitation on the stream of
//! the call that waits (2025-11-25), or as input that the call asks for (2026-07-28).

use std::time::Duration;

use axum::response::Response;
use http::HeaderMap;
use serde_json::json;
use sluice_domain::{Code, Outcome};
use sluice_mcp::{Envelope, Era, RawId, ToolCall, member_text, string_value};
use sluice_policy::ApprovalPlan;

use crate::approve::{sentence, told};
use crate::exchange::{Exchange, Refusal};
use crate::headers;
use crate::hold::Progress;
use crate::ports::Approval;
use crate::session::Session;

/// Begins a `requestState` of ours. What follows is not trusted: it only says that the client was asked.
const STATE: &str = "sluice.approval.";
/// The name of our input request.
const INPUT: &str = "approval";
/// Begins the id of our own requests to clients.
const REQUEST: &str = "sluice-page-";
/// The first version with URL elicitation.
const SINCE: &str = "2025-11-25";
/// A client is asked again for the same approval after so long.
const ASKED_FOR: Duration = Duration::from_hours(1);

/// What a client did with the page that it was asked to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Opened,
    Declined,
}

fn at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text, |text, name| member_text(text, name))
}

/// Whether the client declares at `initialize` that it opens pages.
pub(crate) fn declared(envelope: &Envelope<'_>) -> bool {
    let params = envelope.params.unwrap_or_default();
    at(params, &["capabilities", "elicitation", "url"]).is_some_and(|url| url.starts_with('{'))
}

/// Whether the client of a session may be asked to open a page on the stream of this call.
pub(crate) fn may_open(exchange: &Exchange<'_>) -> bool {
    let version = exchange.headers.get(headers::VERSION).and_then(|version| version.to_str().ok());
    exchange.era == Era::Legacy
        && version.is_some_and(|version| version >= SINCE)
        && exchange.session.as_ref().is_some_and(|session| session.opens_pages())
}

/// Whether the client is to be asked by the call's answer: it declares that it opens pages, and was
/// not asked before.
pub(crate) fn asks(exchange: &Exchange<'_>) -> bool {
    let params = exchange.envelope.params.unwrap_or_default();
    let declared = ["_meta", "io.modelcontextprotocol/clientCapabilities", "elicitation", "url"];
    exchange.era == Era::Modern
        && exchange.shown.is_none()
        && at(params, &declared).is_some_and(|url| url.starts_with('{'))
}

/// Whether a message may be such a call; most are not, and need not be read twice.
pub(crate) fn may_be_shown(headers: &HeaderMap, body: &[u8]) -> bool {
    let version = headers.get(headers::VERSION);
    version.is_some_and(|version| version.as_bytes() > SINCE.as_bytes())
        && std::str::from_utf8(body).is_ok_and(|body| body.contains(STATE))
}

/// What a call says of a page that its client was asked to open, if it was.
pub(crate) fn shown(envelope: &Envelope<'_>, era: Era) -> Option<Shown> {
    let state = string_value(envelope.request_state?)?;
    if era != Era::Modern || envelope.tool.is_none() || !state.starts_with(STATE) {
        return None;
    }
    let action = at(envelope.params?, &["inputResponses", INPUT, "action"]).and_then(string_value);
    match action.as_deref() {
        Some("decline" | "cancel") => Some(Shown::Declined),
        _ => Some(Shown::Opened),
    }
}

/// The call without what it says to us; the upstream asked for nothing.
pub(crate) fn without_ours(body: &[u8]) -> Option<Vec<u8>> {
    let ours: &[&[&str]] = &[&["params", "requestState"], &["params", "inputResponses"]];
    sluice_mcp::without_members(body, ours).ok().flatten()
}

/// Asks the client, by the call's answer, to open the approver's page and to call again.
pub(crate) fn asked(
    exchange: Box<Exchange<'_>>,
    approval: &Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
) -> Response {
    let told = told(&exchange, approval);
    let params = json!({ "mode": "url", "message": message(plan, tool), "url": told.url });
    let requests = json!({ INPUT: { "method": "elicitation/create", "params": params } });
    let state = format!("{STATE}{}", told.id);
    let text = "Its client was asked to open the approval's page.";
    let mut refusal = Refusal::new(Outcome::Waiting, Code::ApprovalPending, &plan.rule, text);
    refusal.approval = Some(told);
    exchange.ask_for_input(&refusal, &requests, &state)
}

fn message(plan: &ApprovalPlan, tool: &ToolCall<'_>) -> String {
    format!("{} The page shows the call, and who may decide it.", sentence(plan, tool))
}

/// Asks the client of the call's session to open the approver's page, once for each approval; gives
/// the id of what was asked.
pub(crate) async fn open(
    exchange: &Exchange<'_>,
    approval: &Approval,
    plan: &ApprovalPlan,
    tool: &ToolCall<'_>,
    progress: &Progress,
) -> Option<String> {
    let session = exchange.session.as_ref().filter(|_| may_open(exchange))?;
    let sessions = &exchange.inner.sessions;
    let (owner, key) = (scope(session), approval.id.to_string());
    if sessions.notes.peek(&owner, &key).await.ok()?.is_some()
        || sessions.notes.put_displacing(&owner, &key, b"", ASKED_FOR).await.ok()?.is_none()
    {
        return None;
    }
    let request = format!("{REQUEST}{}", approval.id);
    let id = format!("\"{request}\"");
    sessions.issued(&owner, RawId::parse(&id)?).await;
    let told = told(exchange, approval);
    let ask = json!({
        "jsonrpc": "2.0", "id": request, "method": "elicitation/create",
        "params": {
            "mode": "url", "elicitationId": told.id, "message": message(plan, tool), "url": told.url,
        },
    });
    progress.say(ask.to_string().as_bytes()).await;
    Some(told.id)
}

/// Tells the client that the page it was asked to open is done with.
pub(crate) async fn close(page: &str, progress: &Progress) {
    let word = json!({
        "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
        "params": { "elicitationId": page },
    });
    progress.say(word.to_string().as_bytes()).await;
}

fn scope(session: &Session) -> String {
    format!("page:{}", session.id)
}

/// Whether a client's answer is one to us, not to its server; each is taken once.
pub(crate) async fn answered(exchange: &Exchange<'_>) -> bool {
    let (Some(session), Some(id)) = (&exchange.session, exchange.envelope.id) else { return false };
    let ours = string_value(id.as_str()).is_some_and(|id| id.starts_with(REQUEST));
    ours && exchange.inner.sessions.take_issued(&scope(session), id).await.is_ok_and(|taken| taken)
}
