//! Reads a server's tools as an MCP client would: Streamable HTTP of both eras, and HTTP+SSE of
//! 2024-11-05. Everything it reads is bounded, and every way to fail has words of its own.

mod answer;
mod channel;
mod error;
mod events;
mod tools;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::{ToolDefinition, Transport};

use self::channel::{Channel, Rpc};
pub use self::error::ReadError;
use self::tools::Collected;
#[cfg(test)]
pub(crate) use self::tools::{MAX_PAGES, MAX_TOOLS};
use crate::send::Upstream;
use crate::target::Target;

/// The bound on reading all of a server's tools.
const WHOLE_TIME: Duration = Duration::from_secs(30);
/// The newest version of the era with sessions, and the one without.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsRead {
    /// In the server's order; names are unique.
    pub tools: Vec<ToolDefinition>,
    pub protocol_version: String,
    /// As the server names itself, cut to 128 characters.
    pub server_name: Option<String>,
    /// The transport that worked, never `auto`.
    pub transport: Transport,
    pub read_at: DateTime<Utc>,
}

impl Upstream {
    /// Connects to a server, asks for its tools, and ends the session.
    pub async fn read_tools(
        &self,
        target: &Target,
        now: DateTime<Utc>,
    ) -> Result<ToolsRead, ReadError> {
        let reading = read(self, target, now);
        tokio::time::timeout(WHOLE_TIME, reading).await.unwrap_or(Err(ReadError::Slow))
    }
}

async fn read(
    upstream: &Upstream,
    target: &Target,
    now: DateTime<Utc>,
) -> Result<ToolsRead, ReadError> {
    let (mut channel, hello) = match target.transport {
        Transport::StreamableHttp => over_http(upstream, target).await?,
        Transport::Sse => over_sse(upstream, target).await?,
        Transport::Auto => match over_http(upstream, target).await {
            // What an HTTP+SSE server answers to a POST (2025-11-25, "Backwards Compatibility").
            Err(error) if error.may_be_sse() => match over_sse(upstream, target).await {
                Ok(opened) => opened,
                Err(ReadError::NoEventStream) => return Err(error),
                Err(other) => return Err(if other.says_more_than(&error) { other } else { error }),
            },
            opened => opened?,
        },
    };
    let collected = collect(&mut channel, &hello).await;
    channel.close().await;
    Ok(ToolsRead {
        tools: collected?,
        protocol_version: hello.version,
        server_name: hello.name,
        transport: channel.transport(),
        read_at: now,
    })
}

/// What the server said first.
struct Hello {
    version: String,
    name: Option<String>,
    has_tools: bool,
}

async fn over_http<'a>(
    upstream: &'a Upstream,
    target: &'a Target,
) -> Result<(Channel<'a>, Hello), ReadError> {
    let mut channel = Channel::http(upstream, target);
    match initialize(&mut channel).await {
        Ok(hello) => Ok((channel, hello)),
        // A server of the newer era alone knows no `initialize`, and says so in JSON-RPC.
        Err(ReadError::Rpc { code, message }) => {
            let mut channel = Channel::modern(upstream, target);
            match discover(&mut channel).await {
                Ok(hello) => Ok((channel, hello)),
                Err(_) => Err(ReadError::Rpc { code, message }),
            }
        }
        Err(error) => Err(error),
    }
}

async fn over_sse<'a>(
    upstream: &'a Upstream,
    target: &'a Target,
) -> Result<(Channel<'a>, Hello), ReadError> {
    let mut channel = Channel::sse(upstream, target).await?;
    let hello = initialize(&mut channel).await?;
    Ok((channel, hello))
}

async fn initialize(channel: &mut Channel<'_>) -> Result<Hello, ReadError> {
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": { "name": "sluice", "version": env!("CARGO_PKG_VERSION") },
    });
    let result = channel.request("initialize", params).await?.into_result()?;
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let Some(version) = version else { return Err(ReadError::NotMcp) };
    channel.agree(version);
    let hello = Hello {
        version: version.to_owned(),
        name: server_name(result.get("serverInfo")),
        has_tools: result.pointer("/capabilities/tools").is_some(),
    };
    channel.notify("notifications/initialized").await?;
    Ok(hello)
}

async fn discover(channel: &mut Channel<'_>) -> Result<Hello, ReadError> {
    let result = channel.request("server/discover", json!({})).await?.into_result()?;
    if !result.is_object() {
        return Err(ReadError::NotMcp);
    }
    let info = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
    Ok(Hello {
        version: MODERN.to_owned(),
        name: server_name(info.or_else(|| result.get("serverInfo"))),
        has_tools: result.pointer("/capabilities/tools").is_some(),
    })
}

fn server_name(info: Option<&Value>) -> Option<String> {
    let info = info?;
    let name = info.get("title").or_else(|| info.get("name"))?.as_str()?;
    Some(name.chars().filter(|c| !c.is_control()).take(128).collect())
}

/// All pages of `tools/list`.
async fn collect(
    channel: &mut Channel<'_>,
    hello: &Hello,
) -> Result<Vec<ToolDefinition>, ReadError> {
    let mut collected = Collected::default();
    loop {
        let params = match collected.next_cursor() {
            Some(cursor) => json!({ "cursor": cursor }),
            None => json!({}),
        };
        let answer = channel.request("tools/list", params).await?;
        if let Rpc::Error { code: -32_601, .. } = &answer
            && !hello.has_tools
        {
            return Ok(Vec::new());
        }
        if !collected.take(answer.into_result()?)? {
            return Ok(collected.into_tools());
        }
    }
}
