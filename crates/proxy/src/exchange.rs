//! One message of a POST on its way: what is known of it, and the gateway's own
//! answers to it.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use sluice_domain::{Code, Outcome};
use sluice_mcp::{
    ApprovalNote, DecisionNote, Envelope, Era, ErrorNote, codes, error_answer, input_required,
    refused_result,
};
use sluice_vault::TokenHash;

use crate::cache::Entry;
use crate::failure::Failure;
use crate::open_count::OpenPlace;
use crate::page::Shown;
use crate::record::Recorder;
use crate::release::Release;
use crate::respond::Form;
use crate::session::{OpenRequest, Session};
use crate::state::Inner;

/// See the module's head. Boxed on its way: every function that takes it by value would keep a copy of it in
/// its future, and futures of futures are copied.
pub(crate) struct Exchange<'a> {
    pub(crate) inner: Arc<Inner>,
    pub(crate) form: Form,
    pub(crate) entry: Arc<Entry>,
    pub(crate) token: TokenHash,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) envelope: &'a Envelope<'a>,
    pub(crate) era: Era,
    /// The bytes that were decided on, and are sent.
    pub(crate) body: Bytes,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) open: Option<OpenRequest>,
    pub(crate) place: OpenPlace,
    pub(crate) recorder: Recorder,
    /// The approval that this call uses up.
    pub(crate) release: Option<Release>,
    /// How often this call was asked for input before (2026-07-28).
    pub(crate) rounds: u8,
    /// What its client did with an approval's page that it was asked to open (2026-07-28).
    pub(crate) shown: Option<Shown>,
}

/// Why a call is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) outcome: Outcome,
    pub(crate) code: Code,
    pub(crate) rule: String,
    /// A sentence for the agent, without a prefix.
    pub(crate) message: String,
    pub(crate) counter: Option<String>,
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) approval: Option<ApprovalRef>,
}

/// The approval that an agent is told of.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalRef {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) expires_at: String,
}

impl Refusal {
    pub(crate) fn new(outcome: Outcome, code: Code, rule: &str, message: &str) -> Self {
        Self {
            outcome,
            code,
            rule: rule.to_owned(),
            message: message.to_owned(),
            counter: None,
            retry_after_s: None,
            approval: None,
        }
    }

    const fn prefix(&self) -> &'static str {
        match self.code {
            Code::ApprovalPending => "[APPROVAL REQUIRED]",
            _ => "[POLICY DENIED]",
        }
    }
}

impl Exchange<'_> {
    pub(crate) fn raw_id(&self) -> Option<&str> {
        self.envelope.id.map(sluice_mcp::RawId::as_str)
    }

    pub(crate) fn modern(&self) -> bool {
        self.era == Era::Modern
    }

    pub(crate) fn client_name(&self) -> Option<&str> {
        let own = self.envelope.client_name.as_deref();
        own.or_else(|| self.session.as_ref()?.client_name.as_deref())
    }

    /// The name under which the upstream's requests to this client are noted.
    pub(crate) fn scope(&self) -> String {
        scope(self.session.as_ref(), &self.entry)
    }

    /// Answers a `tools/call` with a result that tells the agent why it was not made.
    pub(crate) fn refuse_call(mut self: Box<Self>, refusal: &Refusal) -> Response {
        self.note(refusal);
        let text = format!("{} {}", refusal.prefix(), refusal.message);
        let request_id = self.form.id.to_string();
        let note = self.decision(refusal, &request_id);
        let id = self.raw_id().unwrap_or("null");
        let result = refused_result(id, &text, &note, self.modern());
        self.form.message(StatusCode::OK, result)
    }

    /// Answers a `tools/call` with what the client is to do before it calls again (2026-07-28).
    pub(crate) fn ask_for_input(
        mut self: Box<Self>,
        refusal: &Refusal,
        requests: &serde_json::Value,
        state: &str,
    ) -> Response {
        self.note(refusal);
        let request_id = self.form.id.to_string();
        let note = self.decision(refusal, &request_id);
        let id = self.raw_id().unwrap_or("null");
        let result = input_required(id, &requests.to_string(), state, &note);
        self.form.message(StatusCode::OK, result)
    }

    /// What the agent is told of the decision beside words.
    fn decision<'a>(&'a self, refusal: &'a Refusal, request_id: &'a str) -> DecisionNote<'a> {
        let policy = self.entry.route.record.policy.as_ref();
        let hidden = refusal.code == Code::UnknownTool;
        let approval = refusal.approval.as_ref();
        DecisionNote {
            code: refusal.code.as_str(),
            rule: Some(refusal.rule.as_str()).filter(|rule| !hidden && !rule.is_empty()),
            counter: refusal.counter.as_deref(),
            retry_after_seconds: refusal.retry_after_s,
            approval: approval.map(|approval| ApprovalNote {
                id: &approval.id,
                url: &approval.url,
                expires_at: &approval.expires_at,
            }),
            request_id,
            policy: policy.map(|policy| policy.name.as_str()),
            policy_version: policy.map(|policy| policy.version),
        }
    }

    fn note(&mut self, refusal: &Refusal) {
        self.recorder.outcome(refusal.outcome, refusal.code, &refusal.message);
        let retry = refusal.retry_after_s.and_then(|s| i64::try_from(s).ok());
        self.recorder.note(|record| {
            record.rule.clone_from(&refusal.rule);
            record.counter.clone_from(&refusal.counter);
            record.retry_after_s = retry;
        });
    }

    /// Refuses a request other than a call: a tool result for calls, a JSON-RPC error for the rest.
    pub(crate) fn refuse(mut self: Box<Self>, refusal: &Refusal) -> Response {
        if self.envelope.tool.is_some() {
            return self.refuse_call(refusal);
        }
        self.note(refusal);
        let request_id = self.form.id.to_string();
        let note =
            ErrorNote { code: refusal.code.as_str(), may_have_run: None, request_id: &request_id };
        let code = match refusal.code {
            Code::MethodNotAllowed => codes::METHOD_NOT_FOUND,
            Code::Malformed => codes::INVALID_REQUEST,
            _ => codes::INTERNAL_ERROR,
        };
        let status = match (self.raw_id(), self.era, refusal.code) {
            (_, _, Code::Malformed) | (None, _, _) => StatusCode::BAD_REQUEST,
            (Some(_), Era::Modern, Code::MethodNotAllowed) => StatusCode::NOT_FOUND,
            (Some(_), _, _) => StatusCode::OK,
        };
        let body = error_answer(self.raw_id(), code, &refusal.message, Some(&note));
        self.form.message(status, body)
    }

    /// The way to the upstream and back failed.
    pub(crate) async fn fail(mut self: Box<Self>, failure: Failure) -> Response {
        let call = self.envelope.tool.is_some();
        let cancelled = match &self.open {
            Some(open) => self.inner.sessions.was_cancelled(open).await,
            None => false,
        };
        if !cancelled {
            let message = failure.log_message(call);
            self.recorder.outcome(Outcome::Failed, failure.code(), &message);
        }
        if failure == Failure::Revoked {
            return self.form.unauthorized();
        }
        let body = failure.answer(self.raw_id(), &self.form.id.to_string(), call);
        let status = if self.raw_id().is_some() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
        self.form.message(status, body)
    }
}

/// The name under which requests of an upstream to one client are noted.
pub(crate) fn scope(session: Option<&Arc<Session>>, entry: &Entry) -> String {
    let record = &entry.route.record;
    session.map_or_else(|| format!("{}:{}", record.grant.id, record.server.id), |s| s.id.clone())
}
