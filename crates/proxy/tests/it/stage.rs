//! An upstream below HTTP: logs what it is sent, byte for byte, and writes what a test tells it to.

use std::fmt::Write as _;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method.
    pub(crate) fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// The called tool.
    pub(crate) fn tool(&self) -> String {
        self.json()["params"]["name"].as_str().unwrap_or_default().to_owned()
    }

    /// Raw text of the id.
    pub(crate) fn id(&self) -> String {
        sluice_mcp::member_text(self.text(), "id").unwrap_or("null").to_owned()
    }
}

/// The way back to the gateway.
pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.ok();
        self.0.flush().await.ok();
    }

    /// A whole answer.
    pub(crate) async fn answer(&mut self, status: &str, headers: &[(&str, &str)], body: &str) {
        let mut head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").expect("a string takes it");
        }
        self.raw(format!("{head}\r\n{body}")).await;
    }

    pub(crate) async fn json(&mut self, body: &str) {
        self.answer("200 OK", &[("content-type", "application/json")], body).await;
    }

    /// The head of an event stream that ends when the connection does.
    pub(crate) async fn events(&mut self) {
        self.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            .await;
    }

    /// A result with one text.
    pub(crate) async fn text(&mut self, id: &str, text: &str) {
        self.json(&text_result(id, text)).await;
    }

    /// Waits until the gateway closes the connection.
    pub(crate) async fn gone(&mut self) {
        let mut byte = [0];
        while matches!(self.0.read(&mut byte).await, Ok(1)) {}
    }

    /// Breaks the connection off.
    pub(crate) fn cut(self) {
        let _ = self.0.set_zero_linger();
    }
}

pub(crate) fn text_result(id: &str, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
    )
}

type Play = Pin<Box<dyn Future<Output = ()> + Send>>;
type Script = Arc<dyn Fn(Received, Wire) -> Play + Send + Sync>;

pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Received>>>,
    arrivals: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stage {
    /// Plays `script` for every request, each on a connection of its own.
    pub(crate) async fn start<F, P>(script: F) -> Self
    where
        F: Fn(Received, Wire) -> P + Send + Sync + 'static,
        P: Future<Output = ()> + Send + 'static,
    {
        let script: Script = Arc::new(move |received, wire| Box::pin(script(received, wire)));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let log = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = watch::channel(0);
        let kept = Arc::clone(&log);
        let task = tokio::spawn(async move {
            let arrived = Arc::new(arrived);
            while let Ok((stream, _)) = listener.accept().await {
                let (script, kept, arrived) =
                    (Arc::clone(&script), Arc::clone(&kept), Arc::clone(&arrived));
                tokio::spawn(async move {
                    let mut stream = stream;
                    if let Some(received) = read(&mut stream).await {
                        kept.lock().push(received.clone());
                        arrived.send_modify(|count| *count += 1);
                        script(received, Wire(stream)).await;
                    }
                });
            }
        });
        Self { address, log, arrivals, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn log(&self) -> Vec<Received> {
        self.log.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.log.lock().len()
    }

    /// The tool calls that arrived.
    pub(crate) fn calls(&self) -> Vec<Received> {
        self.log().into_iter().filter(|received| received.rpc() == "tools/call").collect()
    }

    /// Waits until so many requests have arrived.
    pub(crate) async fn arrived(&self, count: usize) {
        let mut arrivals = self.arrivals.clone();
        let enough = arrivals.wait_for(|arrived| *arrived >= count);
        tokio::time::timeout(std::time::Duration::from_secs(10), enough)
            .await
            .expect("the request arrives")
            .expect("the stage is open");
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        more(stream, &mut body).await?;
    }
    Some(Received { method, path, headers, body })
}

async fn more(stream: &mut TcpStream, into: &mut Vec<u8>) -> Option<()> {
    let mut chunk = vec![0; 16 * 1024];
    match stream.read(&mut chunk).await {
        Ok(count) if count > 0 => into.extend_from_slice(&chunk[..count]),
        _ => return None,
    }
    Some(())
}
