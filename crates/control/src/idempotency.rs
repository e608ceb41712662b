//! `Idempotency-Key`: the same request sent again gets the same answer and acts once. Answers may
//! hold a token, so they are kept sealed, and only for a day.

use chrono::TimeDelta;
use sha2::{Digest, Sha256};
use sluice_domain::WorkspaceId;
use sluice_store::idempotency::{self, Begun, KeyOf};
use sluice_vault::Place;
use uuid::Uuid;

use crate::codes::{self, ProblemCode};
use crate::{Actor, Control, ControlError};

/// How long a key is remembered.
pub const REMEMBERED: TimeDelta = TimeDelta::hours(24);
/// A request that did not end within this time was lost with its process.
const ABANDONED_AFTER: TimeDelta = TimeDelta::minutes(2);
const MAX_KEY_BYTES: usize = 255;

/// Headers of an answer that a repeat gives again.
pub type Headers = Vec<(String, String)>;

/// What to do with a request that has a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It is new: do it, then tell [`Control::idempotency_end`].
    First,
    /// It was done: this was the answer.
    Answered { status: u16, headers: Headers, body: Vec<u8> },
}

impl Control {
    /// Claims a key for a request.
    pub async fn idempotency_begin(
        &self,
        actor: &Actor,
        workspace: Option<WorkspaceId>,
        key: &str,
        request: &[&[u8]],
    ) -> Result<Repeat, ControlError> {
        check(key)?;
        let mut hash = Sha256::new();
        for part in request {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let now = self.now();
        let (of, old) = (key_of(actor, workspace, key), now - ABANDONED_AFTER);
        let mut tx = self.begin().await?;
        let begun = idempotency::begin(&mut tx.conn(), of, &hash.finalize(), old, now).await?;
        tx.commit().await?;
        match begun {
            Begun::New => Ok(Repeat::First),
            Begun::Answered { status, headers, body } => {
                let body = self.inner.vault.open(place(actor, workspace), &body);
                let body = body.map_err(ControlError::internal)?.to_vec();
                let status = u16::try_from(status).unwrap_or(500);
                let headers = headers.as_deref().map(serde_json::from_str).transpose();
                let headers = headers.map_err(ControlError::internal)?.unwrap_or_default();
                Ok(Repeat::Answered { status, headers, body })
            }
            Begun::InProgress => Err(conflict(
                codes::IDEMPOTENCY_IN_PROGRESS,
                "the first request with this Idempotency-Key is still at work; try again",
            )),
            Begun::Mismatch => Err(conflict(
                codes::IDEMPOTENCY_MISMATCH,
                "this Idempotency-Key was used for another request",
            )),
        }
    }

    /// Keeps the answer of a request that succeeded; one that failed may be tried again.
    pub async fn idempotency_end(
        &self,
        actor: &Actor,
        workspace: Option<WorkspaceId>,
        key: &str,
        answer: Option<(u16, &Headers, &[u8])>,
    ) -> Result<(), ControlError> {
        let of = key_of(actor, workspace, key);
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        match answer {
            Some((status, headers, body)) => {
                let sealed = self.inner.vault.seal(place(actor, workspace), body);
                let headers = serde_json::to_string(headers).map_err(ControlError::internal)?;
                let headers = Some(headers.as_str());
                idempotency::finish(conn, of, i32::from(status), headers, &sealed).await?;
            }
            None => idempotency::abandon(conn, of).await?,
        }
        tx.commit().await?;
        Ok(())
    }
}

fn check(key: &str) -> Result<(), ControlError> {
    let good =
        (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|b| (0x20..0x7f).contains(&b));
    if good {
        return Ok(());
    }
    let detail = "Idempotency-Key has 1 to 255 printable ASCII characters";
    Err(ControlError::invalid("", codes::BAD_IDEMPOTENCY_KEY, detail))
}

fn key_of<'a>(actor: &Actor, workspace: Option<WorkspaceId>, key: &'a str) -> KeyOf<'a> {
    KeyOf { workspace, actor: actor.id(), key }
}

fn place(actor: &Actor, workspace: Option<WorkspaceId>) -> Place {
    place_of(workspace.map_or(Uuid::nil(), WorkspaceId::uuid), actor.id())
}

/// Where an answer is sealed to.
pub(crate) fn place_of(workspace: Uuid, actor: Uuid) -> Place {
    Place::new(WorkspaceId::from_uuid(workspace), "idempotency_keys", actor, "body")
}

fn conflict(code: ProblemCode, detail: &str) -> ControlError {
    ControlError::Conflict { code, pointer: None, detail: detail.to_owned() }
}
