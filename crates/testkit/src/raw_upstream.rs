//! An upstream below HTTP: it keeps every byte it was sent and answers with the bytes it was told.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A TCP server that logs requests byte for byte.
#[derive(Debug)]
pub struct RawUpstream {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl RawUpstream {
    /// Answers every request with `answer` (a whole HTTP response) and closes the connection.
    pub async fn start(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer.into()));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(one(stream, Arc::clone(&log), Arc::clone(&answer)));
            }
        });
        Self { address, requests, task }
    }

    /// A `200` answer with a JSON body.
    pub fn json(body: &str) -> Vec<u8> {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The MCP endpoint's URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Head and body of each request so far, as they came.
    pub fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.lock().clone()
    }

    /// The bodies of the requests so far.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests().iter().map(|request| split(request).1.to_vec()).collect()
    }
}

impl Drop for RawUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn one(mut stream: TcpStream, log: Arc<Mutex<Vec<Vec<u8>>>>, answer: Arc<Vec<u8>>) {
    let mut request = Vec::new();
    let mut chunk = [0; 16 * 1024];
    while !complete(&request) {
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
            _ => break,
        }
    }
    if !request.is_empty() {
        log.lock().push(request);
        stream.write_all(&answer).await.ok();
        stream.shutdown().await.ok();
    }
}

fn split(request: &[u8]) -> (&[u8], &[u8]) {
    match request.windows(4).position(|four| four == b"\r\n\r\n") {
        Some(at) => (&request[..at], &request[at + 4..]),
        None => (request, &[]),
    }
}

fn complete(request: &[u8]) -> bool {
    let (head, body) = split(request);
    if head.len() == request.len() {
        return false;
    }
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match field("content-length:") {
        Some(length) => body.len() >= length.parse().unwrap_or(0),
        None if field("transfer-encoding:").is_some() => body.ends_with(b"0\r\n\r\n"),
        None => true,
    }
}
