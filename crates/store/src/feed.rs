//! Waiting for changes: PostgreSQL's notification wakes the reader at once, and a look every half
//! second is the net under it on both databases.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::StoreError;
use crate::changes::{self, Change};
use crate::db::{Db, Pools};

const POLL: Duration = Duration::from_millis(500);
/// How long a broken listener rests before it tries again; the net holds meanwhile.
const LISTENER_REST: Duration = Duration::from_secs(2);

/// A reader of the change feed, from where it stood when it was opened.
#[derive(Debug)]
pub struct ChangeFeed {
    db: Db,
    seq: i64,
    woken: Arc<Notify>,
    listener: Option<JoinHandle<()>>,
}

impl ChangeFeed {
    /// Opens the feed at its end: changes from now on. Read what you cache after this.
    pub async fn open(db: &Db) -> Result<Self, StoreError> {
        let mut tx = db.read().await?;
        let seq = changes::latest(&mut tx.conn()).await?;
        tx.rollback().await?;
        let woken = Arc::new(Notify::new());
        let listener = match &db.pools {
            Pools::Postgres(pool) => Some(tokio::spawn(listen(pool.clone(), Arc::clone(&woken)))),
            Pools::Sqlite { .. } => None,
        };
        Ok(Self { db: db.clone(), seq, woken, listener })
    }

    /// The number of the last change that was given out.
    pub fn seq(&self) -> i64 {
        self.seq
    }

    /// The next changes, at least one. After an error, call again: nothing is skipped. Can be
    /// dropped while waiting.
    pub async fn next(&mut self) -> Result<Vec<Change>, StoreError> {
        loop {
            let changes = self.look().await?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            self.wait().await;
        }
    }

    /// What is there now, perhaps nothing: for a caller that wants to know that the feed works.
    pub async fn look(&mut self) -> Result<Vec<Change>, StoreError> {
        let mut tx = self.db.read().await?;
        let changes = changes::since(&mut tx.conn(), self.seq).await?;
        tx.rollback().await?;
        if let Some(last) = changes.last() {
            self.seq = last.seq;
        }
        Ok(changes)
    }

    /// Waits until there may be changes: woken by a notification, or after half a second.
    pub async fn wait(&self) {
        let _ = tokio::time::timeout(POLL, self.woken.notified()).await;
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

/// A task of its own, because waiting for a notification cannot be broken off half-way.
async fn listen(pool: PgPool, woken: Arc<Notify>) {
    while !pool.is_closed() {
        if let Err(error) = pass_on(&pool, &woken).await {
            tracing::debug!(%error, "The change feed's notifications broke off; looking every half second");
            tokio::time::sleep(LISTENER_REST).await;
        }
    }
}

async fn pass_on(pool: &PgPool, woken: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    // What was published while nobody listened.
    listener.listen("sluice_changes").await?;
    woken.notify_one();
    loop {
        listener.recv().await?;
        woken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes arrive within a second, as is promised, with room for the look itself.
    #[test]
    fn the_net_is_cast_twice_a_second() {
        assert_eq!(POLL, Duration::from_millis(500));
    }
}
