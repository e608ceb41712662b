//! Log rows on their way to the database: a bounded queue, one task that inserts batches, and files on
//! disk for what comes while the database is away. When both are full, the queue stays full, and the data
//! path does as `--log-unavailable` says.

mod spill;
mod writer;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_domain::metrics::Log;
use sluice_domain::{CallRecord, SecurityEvent};
use sluice_store::grants::{self, GrantUse};
use sluice_store::{Conn, Db, StoreError, calls, security_events};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use spill::Spill;
use writer::Task;

/// A row that has a table of its own. Inserting a row twice keeps one.
pub(crate) trait Row: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// For logs and metrics: `call`, `security`.
    const KIND: &'static str = Self::LOG.as_str();
    /// Which log it is.
    const LOG: Log;

    fn insert(
        conn: &mut Conn<'_>,
        rows: &[Self],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Row for CallRecord {
    const LOG: Log = Log::Call;

    async fn insert(conn: &mut Conn<'_>, rows: &[Self]) -> Result<(), StoreError> {
        calls::insert_batch(conn, rows).await?;
        grants::touch_last_used(conn, &uses(rows)).await
    }
}

/// The last use of each grant in a batch.
fn uses(rows: &[CallRecord]) -> Vec<GrantUse> {
    let mut last = HashMap::new();
    for row in rows {
        let used = last.entry((row.workspace, row.grant)).or_insert_with(|| GrantUse {
            workspace: row.workspace,
            grant: row.grant,
            at: row.at,
            client: None,
        });
        used.at = used.at.max(row.at);
        if row.client_name.is_some() {
            used.client.clone_from(&row.client_name);
        }
    }
    last.into_values().collect()
}

impl Row for SecurityEvent {
    const LOG: Log = Log::Security;

    async fn insert(conn: &mut Conn<'_>, rows: &[Self]) -> Result<(), StoreError> {
        security_events::insert_batch(conn, rows).await.map(drop)
    }
}

/// How a log's writer is doing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writing(Arc<State>);

#[derive(Debug, Default)]
struct State {
    failing: AtomicBool,
    aside: AtomicU64,
}

impl Writing {
    /// Whether the last batch could not be written.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.failing.load(Ordering::Relaxed)
    }

    /// What waits in files, in bytes.
    pub(crate) fn aside(&self) -> u64 {
        self.0.aside.load(Ordering::Relaxed)
    }

    /// Says how it went; whether that is news.
    fn is_news(&self, failing: bool) -> bool {
        self.0.failing.swap(failing, Ordering::Relaxed) != failing
    }

    fn set_aside(&self, bytes: u64) {
        self.0.aside.store(bytes, Ordering::Relaxed);
    }
}

/// The task that writes one log.
#[derive(Debug)]
pub(crate) struct Writer(JoinHandle<()>);

impl Writer {
    /// Waits until every row is written, or in the files.
    pub(crate) async fn drained(self) {
        if let Err(error) = self.0.await {
            error!(%error, "A log writer broke");
        }
    }
}

/// Where rows wait while the database is away, and how a writer ends.
#[derive(Debug, Clone)]
pub(crate) struct Keeping {
    /// The files' directory.
    pub(crate) directory: PathBuf,
    /// Bytes at most in files; 0: none are written.
    pub(crate) most: u64,
    /// Makes the writer write what is queued and end.
    pub(crate) drain: CancellationToken,
    /// How long it may take for that.
    pub(crate) grace: Duration,
}

/// Starts the writer of one log.
pub(crate) fn start<T: Row>(
    db: Db,
    receiver: mpsc::Receiver<T>,
    keeping: Keeping,
) -> (Writing, Writer) {
    let writing = Writing::default();
    let task = Task::new(db, receiver, writing.clone(), open::<T>(&keeping), keeping);
    (writing, Writer(tokio::spawn(task.run())))
}

fn open<T: Row>(keeping: &Keeping) -> Option<Spill> {
    if keeping.most == 0 {
        return None;
    }
    match Spill::open(&keeping.directory, T::KIND, keeping.most) {
        Ok(spill) => {
            if !spill.is_empty() {
                info!(log = T::KIND, bytes = spill.bytes(), "Found log rows of the last run");
            }
            Some(spill)
        }
        Err(error) => {
            let directory = keeping.directory.display();
            warn!(
                log = T::KIND, %error,
                "Log rows cannot wait in {directory} while the database is away, only in memory; \
                 give each replica a --data-dir of its own that it can write to"
            );
            None
        }
    }
}
