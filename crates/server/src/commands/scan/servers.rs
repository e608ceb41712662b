//! Reads the tools of one configured server, and rates them.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sluice_domain::{ServerId, ToolDefinition};
use sluice_risk::catalogue::{AuthNeeded, Identity, ServerEntry, starter};
use sluice_risk::grade::{Grade, Known, Looked, grade};
use sluice_risk::{Finding, Rating, classify, findings};
use sluice_upstream::{Prepared, Target, Upstream, UpstreamOptions, definition_hash};

use super::configs::{Configured, How};
use super::program;

/// A server with what is known of its tools.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) name: String,
    /// Address or command, without secrets.
    pub(super) shown: String,
    /// Why the server itself could not be read.
    pub(super) unread: Option<String>,
    /// The record of the catalogue that the tools are from, where the server was not read.
    pub(super) record: Option<&'static ServerEntry>,
    pub(super) tools: Vec<ScannedTool>,
    pub(super) grade: Grade,
}

/// A tool with all that was found.
#[derive(Debug)]
pub(super) struct ScannedTool {
    pub(super) name: String,
    pub(super) hash: String,
    pub(super) rating: Rating,
    pub(super) findings: Vec<Finding>,
}

/// Reads servers.
pub(super) struct Reader {
    start: bool,
    time: Duration,
    upstream: Upstream,
}

impl Reader {
    pub(super) fn new(start: bool, time: Duration) -> Self {
        // Whoever scans chose these addresses in the client already.
        let options = UpstreamOptions { allow_private: true, ..UpstreamOptions::default() };
        Self { start, time, upstream: Upstream::new(options) }
    }

    pub(super) async fn read(&self, one: &Configured, now: DateTime<Utc>) -> Scanned {
        let read = match &one.how {
            How::Not(why) => Err(why.clone()),
            How::Program { .. } if !self.start => {
                Err("it is a program; `--start` starts it to ask for its tools".to_owned())
            }
            How::Program { .. } => program::read(&one.how, self.time).await,
            How::Remote { .. } => self.remote(&one.how, now).await,
        };
        let record = if read.is_err() { known(&one.how) } else { None };
        let (definitions, unread) = match (&read, record) {
            (Ok(tools), _) => (tools.as_slice(), None),
            (Err(why), Some(record)) => (record.tools.as_slice(), Some(why.clone())),
            (Err(why), None) => (&[][..], Some(why.clone())),
        };
        Scanned {
            file: one.file.clone(),
            line: one.line,
            name: one.name.clone(),
            shown: one.how.shown(),
            grade: graded(&one.how, definitions, unread.is_none()),
            tools: definitions.iter().map(scanned).collect(),
            unread,
            record,
        }
    }

    async fn remote(&self, how: &How, now: DateTime<Utc>) -> Result<Vec<ToolDefinition>, String> {
        let How::Remote { url, headers, transport } = how else { return Err(String::new()) };
        let mut sent = Vec::new();
        for (name, value) in headers {
            let known = Target::header(name, value);
            let known = known.ok_or_else(|| "one of its headers cannot be sent".to_owned())?;
            sent.push((known, value.clone()));
        }
        let target = Target {
            server: ServerId::new(),
            url: url.clone(),
            headers: sent,
            transport: *transport,
            connect_timeout: self.time.min(Duration::from_secs(10)),
            idle_timeout: self.time,
            revision: 0,
            prepared: Prepared::default(),
        };
        let read = tokio::time::timeout(self.time, self.upstream.read_tools(&target, now)).await;
        match read {
            Ok(Ok(read)) => Ok(read.tools),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it did not answer within {} s", self.time.as_secs())),
        }
    }
}

fn scanned(definition: &ToolDefinition) -> ScannedTool {
    ScannedTool {
        name: definition.name.clone(),
        hash: definition_hash(definition),
        rating: classify(definition),
        findings: findings(definition),
    }
}

fn graded(how: &How, definitions: &[ToolDefinition], read: bool) -> Grade {
    let tools: Vec<Looked<'_>> = definitions.iter().map(Looked::at).collect();
    let command = match how {
        How::Program { .. } => Some(how.shown()),
        _ => None,
    };
    let auth = match how {
        How::Remote { headers, .. } if read && headers.is_empty() => Some(AuthNeeded::None),
        How::Remote { headers, .. } if read && !headers.is_empty() => Some(AuthNeeded::Token),
        _ => None,
    };
    grade(&Known {
        tools: &tools,
        watched: None,
        auth,
        command: command.as_deref(),
        lifecycle: None,
        identity: Identity::Unverified,
    })
}

/// The catalogue's record of the same address or package.
fn known(how: &How) -> Option<&'static ServerEntry> {
    let has_tools = |entry: &&ServerEntry| !entry.tools.is_empty();
    match how {
        How::Remote { url, .. } => starter().iter().filter(has_tools).find(|entry| {
            entry.upstream_url.as_deref().is_some_and(|theirs| {
                theirs.trim_end_matches('/') == url.as_str().trim_end_matches('/')
            })
        }),
        How::Program { .. } => {
            let package = without_version(how.package()?);
            starter().iter().filter(has_tools).find(|entry| {
                let words = entry.stdio_command.iter().flat_map(|it| it.split_whitespace().skip(1));
                let mut words = words.filter(|word| !word.starts_with('-')).map(without_version);
                words.next() == Some(package)
            })
        }
        How::Not(_) => None,
    }
}

fn without_version(package: &str) -> &str {
    let package = package.split_once("==").map_or(package, |(name, _)| name);
    match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package,
    }
}

/// Told apart in the state and in reports.
pub(super) fn key(one: &Scanned) -> String {
    format!("{}#{}", one.file.display(), one.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_taken_off_packages() {
        for (package, name) in [
            ("@a/b@1.2.3", "@a/b"),
            ("@a/b", "@a/b"),
            ("pkg@latest", "pkg"),
            ("pkg==1.0", "pkg"),
            ("pkg", "pkg"),
        ] {
            assert_eq!(without_version(package), name);
        }
    }
}
