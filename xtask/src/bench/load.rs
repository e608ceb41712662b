//! The two ends of a measured call: an upstream that answers at once, and clients that ask again as soon
//! as they are answered. Both are as thin as they can be: they share a processor.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::proxies::Target;
use super::report;

/// The answer's text; with its envelope an answer has about 300 bytes.
const SAID: &str = "Sunny, 21 degrees, wind 3 m/s from the south-west, humidity 54 percent, pressure 1016 hPa. \
    In the evening clear, 14 degrees. Tomorrow light rain from noon on, 17 degrees, wind 5 m/s.";

/// What one target did in one turn.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) calls: usize,
    pub(super) seconds: f64,
    /// Microseconds of processor time of the proxy, a call.
    pub(super) processor: f64,
    /// Microseconds, sorted.
    pub(super) waits: Vec<u32>,
}

/// Serves until the process ends; gives its address.
pub(super) async fn upstream() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::default();
    while let Some(message) = reader.message(&mut stream).await? {
        let id = number_after(message, b"\"id\":").context("a message without an id")?;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{SAID}"}}],"isError":false}}}}"#
        );
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    }
    Ok(())
}

/// One turn: `connections` clients for `time`. Every answer is looked at.
pub(super) async fn turn(
    target: &std::sync::Arc<Target>,
    connections: u32,
    time: Duration,
) -> Result<Turn> {
    let mut clients = JoinSet::new();
    let before = target.process.map(report::processor).transpose()?;
    let began = Instant::now();
    for connection in 0..connections {
        let target = std::sync::Arc::clone(target);
        clients.spawn(async move { client(&target, connection, began + time).await });
    }
    let mut waits = Vec::new();
    while let Some(done) = clients.join_next().await {
        waits.extend(done?.with_context(|| format!("through {}", target.name))?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = target.process.map(report::processor).transpose()?;
    ensure!(!waits.is_empty(), "no answers from {}", target.name);
    waits.sort_unstable();
    let calls = waits.len();
    let spent = after.zip(before).map_or(0.0, |(after, before)| after - before);
    Ok(Turn { calls, seconds, processor: spent * 1e6 / report::number(calls), waits })
}

async fn client(target: &Target, connection: u32, until: Instant) -> Result<Vec<u32>> {
    let mut open = Open::connect(target).await?;
    let mut waits = Vec::new();
    let mut id = u64::from(connection) * 100_000_000;
    while Instant::now() < until {
        id += 1;
        let asked = Instant::now();
        open.call(target, id).await?;
        waits.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(waits)
}

/// Connections that made one call each and are silent then.
pub(super) async fn idle(target: &Target, count: u32) -> Result<Vec<impl Sized + use<>>> {
    let mut held = Vec::new();
    for id in 0..count {
        let mut open = Open::connect(target).await?;
        open.call(target, id.into()).await?;
        held.push(open);
    }
    Ok(held)
}

/// A client's connection.
#[derive(Debug)]
struct Open {
    stream: TcpStream,
    reader: Reader,
}

impl Open {
    async fn connect(target: &Target) -> Result<Self> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, reader: Reader::default() })
    }

    async fn call(&mut self, target: &Target, id: u64) -> Result<()> {
        let city = "Berlin, ".repeat(18);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"city":"{city}"}}}}}}"#
        );
        let Target { path, address, token, .. } = target;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        let answer = self.reader.message(&mut self.stream).await?.context("no answer")?;
        let said =
            number_after(answer, b"\"id\":") == Some(id) && holds(answer, b"\"isError\":false");
        ensure!(said, "another answer: {}", String::from_utf8_lossy(answer));
        Ok(())
    }
}

/// Reads messages that say their length.
#[derive(Debug, Default)]
struct Reader {
    bytes: Vec<u8>,
    taken: usize,
}

impl Reader {
    /// The next message's body; none at the end.
    async fn message(&mut self, stream: &mut TcpStream) -> Result<Option<&[u8]>> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        loop {
            if let Some(head) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let lower = self.bytes[..head].to_ascii_lowercase();
                let length = number_after(&lower, b"content-length:").context("no length")?;
                let end = head + 4 + usize::try_from(length)?;
                if self.bytes.len() >= end {
                    self.taken = end;
                    return Ok(Some(&self.bytes[head + 4..end]));
                }
            }
            if stream.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn number_after(bytes: &[u8], name: &[u8]) -> Option<u64> {
    let at = bytes.windows(name.len()).position(|window| window == name)? + name.len();
    let digits: Vec<u8> = bytes[at..]
        .iter()
        .copied()
        .skip_while(|byte| *byte == b' ')
        .take_while(u8::is_ascii_digit)
        .collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_they_are_named() {
        assert_eq!(number_after(b"x\r\ncontent-length: 17\r\n", b"content-length:"), Some(17));
        assert_eq!(number_after(br#"{"id":9,"a":1}"#, b"\"id\":"), Some(9));
        assert_eq!(number_after(b"content-length: x", b"content-length:"), None);
        assert!(holds(b"abc", b"bc") && !holds(b"abc", b"ca"));
    }
}
