//! What replicas tell each other of sessions and streams beside the sessions themselves: which requests of
//! a server wait for an answer, which requests were cancelled, which events were sent.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sluice_limits::Unavailable;
use sluice_mcp::RawId;

use crate::cache::Entry;
use crate::session::{OpenRequest, Session, Sessions};

/// How long a request of the server may wait for the client's answer.
pub(crate) const ISSUED_FOR: Duration = Duration::from_hours(1);
/// How long a replica that does not have the request may be told of its end first.
const CANCELLED_FOR: Duration = Duration::from_mins(10);

impl Sessions {
    /// Notes that the client gave up on a request, on whichever replica that is open.
    pub(crate) async fn cancel(&self, session: &Session, id: RawId<'_>) {
        if session.cancel(id) {
            return;
        }
        let noted = self.notes.put(&cancelled(&session.id), &id.key(), b"", CANCELLED_FOR).await;
        if noted.is_err() {
            tracing::debug!("Could not tell other replicas that a request was cancelled");
        }
    }

    /// Whether the client gave up on a request that ended without an answer.
    pub(crate) async fn was_cancelled(&self, open: &OpenRequest) -> bool {
        if open.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        let noted = self.notes.delete(&cancelled(&open.session.id), &open.key).await;
        let noted = noted.is_ok_and(|there| there);
        open.cancelled.fetch_or(noted, Ordering::Relaxed);
        noted
    }

    /// Notes that a client without a session gave up on a request. Others of its grant may use the
    /// same id, so the time is noted too.
    pub(crate) async fn give_up(&self, scope: &str, id: RawId<'_>, now: DateTime<Utc>) {
        let at = now.timestamp_micros().to_string();
        let owner = given_up(scope);
        let put = self.notes.put_displacing(&owner, &id.key(), at.as_bytes(), CANCELLED_FOR).await;
        if put.is_err() {
            tracing::debug!("Could not note that a client gave up on a request");
        }
    }

    /// Whether a client without a session gave up on a request that came in at `since`.
    pub(crate) async fn gave_up(&self, scope: &str, id: RawId<'_>, since: DateTime<Utc>) -> bool {
        let noted = self.notes.peek(&given_up(scope), &id.key()).await.ok().flatten();
        let at = noted.and_then(|at| std::str::from_utf8(&at).ok()?.parse::<i64>().ok());
        at.is_some_and(|at| at >= since.timestamp_micros())
    }

    /// Notes an event of a stream without a session that its grant may take up again.
    pub(crate) async fn sent(&self, entry: &Entry, event: &[u8]) {
        let (owner, key) = resumable(entry, event);
        if self.notes.put_displacing(&owner, &key, b"", self.idle).await.is_err() {
            tracing::warn!(
                "Could not note an event; its stream cannot be taken up again from there"
            );
        }
    }

    /// Whether the grant was sent an event with this id, outside a session.
    pub(crate) async fn was_sent(&self, entry: &Entry, event: &[u8]) -> Result<bool, Unavailable> {
        let (owner, key) = resumable(entry, event);
        Ok(self.notes.peek(&owner, &key).await?.is_some())
    }

    /// Notes a request that the upstream sent to the client of `scope`.
    pub(crate) async fn issued(&self, scope: &str, id: RawId<'_>) {
        let put = self.notes.put(scope, &id.key(), b"", ISSUED_FOR).await;
        if !matches!(put, Ok(true)) {
            tracing::warn!("Could not note a request of a server; its answer will be refused");
        }
    }

    /// Takes a note of [`Self::issued`] back; false if there is none.
    pub(crate) async fn take_issued(
        &self,
        scope: &str,
        id: RawId<'_>,
    ) -> Result<bool, Unavailable> {
        self.notes.delete(scope, &id.key()).await
    }
}

/// Owner and key of the note that an event was sent.
fn resumable(entry: &Entry, event: &[u8]) -> (String, String) {
    let record = &entry.route.record;
    let key = format!("{:x?}", Sha256::digest(event));
    (format!("event:{}:{}", record.grant.id, record.server.id), key)
}

fn given_up(scope: &str) -> String {
    format!("given-up:{scope}")
}

fn cancelled(session: &str) -> String {
    format!("cancelled:{session}")
}
