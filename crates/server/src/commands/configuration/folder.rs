//! Files of configuration on disk, and the secrets that they name.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use secrecy::SecretString;
use sluice_control::configuration::{Files, MAIN, Reference, Secrets, needs};

use crate::failure::{Failure, Outcome};

/// No file of configuration is larger.
const MAX_FILE: u64 = 1024 * 1024;
const MAX_SECRET: u64 = 64 * 1024;

/// What lies in a directory: the main file, what it names, and the secrets that are set.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) files: Files,
    pub(super) secrets: Secrets,
    /// What the main file is called on disk.
    pub(super) main: PathBuf,
}

impl Folder {
    /// Reads a main file, or the one in a directory.
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let main = if path.is_dir() { path.join(MAIN) } else { path.to_owned() };
        let base = main.parent().unwrap_or(Path::new("")).to_owned();
        let text = text(&main, MAX_FILE).map_err(Failure::settings)?;
        let needs = needs(&text);
        let mut files = Files::from([(MAIN.to_owned(), text)]);
        for name in needs.files {
            let path = base.join(&name);
            // One that is missing is told with all that is wrong.
            if path.exists() {
                let text = self::text(&path, MAX_FILE).map_err(Failure::settings)?;
                files.insert(name, text);
            }
        }
        let mut secrets = Secrets::new();
        for reference in needs.references {
            if let Some(value) = value(&reference, &base).map_err(Failure::settings)? {
                secrets.insert(reference.to_string(), value);
            }
        }
        Ok(Self { files, secrets, main })
    }
}

/// What a reference stands for; nothing where it is not set.
fn value(reference: &Reference, base: &Path) -> anyhow::Result<Option<SecretString>> {
    let text = match reference {
        Reference::Env(name) => match std::env::var_os(name) {
            None => return Ok(None),
            Some(value) => value
                .into_string()
                .map_err(|_| anyhow!("the environment variable {name} is not UTF-8"))?,
        },
        Reference::File(path) => {
            let path = base.join(path);
            if !path.exists() {
                return Ok(None);
            }
            text(&path, MAX_SECRET)?
        }
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    // A pipeline whose secret is missing often sets an empty variable.
    Ok((!text.is_empty()).then(|| SecretString::from(text)))
}

fn text(path: &Path, most: u64) -> anyhow::Result<String> {
    let shown = path.display();
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("cannot read {shown}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return Err(anyhow!("{shown} is larger than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("{shown} is not UTF-8"))
}

/// Writes the files below a directory.
pub(super) fn write(directory: &Path, files: &Files) -> Outcome {
    for (name, text) in files {
        let path = directory.join(name);
        let folder = path.parent().unwrap_or(directory);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::settings)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_folder_brings_what_the_main_file_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let main = "sluice: 1\nservers:\n  - name: s\n    upstream_url: https://a.test/mcp?${file:query}\n    \
                    headers:\n      Authorization: Bearer ${env:SLUICE_TEST_NOT_SET_AT_ALL}\n    policies:\n      \
                    - {name: p, file: policies/p.json}\n      - {name: q, file: policies/missing.json}\n";
        fs::create_dir(folder.path().join("policies")).expect("makes");
        fs::write(folder.path().join(MAIN), main).expect("writes");
        fs::write(folder.path().join("policies/p.json"), "{}").expect("writes");
        fs::write(folder.path().join("query"), "k=1\r\n").expect("writes");
        for path in [folder.path().to_owned(), folder.path().join(MAIN)] {
            let read = Folder::read(&path).expect("reads");
            assert_eq!(read.files.keys().collect::<Vec<_>>(), ["policies/p.json", MAIN]);
            let secrets: Vec<_> = read
                .secrets
                .iter()
                .map(|(name, value)| (name.as_str(), value.expose_secret()))
                .collect();
            assert_eq!(secrets, [("file:query", "k=1")]);
        }
        assert!(Folder::read(&folder.path().join("none.yaml")).is_err());
    }
}
