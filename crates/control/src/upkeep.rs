//! What runs by itself now and then: closing approvals whose time is over, forgetting what is old.

use chrono::TimeDelta;
use sluice_domain::ApprovalStatus;
use sluice_store::{
    account_links, approvals, idempotency, login_sessions, outbox, passkeys, second_factor, users,
};

use crate::idempotency::REMEMBERED;
use crate::{Control, ControlError};

/// Approvals that are closed in one transaction.
const BATCH: i64 = 200;
/// How long an approval's arguments are kept once it is closed.
pub const ARGUMENTS_KEPT: TimeDelta = TimeDelta::days(7);
/// How long a message that was done with stands in the delivery log.
const MESSAGES_KEPT: TimeDelta = TimeDelta::days(30);
/// A replica says every few seconds which approved calls it runs; silent for so long, it fell.
const LOST_AFTER: TimeDelta = TimeDelta::seconds(60);
const EXCEPTIONS_KEPT: TimeDelta = TimeDelta::days(30);
/// As long as the link that proves the address.
const PENDING_KEPT: TimeDelta = TimeDelta::days(3);
/// Rows that are forgotten in one transaction.
const PIECE: i64 = 5_000;

/// What a sweep forgot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub logins: u64,
    pub idempotency_keys: u64,
    pub arguments: u64,
    pub messages: u64,
    pub exceptions: u64,
    /// Mailed links whose time is over.
    pub links: u64,
    /// Accounts that were asked for by mail and whose address nobody proved in time.
    pub pending: u64,
}

impl Control {
    /// Closes approvals that nobody decided or used in time, and gives back what they were charged.
    pub async fn expire_approvals(&self) -> Result<usize, ControlError> {
        let mut closed = 0;
        loop {
            let now = self.now();
            let mut tx = self.begin().await?;
            let batch = approvals::expire_due(&mut tx.conn(), now, BATCH).await?;
            tx.commit().await?;
            for one in &batch {
                if one.status == ApprovalStatus::Expired {
                    let demands = one.demands.as_deref();
                    self.give_back(one.workspace_id, one.reservation, demands).await;
                }
            }
            closed += batch.len();
            if batch.is_empty() {
                return Ok(closed);
            }
        }
    }

    /// Says of approved calls whose replica fell on the way that their outcome is unknown. `all`: no
    /// replica runs, so none of them is on its way.
    pub async fn close_lost_releases(&self, all: bool) -> Result<usize, ControlError> {
        let now = self.now();
        let seen_before = if all { now + TimeDelta::days(1) } else { now - LOST_AFTER };
        let mut tx = self.begin().await?;
        let lost = approvals::mark_unknown(&mut tx.conn(), seen_before, now).await?;
        tx.commit().await?;
        Ok(lost.len())
    }

    /// Forgets ended logins, old idempotency keys, arguments of approvals long closed, old messages
    /// and exceptions.
    pub async fn sweep(&self) -> Result<Swept, ControlError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let swept = Swept {
            logins: login_sessions::prune(conn, now).await?
                + second_factor::prune_half(conn, now).await?
                + passkeys::prune(conn, now).await?,
            idempotency_keys: idempotency::prune(conn, now - REMEMBERED).await?,
            arguments: approvals::wipe_arguments(conn, now - ARGUMENTS_KEPT).await?,
            messages: outbox::prune(conn, now - MESSAGES_KEPT, PIECE).await?,
            exceptions: approvals::prune_exceptions(conn, now - EXCEPTIONS_KEPT, PIECE).await?,
            links: account_links::prune(conn, now).await?,
            pending: users::prune_pending(conn, now - PENDING_KEPT).await?,
        };
        tx.commit().await?;
        Ok(swept)
    }
}
