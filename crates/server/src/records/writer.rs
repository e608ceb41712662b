//! The task between a log's queue, the database, and the files for when the database is away.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_domain::metrics;
use sluice_store::{Db, StoreError};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tracing::{error, info, warn};

use super::spill::Spill;
use super::{Keeping, Row, Writing};

const BATCH: usize = 1_000;
/// How long rows gather before they are written. A transaction costs the database what some hundred rows
/// do, and a page of the log shows a call soon enough all the same.
const GATHER: Duration = Duration::from_millis(25);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A database that takes longer for a batch counts as away, and its rows are put aside: a queue that
/// fills in a quarter of a second has no more time.
const PATIENCE: Duration = Duration::from_millis(250);
/// What was put aside is written with ever more patience: a database may be slow for long.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
const MOST_PATIENCE: Duration = Duration::from_mins(1);
/// How long a row may still come after the drain began.
const LAST_ROWS: Duration = Duration::from_secs(2);

pub(super) struct Task<T> {
    db: Db,
    receiver: mpsc::Receiver<T>,
    writing: Writing,
    spill: Option<Arc<Mutex<Spill>>>,
    keeping: Keeping,
    /// Rows that are neither in the database nor in a file.
    held: Vec<T>,
    /// No file takes rows, and that was told.
    stuck: bool,
}

/// How long to wait before the next try, and then for it.
#[derive(Clone, Copy)]
struct Pace {
    pause: Duration,
    patience: Duration,
}

impl Pace {
    const FIRST: Self = Self { pause: Duration::ZERO, patience: PATIENCE };
    const BACK: Self = Self { pause: Duration::ZERO, patience: FIRST_PATIENCE };

    fn slower(self) -> Self {
        Self {
            pause: (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE),
            patience: (self.patience * 2).min(MOST_PATIENCE),
        }
    }
}

impl<T: Row> Task<T> {
    pub(super) fn new(
        db: Db,
        receiver: mpsc::Receiver<T>,
        writing: Writing,
        spill: Option<Spill>,
        keeping: Keeping,
    ) -> Self {
        let spill = spill.map(|spill| Arc::new(Mutex::new(spill)));
        Self { db, receiver, writing, spill, keeping, held: Vec::new(), stuck: false }
    }

    pub(super) async fn run(mut self) {
        let mut pace = Pace::FIRST;
        loop {
            if self.has_aside() {
                if !self.write_back().await {
                    break;
                }
                pace = Pace::FIRST;
            }
            if self.held.is_empty() && self.receive().await == 0 {
                return;
            }
            let tried = attempt(&self.db, &mut self.held, pace);
            if until(tried, &self.keeping).await.is_none() {
                break;
            }
            self.told(!self.held.is_empty());
            if self.held.is_empty() || self.put_aside(false).await {
                pace = Pace::FIRST;
            } else {
                pace = pace.slower();
            }
        }
        self.end().await;
    }

    /// The next rows; 0 at the end.
    async fn receive(&mut self) -> usize {
        if !self.receiver.is_closed() {
            tokio::select! {
                biased;
                count = self.receiver.recv_many(&mut self.held, BATCH) => return self.gathered(count).await,
                () = self.keeping.drain.cancelled() => self.receiver.close(),
            }
        }
        // A request that was cut off may hold its place for ever.
        let rest = self.receiver.recv_many(&mut self.held, BATCH);
        tokio::time::timeout(LAST_ROWS, rest).await.unwrap_or(0)
    }

    /// The rows that come soon after the first ones, which make one batch with them. Nobody waits on the
    /// queue meanwhile, so the data path wakes nobody with its rows.
    async fn gathered(&mut self, first: usize) -> usize {
        if first == 0 || first >= BATCH {
            return first;
        }
        tokio::select! {
            () = tokio::time::sleep(GATHER) => {}
            () = self.keeping.drain.cancelled() => {}
        }
        while self.held.len() < BATCH
            && let Ok(row) = self.receiver.try_recv()
        {
            self.held.push(row);
        }
        self.held.len()
    }

    /// Writes what was put aside, oldest first, and puts aside what comes meanwhile; false when the
    /// process must end first.
    async fn write_back(&mut self) -> bool {
        let mut pace = Pace::BACK;
        while let Some(rows) = self.oldest().await {
            let away = match rows {
                Ok(rows) if rows.is_empty() => break,
                Ok(mut rows) => {
                    let db = self.db.clone();
                    if self.meanwhile(attempt(&db, &mut rows, pace)).await.is_none() {
                        return false;
                    }
                    self.told(!rows.is_empty());
                    !rows.is_empty()
                }
                Err(error) => {
                    error!(log = T::KIND, %error, "Log rows that were put aside cannot be read");
                    let pause = tokio::time::sleep(pace.slower().pause);
                    if self.meanwhile(pause).await.is_none() {
                        return false;
                    }
                    true
                }
            };
            if away {
                pace = pace.slower();
                continue;
            }
            // The patience stays: what is slow now is slow for a while.
            pace.pause = Duration::ZERO;
            self.done().await;
            if !self.held.is_empty() {
                self.put_aside(false).await;
            }
        }
        true
    }

