//! What a Redis server is sent, as its `MONITOR` tells it.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;

use crate::redis_server::RedisServer;

/// Watches a server; every command of every client is told, in order.
#[derive(Debug)]
pub struct RedisMonitor {
    lines: Lines<BufReader<TcpStream>>,
    speaker: BufReader<TcpStream>,
}

impl RedisMonitor {
    /// Watches from now on.
    pub async fn on(server: &RedisServer) -> Self {
        let connect = async || TcpStream::connect(server.address()).await.expect("it listens");
        let mut watcher = connect().await;
        watcher.write_all(b"MONITOR\r\n").await.expect("sent");
        let mut lines = BufReader::new(watcher).lines();
        assert_eq!(lines.next_line().await.expect("it answers").as_deref(), Some("+OK"));
        Self { lines, speaker: BufReader::new(connect().await) }
    }

    /// The commands that clients sent since the last look, such as `"get" "key"`. What scripts call
    /// is left out: it costs nobody a round trip.
    pub async fn seen(&mut self) -> Vec<String> {
        // Redis does one command after the other: what stands before the mark has been done.
        let mark = format!("mark-{}", uuid::Uuid::now_v7());
        let echo = format!("ECHO {mark}\r\n");
        self.speaker.write_all(echo.as_bytes()).await.expect("sent");
        for _ in 0..2 {
            self.speaker.read_line(&mut String::new()).await.expect("answered");
        }
        let mut seen = Vec::new();
        loop {
            let line = self.lines.next_line().await.expect("it goes on").expect("it goes on");
            if line.contains(&mark) {
                return seen;
            }
            if let Some((whose, command)) = line.split_once("] ")
                && !whose.ends_with(" lua")
            {
                seen.push(command.to_owned());
            }
        }
    }
}
