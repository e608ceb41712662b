//! The data directory: made with mode 0700, checked for writing, locked against a second `serve`.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};

use tracing::warn;

use crate::failure::{Failure, Outcome};
use crate::settings::StorageArgs;

/// Makes the data directory if it is missing and proves that files can be written there.
pub(crate) fn prepare(storage: &StorageArgs) -> Outcome {
    let directory = &storage.data_dir;
    let shown = directory.display();
    let remedy =
        "give this user write access to it, or name another one with --data-dir (SLUICE_DATA_DIR)";
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot make the data directory {shown}"))
        .and_then(|()| {
            probe(directory).with_context(|| format!("cannot write to the data directory {shown}"))
        })
        .or_else(|error| {
            if storage.needs_data_dir() {
                return Err(Failure::settings(error).remedy(remedy));
            }
            warn!(%error, "Log rows that a lost database does not take before a stop have nowhere to go");
            Ok(())
        })
}

fn probe(directory: &Path) -> io::Result<()> {
    tempfile::Builder::new().prefix(".write-test").tempfile_in(directory)?.close()
}

/// Refuses a second `serve` without Redis on the same data directory: each would save its counters
/// over the other's. SQLite files have a lock of their own.
pub(crate) fn lock(storage: &StorageArgs) -> Outcome<Option<File>> {
    if storage.redis_url.is_some() {
        return Ok(None);
    }
    let path = storage.data_dir.join("serve.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot open the lock file {}", path.display()))
        .map_err(Failure::settings)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let directory = storage.data_dir.display();
            let refusal = anyhow!("another `sluice serve` uses the data directory {directory}");
            Err(Failure::settings(refusal).remedy(
                "stop the other one, give this one its own --data-dir, or run several replicas on \
                 PostgreSQL and Redis (SLUICE_DATABASE_URL and SLUICE_REDIS_URL)",
            ))
        }
        Err(TryLockError::Error(error)) => {
            let text = format!("cannot lock {}", path.display());
            Err(Failure::settings(anyhow::Error::from(error).context(text)))
        }
    }
}
