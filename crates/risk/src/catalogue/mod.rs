//! The catalogue's starter set: servers that anyone can look up, described in our own words.

mod bridge;
mod index;
pub mod registry;
mod search;
pub mod shared;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sluice_domain::ToolDefinition;

use crate::words::words;

pub use bridge::{BridgeCommand, bridge_command};
pub use index::{IndexBuilder, MOST_RESULTS, Scored, Texts, WordIndex, Work};
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
        /// A record that does not say.
        Unknown = "not known",
    }
);

words!(
    /// What a registry says of a record's life.
    Lifecycle { Active = "active", Deprecated = "deprecated", Deleted = "deleted" }
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
    /// What installs the command, where a package runner does not fetch it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdio_install: Option<String>,
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
    /// The version that the record describes, where it comes from a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `None`: it comes from no registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// What its publisher says of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_note: Option<String>,
    /// Shown among the first choices when a server is connected.
    #[serde(default)]
    pub popular: bool,
    /// Whether `tools` is the whole list at that time; otherwise only those we are sure of.
    #[serde(default)]
    pub tools_complete: bool,
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
}

const SERVERS: &str = include_str!("../../catalogue/servers.json");

static STARTER: LazyLock<Vec<ServerEntry>> = LazyLock::new(|| {
    // A test reads the same file and fails where this would fall back.
    serde_json::from_str(SERVERS).unwrap_or_default()
});

/// The servers that every installation knows from the start.
pub fn starter() -> &'static [ServerEntry] {
    &STARTER
}

/// Those to offer first when a server is connected.
pub fn popular() -> impl Iterator<Item = &'static ServerEntry> {
    starter().iter().filter(|entry| entry.popular)
}

/// The server with this slug.
pub fn find(slug: &str) -> Option<&'static ServerEntry> {
    starter().iter().find(|entry| entry.slug == slug)
}

#[cfg(test)]
mod tests;
