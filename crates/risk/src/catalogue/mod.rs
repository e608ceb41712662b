//! The catalogue's starter set: servers that anyone can look up, described in our own words.

mod search;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sluice_domain::ToolDefinition;

use crate::words::words;

pub use search::{Hit, Index, search};

words!(
    /// How a server is spoken to.
    EntryTransport {
        /// A program on the user's machine; it needs a bridge in front of it.
        Stdio = "stdio",
        Http = "http",
    }
);

words!(
    /// What an upstream asks of the caller.
    AuthNeeded {
        None = "none",
        /// A key or token in a header.
        Token = "token",
        /// An OAuth sign-in; some of these also take a token in a header.
        OAuth = "oauth",
    }
);

words!(
    /// What is known about who stands behind a record.
    Identity {
        DomainProven = "domain-proven",
        GithubProven = "GitHub-proven",
        Unverified = "unverified",
    }
);

/// One server of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// `owner/name`, as its authors write it.
    pub owner_name: String,
    /// Its place in URLs: lower case, other characters as `-`.
    pub slug: String,
    pub title: String,
    /// One or two sentences in our words.
    pub summary: String,
    pub homepage: String,
    /// Where its code is, when public.
    #[serde(default)]
    pub repository: Option<String>,
    pub transport: EntryTransport,
    /// The public address, for `http`.
    #[serde(default)]
    pub upstream_url: Option<String>,
    /// The command that starts it, for `stdio`.
    #[serde(default)]
    pub stdio_command: Option<String>,
    /// Environment variables that the command needs, without values.
    #[serde(default)]
    pub stdio_env: Vec<String>,
    pub auth_needed: AuthNeeded,
    /// What to know before connecting, in one sentence.
    #[serde(default)]
    pub note: Option<String>,
    pub identity: Identity,
    /// Which public page or record the entry was written from, and when it was read.
    pub source: String,
    pub as_of: String,
    /// Whether `tools` is the whole list at that time; otherwise only those we are sure of.
    #[serde(default)]
    pub tools_complete: bool,
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
}

static STARTER: LazyLock<Vec<ServerEntry>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../catalogue/servers.json")).unwrap_or_default()
});

/// The servers that every installation knows from the start.
pub fn starter() -> &'static [ServerEntry] {
    &STARTER
}

/// The server with this slug.
pub fn find(slug: &str) -> Option<&'static ServerEntry> {
    starter().iter().find(|entry| entry.slug == slug)
}

/// A command that puts a public stdio-to-HTTP bridge in front of a stdio server, and the address it
/// then listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeCommand {
    pub command: String,
    pub upstream_url: String,
}

/// The bridge for a server that only speaks stdio; `None` for one that has an address.
pub fn bridge_command(entry: &ServerEntry) -> Option<BridgeCommand> {
    let inner = entry.stdio_command.as_deref()?;
    Some(BridgeCommand {
        command: format!(
            "npx -y supergateway --stdio \"{inner}\" --outputTransport streamableHttp --port 8808"
        ),
        upstream_url: "http://127.0.0.1:8808/mcp".to_owned(),
    })
}
