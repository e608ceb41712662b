//! Who serves a SQLite file: one process, held by an operating-system lock that ends with it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Held by the one process that serves a SQLite file; released when dropped.
#[derive(Debug)]
pub struct ServingLock {
    _file: File,
}

impl ServingLock {
    /// Takes the lock of the database at `file`, in `<file>.lock` beside it.
    pub(crate) fn take(file: &Path) -> Result<Self, StoreError> {
        let path = lock_path(file);
        let broken = |error: std::io::Error| {
            StoreError::Address(format!("the lock file {} cannot be used: {error}", path.display()))
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(broken)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _file: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::AlreadyServed { path }),
            Err(TryLockError::Error(error)) => Err(broken(error)),
        }
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
