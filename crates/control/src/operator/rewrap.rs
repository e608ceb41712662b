//! Key rotation of notifications: their channels' addresses and secrets, and the messages.

use sluice_domain::{DeliveryId, EndpointId};
use sluice_store::{endpoints, outbox};
use sluice_vault::Place;

use super::Operator;
use crate::ControlError;
use crate::notices::{EndpointColumn, endpoint_place, place};

/// Sealed values that are rewrapped in one transaction.
const REWRAP_BATCH: i64 = 100;

impl Operator {
    pub(super) async fn rewrap_endpoints(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<EndpointId>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = endpoints::list_all(conn, after, REWRAP_BATCH).await?;
            for row in &batch {
                let again = |column, was: &[u8]| {
                    let place = endpoint_place(row.workspace_id, row.id, column);
                    self.again(place, was)
                };
                let sealed = [&row.sealed_url].into_iter().chain(&row.sealed_secret);
                let mut sealed = sealed.chain(&row.sealed_previous_secret);
                if !sealed.any(|was| self.vault.needs_rewrap(was)) {
                    continue;
                }
                let url = again(EndpointColumn::Url, &row.sealed_url)?;
                let secret = row.sealed_secret.as_deref();
                let secret = secret.map(|was| again(EndpointColumn::Secret, was)).transpose()?;
                let previous = row.sealed_previous_secret.as_deref();
                let previous =
                    previous.map(|was| again(EndpointColumn::PreviousSecret, was)).transpose()?;
                let (secret, previous) = (secret.as_deref(), previous.as_deref());
                let done = endpoints::reseal(conn, row, &url, secret, previous).await?;
                moved += u64::from(done);
            }
            tx.commit().await?;
            match batch.last() {
                Some(last) => after = Some(last.id),
                None => return Ok(moved),
            }
        }
    }

    pub(super) async fn rewrap_messages(&self) -> Result<u64, ControlError> {
        let (mut after, mut moved) = (None::<DeliveryId>, 0);
        loop {
            let mut tx = self.db.begin().await?;
            let conn = &mut tx.conn();
            let batch = outbox::list_all(conn, after, REWRAP_BATCH).await?;
            for row in &batch {
                if self.vault.needs_rewrap(&row.sealed_body) {
                    let sealed = self.again(place(row.workspace_id, row.id), &row.sealed_body)?;
                    let done = outbox::reseal(conn, row.id, &row.sealed_body, &sealed).await?;
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

    fn again(&self, place: Place, was: &[u8]) -> Result<Vec<u8>, ControlError> {
        self.vault.rewrap(place, was).map_err(ControlError::internal)
    }
}
