//! A mail server that keeps what it is sent, and refuses what it is told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A mail as it came over the line.
#[derive(Debug, Clone)]
pub struct Received {
    pub from: String,
    pub to: String,
    /// Head and body, undecoded.
    pub raw: String,
}

impl Received {
    /// The plain text, decoded.
    pub fn text(&self) -> String {
        let part = self.raw.split("Content-Type: text/plain").nth(1).unwrap_or(&self.raw);
        let (head, body) = part.split_once("\r\n\r\n").unwrap_or(("", part));
        let body = body.split("\r\n--").next().unwrap_or(body);
        if head.to_ascii_lowercase().contains("quoted-printable") {
            return unquoted(body);
        }
        body.to_owned()
    }

    /// The first address in the text that holds `part`.
    pub fn link(&self, part: &str) -> Option<String> {
        let text = self.text();
        text.split_whitespace().find(|word| word.contains(part)).map(str::to_owned)
    }
}

fn unquoted(text: &str) -> String {
    let text = text.replace("=\r\n", "");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let (b'=', Some(byte)) = (first, code) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Debug, Default)]
struct Kept {
    mails: Vec<Received>,
    /// Mails with this in them are taken and not kept.
    left_out: Option<String>,
    /// What the server answers to `RCPT`, instead of accepting.
    refusal: Option<String>,
}

/// The server; it ends with the value.
#[derive(Debug)]
pub struct SmtpServer {
    address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
    count: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl SmtpServer {
    /// Listens on a free port of loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (kept, count) = (Arc::new(Mutex::new(Kept::default())), watch::channel(0).0);
        let (for_task, told) = (Arc::clone(&kept), count.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, true, Arc::clone(&for_task), told.clone()));
            }
        });
        Self { address, kept, count, task }
    }

    /// `smtp://127.0.0.1:…`
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Talks on a line that somebody else accepted, such as one in TLS; with `greeting` from its
    /// beginning, without it as after STARTTLS.
    pub async fn talk(&self, stream: impl AsyncRead + AsyncWrite + Unpin, greeting: bool) {
        talk(stream, greeting, Arc::clone(&self.kept), self.count.clone()).await;
    }

    /// From now on each recipient is answered with this, such as `550 no such user`; `None` accepts.
    pub fn refuse(&self, answer: Option<&str>) {
        self.kept.lock().refusal = answer.map(str::to_owned);
    }

    /// Takes mails with this text in them, and keeps none.
    pub fn leave_out(&self, text: &str) {
        self.kept.lock().left_out = Some(text.to_owned());
    }

    /// What came so far.
    pub fn mails(&self) -> Vec<Received> {
        self.kept.lock().mails.clone()
    }

    /// Waits until so many mails came.
    pub async fn received(&self, count: usize) -> Vec<Received> {
        let mut counted = self.count.subscribe();
        let enough = counted.wait_for(|have| *have >= count);
        tokio::time::timeout(Duration::from_secs(20), enough)
            .await
            .expect("mail comes")
            .expect("open");
        self.mails()
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One conversation, which ends silently whatever goes wrong.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    greeting: bool,
    kept: Arc<Mutex<Kept>>,
    count: watch::Sender<usize>,
) {
    let mut stream = BufReader::new(stream);
    let mut mail = Received { from: String::new(), to: String::new(), raw: String::new() };
    let mut answer = if greeting { "220 test\r\n".to_owned() } else { String::new() };
    loop {
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        let mut line = String::new();
        if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
            return;
        }
        let upper = line.to_ascii_uppercase();
        let refusal = kept.lock().refusal.clone();
        answer = match &upper {
            verb if verb.starts_with("EHLO") => "250-test\r\n250 8BITMIME\r\n".to_owned(),
            verb if verb.starts_with("MAIL") => {
                mail.from = address(&line);
                "250 ok\r\n".to_owned()
            }
            verb if verb.starts_with("RCPT") => {
                mail.to = address(&line);
                refusal.map_or_else(|| "250 ok\r\n".to_owned(), |words| format!("{words}\r\n"))
            }
            verb if verb.starts_with("DATA") => {
                if stream.write_all(b"354 go on\r\n").await.is_err() {
                    return;
                }
                mail.raw = data(&mut stream).await;
                let mut kept = kept.lock();
                if !kept.left_out.as_ref().is_some_and(|text| mail.raw.contains(text)) {
                    kept.mails.push(mail.clone());
                    count.send_replace(kept.mails.len());
                }
                "250 kept\r\n".to_owned()
            }
            verb if verb.starts_with("QUIT") => {
                // Whether it is still listened to does not matter.
                let _ = stream.write_all(b"221 bye\r\n").await;
                return;
            }
            _ => "250 ok\r\n".to_owned(),
        };
    }
}

fn address(line: &str) -> String {
    line.split('<').nth(1).and_then(|rest| rest.split('>').next()).unwrap_or_default().to_owned()
}

async fn data(stream: &mut (impl AsyncBufRead + Unpin)) -> String {
    let mut raw = String::new();
    loop {
        let mut line = String::new();
        if !matches!(stream.read_line(&mut line).await, Ok(1..)) || line == ".\r\n" {
            return raw;
        }
        raw.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
