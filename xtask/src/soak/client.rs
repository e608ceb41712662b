//! A plain HTTP client: a connection a request, and streams that are held.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No request of the soak takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// An answer, or the beginning of a stream that is open for as long as this is kept.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
    _stream: TcpStream,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(own, value)| own.eq_ignore_ascii_case(name).then(|| value.trim()))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, of a plain answer.
    pub(super) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{}: {}", self.status, self.text()))
    }
}

/// Where requests go, and with which token.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) token: String,
    /// The grant's id, if it is one.
    pub(crate) grant: String,
}

impl Client {
    /// Sends the head and the body of a request.
    pub(super) async fn send(&self, method: &str, headers: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let Self { address, path, token, .. } = self;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        Ok(stream)
    }

    /// A whole answer.
    pub(super) async fn ask(&self, method: &str, headers: &str, body: &str) -> Result<Reply> {
        let asking = async {
            let mut stream = self.send(method, headers, body).await?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            reply(&bytes, stream)
        };
        timeout(PATIENCE, asking).await.context("no answer within a minute")?
    }

    /// A stream that has begun: its head and its first bytes have come.
    pub(super) async fn hold(&self, headers: &str) -> Result<Reply> {
        let opening = async {
            let mut stream = self.send("GET", headers, "").await?;
            let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
            loop {
                let count = stream.read(&mut piece).await?;
                bytes.extend_from_slice(&piece[..count]);
                if count == 0 || contains(&bytes, b": open") {
                    return reply(&bytes, stream);
                }
            }
        };
        timeout(PATIENCE, opening).await.context("no stream within a minute")?
    }

    /// A request of the REST API that must succeed.
    pub(super) async fn made(&self, path: &str, body: &Value) -> Result<Value> {
        let path = format!("{}{path}", self.path);
        let client = Self { path, ..self.clone() };
        let reply = client.ask("POST", "", &body.to_string()).await?;
        if reply.status >= 300 {
            bail!("POST {}: {} {}", client.path, reply.status, reply.text());
        }
        reply.json()
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn reply(bytes: &[u8], stream: TcpStream) -> Result<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").context("no answer")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status")?;
    let body = bytes[end + 4..].to_vec();
    let mut reply = Reply { status, head, body, _stream: stream };
    if reply.header("transfer-encoding").is_some() {
        reply.body = unchunked(&reply.body);
    }
    Ok(reply)
}

/// The pieces of a chunked body; one that has not ended yields what came.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let from = line + 2;
        let until = (from + size).min(rest.len());
        out.extend_from_slice(&rest[from.min(until)..until]);
        rest = rest.get(until + 2..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_and_an_open_body_yields_what_came() {
        assert_eq!(unchunked(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), b"abcde");
        assert_eq!(unchunked(b"3\r\nabc\r\n8\r\nde"), b"abcde");
        assert_eq!(unchunked(b""), b"");
    }
}
