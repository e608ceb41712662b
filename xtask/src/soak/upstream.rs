//! An MCP server for the soak: sessions, quick and slow answers, streams, and calls that it breaks off.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The longest body that is read.
const LONGEST: usize = 1 << 20;

/// Serves until the process ends; gives its address.
pub(super) async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(connection(stream))),
                // Out of descriptors for a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    Ok(address)
}

/// Requests on one connection, one after the other; an error is a client that left.
async fn connection(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    // Small, so that thousands of idle streams are cheap here.
    let mut stream = BufReader::with_capacity(1_024, stream);
    while let Some((method, body)) = request(&mut stream).await? {
        match method.as_str() {
            "GET" => return listen(&mut stream).await,
            "DELETE" => {
                stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
            }
            _ => {
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                if !answer(stream.get_mut(), &body).await? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The next request's method and body.
async fn request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let (mut method, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() && !method.is_empty() {
            break;
        }
        if method.is_empty() {
            method = line.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length.min(LONGEST)];
    stream.read_exact(&mut body).await?;
    Ok(Some((method, body)))
}

/// A stream that says nothing; ends when the client does.
async fn listen(stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    events(stream.get_mut()).await?;
    stream.get_mut().write_all(b": open\n\n").await?;
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    Ok(())
}

async fn events(stream: &mut TcpStream) -> std::io::Result<()> {
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )
        .await
}

async fn json(stream: &mut TcpStream, more: &str, body: &Value) -> std::io::Result<bool> {
    let body = body.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(true)
}

fn text(id: &Value, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } })
}

/// Answers one message; false where the connection ends with it.
async fn answer(stream: &mut TcpStream, message: &Value) -> std::io::Result<bool> {
    let id = &message["id"];
    if id.is_null() {
        stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await?;
        return Ok(true);
    }
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let session = format!("mcp-session-id: {:016x}\r\n", rand());
            let version = &message["params"]["protocolVersion"];
            let server = json!({ "name": "soak", "version": "1" });
            let capabilities = json!({ "tools": { "listChanged": true } });
            let said = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": server });
            json(stream, &session, &result(said)).await
        }
        "tools/list" => {
            let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
            let tools = ["echo", "slow", "stream", "cut"].map(tool);
            json(stream, "", &result(json!({ "tools": tools }))).await
        }
        "tools/call" => {
            call(stream, id, message["params"]["name"].as_str().unwrap_or_default()).await
        }
        _ => json(stream, "", &result(json!({}))).await,
    }
}

async fn call(stream: &mut TcpStream, id: &Value, tool: &str) -> std::io::Result<bool> {
    match tool {
        "slow" => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            json(stream, "", &text(id, "late")).await
        }
        "stream" => {
            events(stream).await?;
            for progress in 1..=3 {
                let params = json!({ "progressToken": 1, "progress": progress });
                let note = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                stream.write_all(format!("data: {note}\n\n").as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            stream.write_all(format!("data: {}\n\n", text(id, "streamed")).as_bytes()).await?;
            Ok(false)
        }
        "cut" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{").await?;
            Ok(false)
        }
        _ => json(stream, "", &text(id, "said")).await,
    }
}

/// Numbers that differ, for names that need not be secret.
fn rand() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
