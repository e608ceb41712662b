//! Log rows on disk while the database is away: files of one row a line, each with its checksum, synced
//! before the rows leave memory, read back in the order in which they came.
//!
//! A row may be read twice (a crash forgets how far reading was), never not at all: the tables keep one
//! row an id. A line that a crash tore, or that a disk changed, is told and left out; those around it stay.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_domain::metrics::{self, Log};
use tracing::error;

/// A file that has reached this size is closed, and goes as soon as all its rows are in the database.
const FILE: u64 = 4 * 1024 * 1024;
/// The checksum in hexadecimal, and the space behind it.
const HEAD: usize = 9;

/// Why rows could not be put aside.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpillError {
    #[error("the files hold as much as `--log-spill` allows")]
    Full,
    #[error("the files cannot be used")]
    Disk(#[from] io::Error),
}

/// The files of one log.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    kind: &'static str,
    most: u64,
    /// Oldest first; only the last may be open for writing.
    files: VecDeque<Kept>,
    writer: Option<File>,
    reader: Option<Reader>,
    next: u64,
    _lock: File,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    bytes: u64,
}

/// The oldest file, as far as it was read.
#[derive(Debug)]
struct Reader {
    text: Vec<u8>,
    /// Up to here rows are in the database.
    done: usize,
    /// Up to here rows were handed out.
    given: usize,
}

impl Spill {
    /// Opens the files in `directory`, which no other process may be using.
    pub(super) fn open(directory: &Path, kind: &'static str, most: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let lock = private().truncate(false).open(directory.join(format!("{kind}.lock")))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let words = "another `sluice serve` keeps its log rows there";
                io::Error::new(io::ErrorKind::ResourceBusy, words)
            }
            TryLockError::Error(error) => error,
        })?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if let Some(number) = number(kind, &entry.file_name().to_string_lossy()) {
                files.push(Kept { number, bytes: entry.metadata()?.len() });
            }
        }
        files.sort_by_key(|file| file.number);
        let next = files.last().map_or(1, |file| file.number.saturating_add(1));
        Ok(Self {
            directory: directory.to_owned(),
            kind,
            most,
            files: files.into(),
            writer: None,
            reader: None,
            next,
            _lock: lock,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What the files take on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Writes the rows behind the others; once it returns they are on the disk. All of them or none.
    /// `beyond`: past the bound too, since the process ends and memory holds no more of them than its queue.
    pub(super) fn append<T: Serialize>(
        &mut self,
        rows: &[T],
        beyond: bool,
    ) -> Result<(), SpillError> {
        let mut text = Vec::new();
        for row in rows {
            let json = serde_json::to_vec(row).map_err(io::Error::other)?;
            write!(text, "{:08x} ", crc32fast::hash(&json))?;
            text.extend_from_slice(&json);
            text.push(b'\n');
        }
        let length = text.len() as u64;
        if !beyond && self.bytes() + length > self.most {
            return Err(SpillError::Full);
        }
        if self.writer.is_none() {
            self.writer = Some(self.create()?);
        }
        let written = match &mut self.writer {
            Some(file) => file.write_all(&text).and_then(|()| file.sync_data()),
            None => Ok(()),
        };
        let Some(last) = self.files.back_mut() else { return Ok(()) };
        if let Err(error) = written {
            // What is half there is taken back, so that it is not read as torn.
            let file = self.writer.take();
            if file.is_none_or(|file| file.set_len(last.bytes).is_err()) {
                last.bytes += length;
            }
            if last.bytes == 0 {
                self.remove_last();
            }
            return Err(error.into());
        }
        last.bytes += length;
        if last.bytes >= FILE {
            self.writer = None;
        }
        Ok(())
    }

    fn create(&mut self) -> io::Result<File> {
        let file = private().create_new(true).append(true).open(self.path(self.next))?;
        // The name itself must outlive a crash of the machine.
        File::open(&self.directory)?.sync_all()?;
        self.files.push_back(Kept { number: self.next, bytes: 0 });
        self.next += 1;
        Ok(file)
    }

    fn remove_last(&mut self) {
        if let Some(file) = self.files.pop_back() {
            std::fs::remove_file(self.path(file.number)).ok();
        }
    }

    /// The oldest rows, `most` at most. They come again until [`done`](Self::done) is called.
    pub(super) fn oldest<T: DeserializeOwned>(&mut self, most: usize) -> io::Result<Vec<T>> {
        loop {
            let Some(number) = self.files.front().map(|file| file.number) else {
                return Ok(Vec::new());
            };
            if self.files.len() == 1 {
                // It is being written to: what comes from now on goes into another.
                self.writer = None;
            }
            if self.reader.is_none() {
                let text = std::fs::read(self.path(number))?;
                self.reader = Some(Reader { text, done: 0, given: 0 });
            }
            let Some(reader) = &mut self.reader else { return Ok(Vec::new()) };
            reader.given = reader.done;
            let rows = reader.rows(most, self.kind);
            if !rows.is_empty() {
                return Ok(rows);
            }
            self.done();
        }
    }

    /// What [`oldest`](Self::oldest) gave is in the database.
    pub(super) fn done(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        reader.done = reader.given;
        if reader.done < reader.text.len() {
            return;
        }
        self.reader = None;
        if let Some(file) = self.files.pop_front()
            && let Err(error) = std::fs::remove_file(self.path(file.number))
        {
            error!(%error, "A file of log rows that are in the database cannot be removed; they are read again at the next start");
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(name(self.kind, number))
    }
}

impl Reader {
    fn rows<T: DeserializeOwned>(&mut self, most: usize, kind: &'static str) -> Vec<T> {
        let mut rows = Vec::new();
        while rows.len() < most && self.given < self.text.len() {
            let rest = &self.text[self.given..];
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            self.given += end.map_or(rest.len(), |end| end + 1);
            if let Some(row) = row(line) {
                rows.push(row);
                continue;
            }
            if let Ok(log) = kind.parse::<Log>() {
                metrics::LOG_LOST.add([log as usize], 1);
            }
            error!(
                log = kind,
                bytes = line.len(),
                torn = end.is_none(),
                "A log row that was put aside is damaged and left out"
            );
        }
        rows
    }
}

fn row<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (head, json) = line.split_at_checked(HEAD)?;
    let told = u32::from_str_radix(std::str::from_utf8(head).ok()?.strip_suffix(' ')?, 16).ok()?;
    (told == crc32fast::hash(json)).then(|| serde_json::from_slice(json).ok()).flatten()
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn name(kind: &str, number: u64) -> String {
    format!("{kind}-{number:012}.rows")
}

fn number(kind: &str, name: &str) -> Option<u64> {
    name.strip_prefix(kind)?.strip_prefix('-')?.strip_suffix(".rows")?.parse().ok()
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
