//! Key rotation: everything sealed is wrapped with the current master key. Works beside a running
//! server, in small transactions; stopped half-way, the next run goes on with what is left.

use sluice_domain::{ApprovalId, ServerId, UserId};
use sluice_store::idempotency::SealedAnswer;
use sluice_store::{approvals, idempotency, second_factor, servers};
use sluice_vault::Place;

use super::Operator;
use crate::ControlError;
use crate::idempotency::place_of;

/// Sealed values that are rewrapped in one transaction.
const BATCH: i64 = 100;

/// How many values were moved to the current key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrapped {
    /// Upstream credentials, by server.
    pub credentials: u64,
    /// Arguments of parked calls.
    pub arguments: u64,
    /// Answers kept for a repeat.
    pub answers: u64,
    /// Channels of notifications.
    pub endpoints: u64,
    /// Notifications that are kept.
    pub messages: u64,
    /// What people's authenticator apps share.
    pub second_factors: u64,
}

impl Operator {
    /// Wraps every sealed value with the current master key. What somebody replaces meanwhile is
    /// under the current key already.
    pub async fn rewrap_all(&self) -> Result<Rewrapped, ControlError> {
        Ok(Rewrapped {
            credentials: self.rewrap_credentials().await?,
            arguments: self.rewrap_arguments().await?,
            answers: self.rewrap_answers().await?,
            endpoints: self.rewrap_endpoints().await?,
            messages: self.rewrap_messages().await?,
            second_factors: self.rewrap_second_factors().await?,
        })
    }

    /// The value under the current key, if it is under an older one.
    fn rewrapped(&self, place: Place, sealed: &[u8]) -> Result<Option<Vec<u8>>, ControlError> {
        if !self.vault.needs_rewrap(sealed) {
            return Ok(None);
        }
        self.vault.rewrap(place, sealed).map(Some).map_err(ControlError::internal)
    }

    async fn rewrap_credentials(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<ServerId>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = servers::list_sealed(conn, after, BATCH).await?;
            for row in &batch {
                let place = Place::upstream_headers(row.workspace_id, row.id);
                let (id, was) = (row.id, row.sealed_headers.as_slice());
                if let Some(sealed) = self.rewrapped(place, was)? {
                    let done = servers::reseal(conn, row.workspace_id, id, was, &sealed).await?;
                    moved += u64::from(done);
                }
            }
            tx.commit().await?;
            match batch.last() {
                Some(last) => after = Some(last.id),
                None => return Ok(moved),
            }
        }
    }

    async fn rewrap_arguments(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<ApprovalId>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = approvals::list_sealed(conn, after, BATCH).await?;
            for row in &batch {
                let place = Place::approval_arguments(row.workspace_id, row.id);
                if let Some(sealed) = self.rewrapped(place, &row.sealed_arguments)? {
                    moved += u64::from(approvals::reseal(conn, row, &sealed).await?);
                }
            }
            tx.commit().await?;
            match batch.last() {
                Some(last) => after = Some(last.id),
                None => return Ok(moved),
            }
        }
    }

    async fn rewrap_second_factors(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<UserId>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = second_factor::list_all(conn, after, BATCH).await?;
            for row in &batch {
                let place = Place::totp_secret(row.user_id);
                if let Some(sealed) = self.rewrapped(place, &row.sealed_secret)? {
                    let was = row.sealed_secret.as_slice();
                    let done = second_factor::reseal(conn, row.user_id, was, &sealed).await?;
                    moved += u64::from(done);
                }
            }
            tx.commit().await?;
            match batch.last() {
                Some(last) => after = Some(last.user_id),
                None => return Ok(moved),
            }
        }
    }

    async fn rewrap_answers(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<SealedAnswer>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = idempotency::list_sealed(conn, after.as_ref(), BATCH).await?;
            for row in &batch {
                let place = place_of(row.workspace_id, row.actor_id);
                if let Some(sealed) = self.rewrapped(place, &row.body)? {
                    moved += u64::from(idempotency::reseal(conn, row, &sealed).await?);
                }
            }
            tx.commit().await?;
            match batch.into_iter().last() {
                Some(last) => after = Some(last),
                None => return Ok(moved),
            }
        }
    }
}
