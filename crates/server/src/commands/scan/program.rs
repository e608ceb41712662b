//! Asks a program that speaks MCP over its standard input and output for its tools. Everything is bounded,
//! and the program ends with the reading.

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sluice_domain::ToolDefinition;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::configs::How;
use crate::commands::risk;

const VERSION: &str = "2025-11-25";
const MOST_LINE: u64 = 16 * 1024 * 1024;
/// Lines that are no answer to us.
const MOST_OTHER_LINES: usize = 10_000;
const MOST_PAGES: usize = 200;
const MOST_TOOLS: usize = 2_000;
/// How long a program may take to end by itself.
const LAST: Duration = Duration::from_secs(2);

/// Starts the program, reads its tools, ends it. The error is for people and holds nothing of its text.
pub(super) async fn read(how: &How, time: Duration) -> Result<Vec<ToolDefinition>, String> {
    let mut child = start(how)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.ok_or("its input and output cannot be used")?;
    let mut talk = Talk { input, output: BufReader::new(output), next: 0 };
    let read = tokio::time::timeout(time, talk.tools()).await;
    // A program that is well behaved ends when its input does.
    drop(talk);
    if tokio::time::timeout(LAST, child.wait()).await.is_err() {
        child.kill().await.ok();
    }
    read.unwrap_or_else(|_| Err(format!("it did not answer within {} s", time.as_secs())))
}

fn start(how: &How) -> Result<Child, String> {
    let How::Program { command, arguments, variables, folder } = how else {
        return Err("it is no program".to_owned());
    };
    let mut process = Command::new(command);
    process
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(folder) = folder {
        process.current_dir(folder);
    }
    process.spawn().map_err(|error| format!("it cannot be started: {}", error.kind()))
}

struct Talk {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Talk {
    async fn tools(&mut self) -> Result<Vec<ToolDefinition>, String> {
        let hello = json!({"protocolVersion": VERSION, "capabilities": {},
            "clientInfo": {"name": "sluice", "version": env!("CARGO_PKG_VERSION")}});
        let said = self.request("initialize", hello).await?;
        if !said.is_object() {
            return Err("it does not speak MCP".to_owned());
        }
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        let (mut tools, mut cursors) = (Vec::new(), HashSet::new());
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let page = self.request("tools/list", params).await?;
            let entries = page.get("tools").and_then(Value::as_array);
            let entries = entries.ok_or("its list of tools is none")?;
            for (index, entry) in entries.iter().enumerate() {
                tools.push(risk::tool(index, entry).map_err(|error| error.to_string())?);
            }
            if tools.len() > MOST_TOOLS {
                return Err(format!("it lists more than {MOST_TOOLS} tools"));
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                None => return Ok(tools),
                Some(cursor) if !cursors.insert(cursor.to_owned()) => break,
                Some(cursor) => params = json!({"cursor": cursor}),
            }
        }
        Err("its list of tools has no end".to_owned())
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let gone = |_| "it ended before it answered".to_owned();
        self.input.write_all(line.as_bytes()).await.map_err(gone)?;
        self.input.flush().await.map_err(gone)
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await?;
        for _ in 0..MOST_OTHER_LINES {
            let Some(message) = self.line().await? else { continue };
            if message.get("method").is_some() {
                // What it asks of a client is not there; without an answer it might wait.
                if let Some(theirs) = message.get("id") {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    let answer = json!({"jsonrpc": "2.0", "id": theirs, "error": error});
                    self.send(&answer).await?;
                }
            } else if message.get("id").and_then(Value::as_u64) == Some(id) {
                let code = message.pointer("/error/code").and_then(Value::as_i64);
                return match (message.get("result"), code) {
                    (Some(result), _) => Ok(result.clone()),
                    (None, Some(code)) => Err(format!("it refused `{method}` (error {code})")),
                    (None, None) => Err("it does not speak MCP".to_owned()),
                };
            }
        }
        Err("it says much, but does not answer".to_owned())
    }

    /// One line; `None` where it is no JSON, as when a program prints a greeting.
    async fn line(&mut self) -> Result<Option<Value>, String> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.output).take(MOST_LINE);
        let read = bounded.read_until(b'\n', &mut line).await;
        match read {
            Err(_) | Ok(0) => Err("it ended before it answered".to_owned()),
            Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 >= MOST_LINE => {
                Err(format!("a line of it is longer than {} MiB", MOST_LINE / 1024 / 1024))
            }
            Ok(_) => Ok(serde_json::from_slice(&line).ok()),
        }
    }
}
