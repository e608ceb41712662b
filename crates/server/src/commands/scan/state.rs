//! What the last scan saw, in a file that may be checked in: names and digests, no secret and no text of a server.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sluice_domain::{Category, Severity};

use super::report::Report;
use super::servers::{Scanned, key};

const VERSION: u32 = 1;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// One scan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    scanned_at: DateTime<Utc>,
    /// By file and name.
    servers: BTreeMap<String, Seen>,
}

/// A server as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    address: String,
    /// By name; `None`: they were never read.
    tools: Option<BTreeMap<String, SeenTool>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SeenTool {
    hash: String,
    category: Category,
    severity: Severity,
}

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Drift {
    pub(super) kind: &'static str,
    pub(super) tool: Option<String>,
    pub(super) words: String,
}

fn drift(kind: &'static str, tool: Option<&str>, words: impl Into<String>) -> Drift {
    Drift { kind, tool: tool.map(str::to_owned), words: words.into() }
}

impl State {
    /// The last scan; `None`: there was none.
    pub(super) fn read(file: &Path) -> anyhow::Result<Option<Self>> {
        let shown = file.display();
        let size = match std::fs::metadata(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            found => found.with_context(|| format!("cannot read {shown}"))?.len(),
        };
        if size > MOST_BYTES {
            return Err(anyhow!("{shown} is too large to be the last scan"));
        }
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let state: Self = serde_json::from_str(&text)
            .with_context(|| format!("{shown} is not what a scan remembers"))?;
        if state.version != VERSION {
            return Err(anyhow!("{shown} was written by another version of Sluice"));
        }
        Ok(Some(state))
    }

    /// What is remembered now. What could not be read is remembered as it was.
    pub(super) fn after(before: Option<&Self>, report: &Report) -> Self {
        let servers = report.servers.iter().map(|(one, _)| {
            let key = key(one);
            let before = before.and_then(|before| before.servers.get(&key));
            let kept = before.filter(|_| one.unread.is_some()).cloned();
            (key, kept.unwrap_or_else(|| seen(one)))
        });
        Self { version: VERSION, scanned_at: report.at, servers: servers.collect() }
    }

    /// Writes it beside and moves it into place.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", file.display());
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder).with_context(context)?;
        let mut beside = tempfile::NamedTempFile::new_in(folder).with_context(context)?;
        let text = serde_json::to_string_pretty(self).with_context(context)?;
        std::io::Write::write_all(&mut beside, format!("{text}\n").as_bytes())
            .with_context(context)?;
        beside.persist(file).map_err(|error| error.error).with_context(context)?;
        Ok(())
    }

    /// What changed of one server; nothing where it could not be read.
    pub(super) fn drift_of(&self, one: &Scanned) -> Vec<Drift> {
        let Some(before) = self.servers.get(&key(one)) else {
            return vec![drift("new_server", None, "this server is new")];
        };
        let now = seen(one);
        let mut found = Vec::new();
        if before.address != now.address {
            found.push(drift("address", None, format!("it was `{}` before", before.address)));
        }
        let (Some(then), Some(tools)) = (&before.tools, &now.tools) else { return found };
        for (name, tool) in tools {
            match then.get(name) {
                None => found.push(drift("added", Some(name), "this tool is new")),
                Some(old) if old.hash != tool.hash => {
                    found.push(drift("changed", Some(name), changed(old, tool)));
                }
                Some(_) => {}
            }
        }
        let gone = then.keys().filter(|name| !tools.contains_key(*name));
        found.extend(gone.map(|name| drift("removed", Some(name), "this tool is gone")));
        found
    }

    /// Servers of the scanned files that are no longer there.
    pub(super) fn gone<'a>(&'a self, now: &'a [Scanned]) -> impl Iterator<Item = &'a str> {
        let files = now.iter().map(|one| format!("{}#", one.file.display()));
        let files: std::collections::BTreeSet<String> = files.collect();
        let keys: std::collections::BTreeSet<String> = now.iter().map(key).collect();
        self.servers.keys().map(String::as_str).filter(move |known| {
            files.iter().any(|file| known.starts_with(file.as_str())) && !keys.contains(*known)
        })
    }
}

fn seen(one: &Scanned) -> Seen {
    let tool = |tool: &super::servers::ScannedTool| SeenTool {
        hash: tool.hash.clone(),
        category: tool.rating.category,
        severity: tool.rating.severity,
    };
    let tools = || one.tools.iter().map(|it| (it.name.clone(), tool(it))).collect();
    Seen { address: one.shown.clone(), tools: one.unread.is_none().then(tools) }
}

fn changed(old: &SeenTool, new: &SeenTool) -> String {
    if (old.category, old.severity) == (new.category, new.severity) {
        return "its definition changed".to_owned();
    }
    format!(
        "its definition changed: it was rated {}, {} and is rated {}, {} now",
        old.category, old.severity, new.category, new.severity
    )
}
