//! The master key file of an installation that was given no keys: made once
//! with mode 0600, refused when others can read it or it is damaged.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use crate::keys::{KeysError, Vault, generate_master_key};
use crate::random::random;

const MAX_BYTES: u64 = 64 * 1024;

/// Why the key file cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read the key file {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot make the key file {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "the key file {path} has mode {mode:04o}, so others can read it: run `chmod 600 {path}`, and rotate the keys if others may have"
    )]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "the key file {path} is damaged: restore it from a backup; without it the stored upstream credentials cannot be opened"
    )]
    Damaged { path: PathBuf, source: KeysError },
    #[error(
        "the key file {path} is not a file of text: restore it from a backup; without it the stored upstream credentials cannot be opened"
    )]
    NotText { path: PathBuf },
}

/// Reads the key file, making it first if there is none. Two processes that start at once get the same key.
pub fn load_or_create(path: &Path, id: &str) -> Result<SecretString, KeyFileError> {
    if let Some(keys) = load(path)? {
        return Ok(keys);
    }
    let create_error = |source| KeyFileError::Create { path: path.to_owned(), source };
    create(path, id).map_err(create_error)?;
    load(path)?.ok_or_else(|| create_error(io::ErrorKind::NotFound.into()))
}

fn load(path: &Path) -> Result<Option<SecretString>, KeyFileError> {
    let at = || path.to_owned();
    let read_error = |source| KeyFileError::Read { path: at(), source };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(read_error(error)),
    };
    let facts = file.metadata().map_err(read_error)?;
    let mode = facts.permissions().mode() & 0o7777;
    if !facts.is_file() || facts.len() > MAX_BYTES {
        return Err(KeyFileError::NotText { path: at() });
    }
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Open { path: at(), mode });
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => KeyFileError::NotText { path: at() },
        _ => read_error(error),
    })?;
    let keys = SecretString::from(text);
    Vault::from_keys(&keys).map_err(|source| KeyFileError::Damaged { path: at(), source })?;
    Ok(Some(keys))
}

/// Writes beside the path and links into place, so that nobody reads half a key and the first of two wins.
fn create(path: &Path, id: &str) -> io::Result<()> {
    let suffix = u64::from_be_bytes(random::<8>());
    let beside = path.with_extension(format!("{suffix:016x}.new"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file
        .write_all(format!("{}\n", generate_master_key(id).expose_secret()).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| place(&beside, path));
    // Already gone where `place` had to rename.
    let _ = fs::remove_file(&beside);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Some file systems of containers know no hard links; there only a rename is left.
fn place(beside: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if !path.exists() => fs::rename(beside, path),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    #[test]
    fn the_file_is_made_once_and_only_for_its_owner() {
        let folder = folder();
        let path = folder.path().join("master.keys");
        let first = load_or_create(&path, "k1").expect("made");
        let again = load_or_create(&path, "k1").expect("read");
        assert_eq!(first.expose_secret(), again.expose_secret());
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn many_at_once_agree_on_one_key() {
        let folder = folder();
        let path = folder.path().join("master.keys");
        let keys: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        load_or_create(&path, "k").expect("works").expose_secret().to_owned()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn open_and_damaged_files_are_refused_with_the_remedy() {
        let folder = folder();
        let path = folder.path().join("master.keys");
        load_or_create(&path, "k1").expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
        let error = load_or_create(&path, "k1").expect_err("too open").to_string();
        assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
        for damage in [&b""[..], b"k1:short", b"\xff\xfe\x00"] {
            fs::write(&path, damage).expect("written");
            let error = load_or_create(&path, "k1").expect_err("damaged").to_string();
            assert!(error.contains("restore it from a backup"), "{error}");
            assert_eq!(fs::read(&path).expect("still there"), damage, "never overwritten");
        }
        let error = load_or_create(folder.path(), "k1").expect_err("a directory").to_string();
        assert!(error.contains("not a file of text"), "{error}");
    }
}
