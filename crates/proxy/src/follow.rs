//! What an answer tells that later requests depend on: whether the server
//! announces changed lists, whose a task is, and that a call waits for input.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use sluice_domain::{GrantId, ServerId};
use sluice_mcp::{Envelope, member_text, string_value};

use crate::cache::Entry;
use crate::canonical;
use crate::session::Session;
use crate::state::Inner;

/// Larger answers hold results, not what is looked for here.
const MAX_ANSWER: usize = 1 << 20;
/// How long a task's owner is remembered.
pub(crate) const TASK_FOR: Duration = Duration::from_hours(24);
/// How long a call may wait for its input, and how often it may ask for more without being counted again.
pub(crate) const INPUT_WITHIN: Duration = Duration::from_mins(10);
pub(crate) const MAX_ROUNDS: u8 = 8;

/// A request whose answer is looked at.
pub(crate) struct Follow {
    pub(crate) inner: Arc<Inner>,
    pub(crate) entry: Arc<Entry>,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) modern: bool,
    /// The request was `initialize`, otherwise a `tools/call`.
    pub(crate) initialize: bool,
    pub(crate) request: Bytes,
    /// How often the call was asked for input before.
    pub(crate) rounds: u8,
}

fn at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text, |text, name| member_text(text, name))
}

impl Follow {
    /// Whether anything may be learned from the answer to this message.
    pub(crate) fn is_wanted(envelope: &Envelope<'_>) -> bool {
        envelope.method == "initialize" || envelope.tool.is_some()
    }

    /// Looks at the answer, a JSON-RPC message.
    pub(crate) async fn learn(&self, answer: &[u8]) {
        let Some(text) = Some(answer)
            .filter(|answer| answer.len() <= MAX_ANSWER)
            .and_then(|answer| std::str::from_utf8(answer).ok())
        else {
            return;
        };
        if self.initialize {
            let announces = at(text, &["result", "capabilities", "tools", "listChanged"]);
            if let (Some(session), Some("true")) = (&self.session, announces) {
                self.inner.sessions.announces(session).await;
            }
            return;
        }
        if text.contains("taskId") {
            for path in [&["result", "task", "taskId"][..], &["result", "taskId"]] {
                if let Some(task) = at(text, path).and_then(string_value) {
                    self.own(&task).await;
                }
            }
        }
        if self.modern && text.contains("input_required") && self.rounds < MAX_ROUNDS {
            let kind = at(text, &["result", "resultType"]).and_then(string_value);
            if kind.as_deref() == Some("input_required") {
                self.expect_input(at(text, &["result", "requestState"])).await;
            }
        }
    }

    async fn own(&self, task: &str) {
        let record = &self.entry.route.record;
        let owner = task_name(record.server.id, task);
        let grant = record.grant.id.to_string();
        if self.inner.bindings.put(&owner, "grant", grant.as_bytes(), TASK_FOR).await.is_err() {
            tracing::warn!(server = %record.server.id, "Could not note whose a task is");
        }
    }

    /// The same call may come again with what was asked for, and is then not counted again.
    async fn expect_input(&self, state: Option<&str>) {
        let Ok(envelope) = sluice_mcp::read(&self.request) else { return };
        let Some(key) = input_key(&envelope, state) else { return };
        let owner = input_name(self.entry.route.record.grant.id);
        let rounds = [self.rounds + 1];
        if self.inner.bindings.put(&owner, &key, &rounds, INPUT_WITHIN).await.is_err() {
            tracing::warn!("Could not note that a call waits for input; it will be counted again");
        }
    }
}

fn task_name(server: ServerId, task: &str) -> String {
    format!("task:{server}:{:x?}", Sha256::digest(task.as_bytes()))
}

fn input_name(grant: GrantId) -> String {
    format!("input:{grant}")
}

/// Tool, arguments and the state that the server gave, in one text.
fn input_key(envelope: &Envelope<'_>, state: Option<&str>) -> Option<String> {
    let tool = envelope.tool.as_ref()?;
    let mut hash = Sha256::new();
    hash.update(canonical::digest(tool.arguments));
    hash.update(Sha256::digest(tool.name.as_bytes()));
    let state = state.and_then(string_value);
    hash.update(Sha256::digest(state.as_deref().unwrap_or_default().as_bytes()));
    Some(format!("{:x?}", hash.finalize()))
}

/// Whether a task may be this grant's: one that is known to be another's may not, nor one of unknown
/// owner outside a session.
pub(crate) async fn may_use_task(
    inner: &Inner,
    entry: &Entry,
    task: &str,
    in_session: bool,
) -> bool {
    let record = &entry.route.record;
    let owner = task_name(record.server.id, task);
    match inner.bindings.get(&owner, "grant", TASK_FOR).await {
        Ok(Some(grant)) => grant == record.grant.id.to_string().as_bytes(),
        // Whose it is was not seen; a session of the upstream keeps its tasks apart by itself.
        Ok(None) => in_session,
        Err(_) => false,
    }
}

/// Which round of asking a call continues, if it brings what the server asked for. Once for each asking.
pub(crate) async fn continues(inner: &Inner, entry: &Entry, envelope: &Envelope<'_>) -> Option<u8> {
    if !envelope.has_input_responses && envelope.request_state.is_none() {
        return None;
    }
    let key = input_key(envelope, envelope.request_state)?;
    let owner = input_name(entry.route.record.grant.id);
    let rounds = inner.bindings.get(&owner, &key, INPUT_WITHIN).await.ok()??;
    let first = inner.bindings.delete(&owner, &key).await.ok()?;
    first.then(|| rounds.first().copied().unwrap_or(MAX_ROUNDS))
}
