//! Log rows on their way to the database: a bounded queue, one task that inserts batches and waits out
//! a lost database, and a file for what could not be written before the process had to end.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_domain::{CallRecord, SecurityEvent};
use sluice_store::grants::{self, GrantUse};
use sluice_store::{Conn, Db, StoreError, calls, security_events};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

const BATCH: usize = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long a row may still come after the drain began.
const LAST_ROWS: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A row that has a table of its own. Inserting a row twice keeps one.
pub(crate) trait Row: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// For logs and metrics: `call`, `security`.
    const KIND: &'static str;

    fn insert(
        conn: &mut Conn<'_>,
        rows: &[Self],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Row for CallRecord {
    const KIND: &'static str = "call";

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
    const KIND: &'static str = "security";

    async fn insert(conn: &mut Conn<'_>, rows: &[Self]) -> Result<(), StoreError> {
        security_events::insert_batch(conn, rows).await.map(drop)
    }
}

/// How a log's writer is doing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writing(Arc<AtomicBool>);

impl Writing {
    /// Whether the last batch could not be written.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The task that writes one log.
#[derive(Debug)]
pub(crate) struct Writer(JoinHandle<()>);

impl Writer {
    /// Waits until every row is written, or in the file.
    pub(crate) async fn drained(self) {
        if let Err(error) = self.0.await {
            error!(%error, "A log writer broke");
        }
    }
}

/// How a writer ends.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// Where rows go that could not be written in time; the next start reads them.
    pub(crate) unsaved: PathBuf,
    /// Makes the writer write what is queued and end.
    pub(crate) drain: CancellationToken,
    /// How long it may take for that.
    pub(crate) grace: Duration,
}

/// Starts the writer of one log.
pub(crate) fn start<T: Row>(
    db: Db,
    receiver: mpsc::Receiver<T>,
    ending: Ending,
) -> (Writing, Writer) {
    let writing = Writing::default();
    let task = Task { db, receiver, writing: writing.clone(), ending };
    (writing, Writer(tokio::spawn(task.run())))
}

struct Task<T> {
    db: Db,
    receiver: mpsc::Receiver<T>,
    writing: Writing,
    ending: Ending,
}

impl<T: Row> Task<T> {
    async fn run(mut self) {
        let mut rows = read_unsaved::<T>(&self.ending.unsaved);
        let mut from_file = !rows.is_empty();
        loop {
            if !rows.is_empty() && !self.write(&mut rows).await {
                break;
            }
            if std::mem::take(&mut from_file) {
                std::fs::remove_file(&self.ending.unsaved).ok();
            }
            let received = self.receive(&mut rows).await;
            if received == 0 {
                return;
            }
        }
        while let Ok(row) = self.receiver.try_recv() {
            rows.push(row);
        }
        keep_unsaved(&self.ending.unsaved, &rows);
    }

    /// The next rows; 0 at the end.
    async fn receive(&mut self, rows: &mut Vec<T>) -> usize {
        if !self.receiver.is_closed() {
            let drain = self.ending.drain.clone();
            tokio::select! {
                biased;
                count = self.receiver.recv_many(rows, BATCH) => return count,
                () = drain.cancelled() => self.receiver.close(),
            }
        }
        // A request that was cut off may hold its place for ever.
        let rest = self.receiver.recv_many(rows, BATCH);
        tokio::time::timeout(LAST_ROWS, rest).await.unwrap_or(0)
    }

    /// Writes a batch, however long the database is away; false when the process must end first.
    async fn write(&self, rows: &mut Vec<T>) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            match insert(&self.db, rows).await {
                Ok(()) => {
                    metrics::counter!("sluice_log_written_total", "log" => T::KIND)
                        .increment(rows.len() as u64);
                    if self.writing.0.swap(false, Ordering::Relaxed) {
                        info!(log = T::KIND, "Log rows are written again");
                    }
                    rows.clear();
                    return true;
                }
                Err(error) if error.is_unavailable() => {
                    if !self.writing.0.swap(true, Ordering::Relaxed) {
                        warn!(log = T::KIND, error = ?error, "Log rows wait for the database");
                    }
                }
                Err(error) => {
                    error!(log = T::KIND, error = ?error, rows = rows.len(), "A batch of log rows was refused");
                    one_by_one(&self.db, rows).await;
                    if rows.is_empty() {
                        return true;
                    }
                }
            }
            let ended = async {
                self.ending.drain.cancelled().await;
                tokio::time::sleep(self.ending.grace).await;
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = ended => return false,
            }
        }
    }
}

async fn insert<T: Row>(db: &Db, rows: &[T]) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    T::insert(&mut tx.conn(), rows).await?;
    tx.commit().await
}

/// Finds the row that the database does not take, so that it does not hold up the others. Rows that
/// the database was away for stay.
async fn one_by_one<T: Row>(db: &Db, rows: &mut Vec<T>) {
    for row in std::mem::take(rows) {
        match insert(db, std::slice::from_ref(&row)).await {
            Ok(()) => {}
            Err(error) if error.is_unavailable() => rows.push(row),
            Err(error) => {
                metrics::counter!("sluice_log_lost_total", "log" => T::KIND).increment(1);
                error!(log = T::KIND, error = ?error, "A log row was refused and is lost");
            }
        }
    }
}

fn keep_unsaved<T: Row>(file: &Path, rows: &[T]) {
    let lines: Result<Vec<_>, _> = rows.iter().map(serde_json::to_string).collect();
    let written = lines
        .map_err(std::io::Error::other)
        .and_then(|lines| std::fs::write(file, lines.join("\n")));
    match written {
        Ok(()) => warn!(
            log = T::KIND, rows = rows.len(), file = %file.display(),
            "The database is away: log rows wait in a file for the next start"
        ),
        Err(error) => {
            metrics::counter!("sluice_log_lost_total", "log" => T::KIND)
                .increment(rows.len() as u64);
            error!(log = T::KIND, rows = rows.len(), %error, "Log rows are lost");
        }
    }
}

fn read_unsaved<T: Row>(file: &Path) -> Vec<T> {
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(row) => rows.push(row),
            Err(error) => error!(log = T::KIND, %error, "A kept log row cannot be read"),
        }
    }
    info!(log = T::KIND, rows = rows.len(), "Found log rows of the last run");
    rows
}
