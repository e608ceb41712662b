//! Counters of this process in a file, so that a clean restart keeps them.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_domain::{Amount, ReservationId, WorkspaceId};

use crate::buckets::Buckets;
use crate::memory::{Charged, Memory};
use crate::span::Span;

/// The form of the file; another one is not read.
const VERSION: u32 = 1;

/// Why counters could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read or write the counters' file {path}")]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("the counters' file {path} is damaged")]
    Damaged {
        path: PathBuf,
        #[source]
        cause: serde_json::Error,
    },
    #[error("the counters' file {path} has version {version}, this program reads {VERSION}")]
    OtherVersion { path: PathBuf, version: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    version: u32,
    counters: Vec<SavedCounter>,
    reservations: Vec<SavedReservation>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedCounter {
    workspace: WorkspaceId,
    name: Arc<str>,
    span: Span,
    epoch: i64,
    buckets: Vec<(i64, Amount)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedReservation {
    workspace: WorkspaceId,
    id: ReservationId,
    until: i64,
    charges: Vec<Charged>,
}

impl Memory {
    pub(crate) async fn save(&self, path: &Path) -> Result<(), FileError> {
        let saved = self.snapshot();
        on_file(path, move |path| write_whole(path, &saved)).await
    }

    pub(crate) async fn load(&self, path: &Path) -> Result<usize, FileError> {
        let read = on_file(path, |path| match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        });
        let Some(bytes) = read.await? else { return Ok(0) };
        let saved: Saved = serde_json::from_slice(&bytes)
            .map_err(|cause| FileError::Damaged { path: path.to_owned(), cause })?;
        if saved.version != VERSION {
            let path = path.to_owned();
            return Err(FileError::OtherVersion { path, version: saved.version });
        }
        Ok(self.restore(saved))
    }

    fn snapshot(&self) -> Saved {
        let mut saved = Saved { version: VERSION, counters: Vec::new(), reservations: Vec::new() };
        let now = self.now();
        for shard in self.shards() {
            let shard = shard.lock();
            for ((workspace, name), counter) in shard.counters() {
                let mut buckets = counter.buckets.clone();
                buckets.settle(counter.span, now);
                saved.counters.push(SavedCounter {
                    workspace: *workspace,
                    name: Arc::clone(name),
                    span: counter.span,
                    epoch: buckets.epoch,
                    buckets: buckets.filled,
                });
            }
            for ((workspace, id), record) in shard.records() {
                let (charges, until) = (record.charges.clone(), record.until);
                let reservation =
                    SavedReservation { workspace: *workspace, id: *id, until, charges };
                saved.reservations.push(reservation);
            }
        }
        saved
    }

    fn restore(&self, saved: Saved) -> usize {
        let now = self.now();
        let mut alive = 0;
        for counter in saved.counters {
            let mut buckets = Buckets { epoch: counter.epoch, filled: counter.buckets };
            buckets.filled.sort_unstable_by_key(|(index, _)| *index);
            buckets.settle(counter.span, now);
            if buckets.used() > Amount::ZERO {
                alive += 1;
                let name = (counter.workspace, counter.name);
                self.shard(counter.workspace).lock().put(name, counter.span, buckets);
            }
        }
        for SavedReservation { workspace, id, until, charges } in saved.reservations {
            if until > now {
                self.shard(workspace).lock().remember(workspace, id, until, charges);
            }
        }
        alive
    }
}

/// Runs a piece of file work where it may block.
async fn on_file<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let owned = path.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&owned)).await;
    done.unwrap_or_else(|lost| Err(io::Error::other(lost)))
        .map_err(|cause| FileError::Io { path: path.to_owned(), cause })
}

/// Replaces a file as a whole: a reader, or a crash, finds the old or the new, never a part.
fn write_whole(path: &Path, saved: &Saved) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Piece by piece: a busy gateway's reservations take some megabytes of text.
    let mut file = BufWriter::with_capacity(64 * 1024, options.open(&beside)?);
    serde_json::to_writer(&mut file, saved)?;
    file.into_inner()?.sync_all()?;
    std::fs::rename(&beside, path)
}