    /// Waits for `work` and puts aside what comes; `None` when the process must end first.
    async fn meanwhile<R>(&mut self, work: impl Future<Output = R>) -> Option<R> {
        let keeping = self.keeping.clone();
        let (mut work, mut over) = (pin!(work), pin!(over(&keeping)));
        let mut more = true;
        loop {
            let room = BATCH.saturating_sub(self.held.len());
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = &mut over => return None,
                count = self.receiver.recv_many(&mut self.held, room), if more && room > 0 => {
                    more = count > 0;
                    if more {
                        self.put_aside(false).await;
                    }
                }
                () = keeping.drain.cancelled(), if !self.receiver.is_closed() => {
                    self.receiver.close();
                }
            }
        }
    }

    fn told(&self, away: bool) {
        if !self.writing.is_news(away) {
            return;
        }
        if away {
            warn!(
                log = T::KIND,
                "The database takes no log rows; they wait in memory and in files"
            );
        } else {
            info!(log = T::KIND, "Log rows are written again");
        }
    }

    fn has_aside(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| !spill.lock().is_empty())
    }

    /// Puts the held rows into the files; false where none takes them.
    async fn put_aside(&mut self, beyond: bool) -> bool {
        if self.spill.is_none() {
            return false;
        }
        let rows = std::mem::take(&mut self.held);
        let count = rows.len() as u64;
        let done = self.on_disk(move |spill| (spill.append(&rows, beyond), rows)).await;
        let error = match done {
            None => {
                metrics::LOG_LOST.add([T::LOG as usize], count);
                return true;
            }
            Some((Ok(()), _)) => {
                metrics::LOG_ASIDE.add([T::LOG as usize], count);
                self.stuck = false;
                return true;
            }
            Some((Err(error), rows)) => {
                self.held = rows;
                error
            }
        };
        if !std::mem::replace(&mut self.stuck, true) {
            warn!(log = T::KIND, error = ?error, "Log rows wait in memory alone");
        }
        false
    }

    /// Rows of the oldest file; `None` without files.
    async fn oldest(&mut self) -> Option<std::io::Result<Vec<T>>> {
        self.on_disk(|spill| spill.oldest(BATCH)).await
    }

    async fn done(&mut self) {
        self.on_disk(Spill::done).await;
    }

    /// Does what may wait for a disk.
    async fn on_disk<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Spill) -> R + Send + 'static,
    ) -> Option<R> {
        let spill = Arc::clone(self.spill.as_ref()?);
        let worked = spawn_blocking(move || {
            let mut spill = spill.lock();
            let result = work(&mut spill);
            (result, spill.bytes())
        });
        match worked.await {
            Ok((result, bytes)) => {
                self.writing.set_aside(bytes);
                Some(result)
            }
            Err(error) => {
                error!(log = T::KIND, %error, "The files of log rows broke");
                self.spill = None;
                None
            }
        }
    }

    /// The process ends and the database is away: all that is left goes into the files.
    async fn end(mut self) {
        self.receiver.close();
        while let Ok(row) = self.receiver.try_recv() {
            self.held.push(row);
        }
        let rows = self.held.len();
        if rows == 0 {
            return;
        }
        if self.put_aside(true).await {
            warn!(log = T::KIND, rows, "The database is away: log rows wait for the next start");
        } else {
            metrics::LOG_LOST.add([T::LOG as usize], rows as u64);
            error!(log = T::KIND, rows, "Log rows are lost");
        }
    }
}

/// Over once the process was told to end, and had its time.
async fn over(keeping: &Keeping) {
    keeping.drain.cancelled().await;
    tokio::time::sleep(keeping.grace).await;
}

async fn until<R>(work: impl Future<Output = R>, keeping: &Keeping) -> Option<R> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = over(keeping) => None,
    }
}

/// Tries to write the rows; those that the database was away for stay, and so do all when this is cut off.
async fn attempt<T: Row>(db: &Db, rows: &mut Vec<T>, pace: Pace) {
    tokio::time::sleep(pace.pause).await;
    match tokio::time::timeout(pace.patience, insert(db, rows)).await {
        Ok(Ok(())) => {
            metrics::LOG_WRITTEN.add([T::LOG as usize], rows.len() as u64);
            rows.clear();
        }
        Ok(Err(error)) if !error.is_unavailable() => {
            error!(log = T::KIND, error = ?error, rows = rows.len(), "A batch of log rows was refused");
            one_by_one(db, rows, pace.patience).await;
        }
        // After a timeout nobody knows: they are written again, and the table keeps one row an id.
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn insert<T: Row>(db: &Db, rows: &[T]) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    T::insert(&mut tx.conn(), rows).await?;
    tx.commit().await
}

/// Finds the row that the database does not take, so that it does not hold up the others.
async fn one_by_one<T: Row>(db: &Db, rows: &mut Vec<T>, patience: Duration) {
    let mut stay = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        match tokio::time::timeout(patience, insert(db, std::slice::from_ref(row))).await {
            Ok(Err(error)) if !error.is_unavailable() => {
                metrics::LOG_LOST.add([T::LOG as usize], 1);
                error!(log = T::KIND, error = ?error, "A log row was refused and is lost");
                stay.push(false);
            }
            Ok(Ok(())) => stay.push(false),
            Ok(Err(_)) | Err(_) => stay.push(true),
        }
    }
    let mut stay = stay.into_iter();
    rows.retain(|_| stay.next().unwrap_or(true));
}
