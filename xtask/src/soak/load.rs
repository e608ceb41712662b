//! What clients do all day: open sessions and end or forget them, call, hold streams, and vanish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::client::Client;

/// A grant's sessions are bounded by this many; forgotten ones fill it up.
const SESSIONS: usize = 1_000;
/// How many set up sessions at once.
const AT_ONCE: usize = 8;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) sessions: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) streams: AtomicU64,
    pub(super) vanished: AtomicU64,
    pub(super) cut: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn call(tool: &str) -> String {
    let meta = r#""_meta":{"progressToken":1}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":[1,2,3]}},{meta}}}}}"#
    )
}

/// Opens a session; gives the headers that name it.
pub(super) async fn session(client: &Client) -> Result<String> {
    let reply = client.ask("POST", "", INITIALIZE).await?;
    ensure!(reply.status == 200, "initialize: {} {}", reply.status, reply.text());
    let id = reply.header("mcp-session-id").unwrap_or_default();
    let headers = format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
    client.ask("POST", &headers, INITIALIZED).await?;
    Ok(headers)
}

/// Forgets as many sessions as a grant may have, so that each further one takes the place of another.
pub(super) async fn fill(client: &Client) -> Result<()> {
    let opened = Arc::new(AtomicU64::new(0));
    let fillers = (0..AT_ONCE).map(|_| {
        let (client, opened) = (client.clone(), Arc::clone(&opened));
        tokio::spawn(async move {
            while opened.fetch_add(1, Ordering::Relaxed) < SESSIONS as u64 {
                session(&client).await?;
            }
            anyhow::Ok(())
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await??;
    }
    Ok(())
}

/// Goes on until told to stop; an answer that is not as it should be ends the soak.
pub(super) async fn worker(
    client: Client,
    done: Arc<Done>,
    stop: Arc<AtomicBool>,
    pause: Duration,
) -> Result<()> {
    let mut round: u64 = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let headers = session(&client).await?;
        count(&done.sessions);
        let listed = client.ask("POST", &headers, LIST).await?;
        ensure!(listed.text().contains("echo"), "tools/list: {}", listed.text());
        for (tool, said) in [("echo", "said"), ("stream", "streamed"), ("echo", "said")] {
            let reply = client.ask("POST", &headers, &call(tool)).await?;
            ensure!(reply.text().contains(said), "{tool}: {} {}", reply.status, reply.text());
            count(&done.calls);
        }
        troubles(&client, &headers, &done, round).await?;
        // Every other client forgets its session.
        if round.is_multiple_of(2) {
            let ended = client.ask("DELETE", &headers, "").await?;
            ensure!(ended.status == 200, "DELETE: {}", ended.status);
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

async fn troubles(client: &Client, headers: &str, done: &Done, round: u64) -> Result<()> {
    match round % 3 {
        0 => {
            let held = client.hold(headers).await?;
            ensure!(held.status == 200, "GET: {} {}", held.status, held.text());
            tokio::time::sleep(Duration::from_millis(300)).await;
            count(&done.streams);
        }
        1 => {
            // Somebody who does not wait for the answer.
            let stream = client.send("POST", headers, &call("slow")).await?;
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(stream);
            count(&done.vanished);
        }
        _ => {
            let reply = client.ask("POST", headers, &call("cut")).await?;
            ensure!(
                reply.text().contains("upstream_cut"),
                "cut: {} {}",
                reply.status,
                reply.text()
            );
            count(&done.cut);
        }
    }
    Ok(())
}
