//! HTTP+SSE sessions whose stream another replica reads. This one asks it where to post, posts by itself,
//! and is sent what comes on the stream, through the store that replicas share. Only the reading stays
//! where the stream is, so what was sent and what failed is known here as exactly as for any other call.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sluice_domain::ServerId;
use sluice_limits::{MAX_RELAYED, Pushed, Relay};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bridge::{Item, QUEUE};
use crate::budget::{Budget, FREE, Share};
use crate::failure::Failure;
use crate::serve;
use crate::state::Inner;

/// How long the other replica may take to say that it reads the stream. Nothing was sent by then.
const REPLY_WITHIN: Duration = Duration::from_secs(2);
/// How often a silent wait makes sure that the other side is there.
pub(crate) const STILL_EVERY: Duration = Duration::from_secs(5);
/// Without the store for this long, others cannot know that this replica is there, nor reach it.
const LOST_AFTER: Duration = Duration::from_secs(4);
/// How long a full mailbox of another replica is waited for, and in which steps.
const FULL_FOR: Duration = Duration::from_secs(5);
const FULL_STEP: Duration = Duration::from_millis(20);
/// Payload of one message; the rest is for its head.
const PIECE: usize = MAX_RELAYED - 4_096;

/// What replicas say to each other. The answer to a request may follow in pieces after the head.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub(crate) enum Word {
    /// Asks the replica that reads a stream.
    Ask {
        ask: String,
        from: String,
        bridge: String,
        server: ServerId,
        what: What,
    },
    Reply {
        ask: String,
        reply: Reply,
    },
    /// A part of a message of the stream; `more` follow; `last`: it answers the request.
    Piece {
        ask: String,
        seq: u64,
        more: bool,
        last: bool,
    },
    /// Nothing more comes.
    Over {
        ask: String,
    },
    /// Nobody waits any more.
    Leave {
        ask: String,
        from: String,
    },
    /// Whether the other still knows of this.
    Still {
        ask: String,
        from: String,
    },
}

/// What of a stream is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// What answers the request with this raw id and progress token.
    Answer { id: String, token: Option<String> },
    /// What answers nothing.
    Listen,
    /// Its end.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The stream is read; post there.
    Here { endpoint: String },
    /// There is no such stream.
    Gone,
    /// Somebody waits for the same already.
    Taken,
}

struct Waiting {
    reply: Option<oneshot::Sender<Reply>>,
    items: mpsc::Sender<Item>,
    part: Vec<u8>,
    /// What the part takes; others wait for the same mailbox, so it cannot be held up for one.
    share: Share,
    seq: u64,
}

/// This replica among the others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remote(Arc<State>);

struct State {
    relay: Relay,
    budget: Budget,
    waiting: Mutex<HashMap<String, Waiting>>,
    /// What is sent on to others, by who asked and what they call it.
    serving: Mutex<HashMap<(String, String), CancellationToken>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("relay", &self.0.relay).finish_non_exhaustive()
    }
}

/// What another replica sends on; it is told when this is dropped.
#[derive(Debug)]
pub(crate) struct Sent {
    remote: Remote,
    home: String,
    ask: String,
    items: mpsc::Receiver<Item>,
}

impl Sent {
    /// The next message; none once the stream, or the replica that reads it, is gone.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        loop {
            if let Ok(item) = timeout(STILL_EVERY, self.items.recv()).await {
                return item;
            }
            let (ask, from) = (self.ask.clone(), self.remote.address().to_owned());
            self.remote.say(&self.home, &Word::Still { ask, from }, b"").await.ok()?;
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let there = self.remote.0.waiting.lock().remove(&self.ask).is_some();
        let Some(runtime) = tokio::runtime::Handle::try_current().ok().filter(|_| there) else {
            return;
        };
        let (remote, home) = (self.remote.clone(), std::mem::take(&mut self.home));
        let leave =
            Word::Leave { ask: std::mem::take(&mut self.ask), from: remote.address().to_owned() };
        runtime.spawn(async move { remote.say(&home, &leave, b"").await.ok() });
    }
}

impl Remote {
    pub(crate) fn new(relay: Relay, budget: Budget) -> Self {
        let (waiting, serving) = (Mutex::default(), Mutex::default());
        Self(Arc::new(State { relay, budget, waiting, serving }))
    }

    pub(crate) fn address(&self) -> &str {
        self.0.relay.address()
    }

    /// Asks the replica `home` for what comes on one of its streams.
    pub(crate) async fn ask(
        &self,
        home: &str,
        bridge: &str,
        server: ServerId,
        what: What,
    ) -> Result<(Reply, Sent), Failure> {
        let ask = Uuid::new_v4().simple().to_string();
        let (reply, replied) = oneshot::channel();
        let (out, items) = mpsc::channel(QUEUE);
        let share = self.0.budget.share();
        let waiting = Waiting { reply: Some(reply), items: out, part: Vec::new(), share, seq: 0 };
        self.0.waiting.lock().insert(ask.clone(), waiting);
        let sent = Sent { remote: self.clone(), home: home.to_owned(), ask: ask.clone(), items };
        let from = self.address().to_owned();
        let word = Word::Ask { ask, from, bridge: bridge.to_owned(), server, what };
        let reply = match self.say(home, &word, b"").await {
            Ok(()) => timeout(REPLY_WITHIN, replied).await.ok().and_then(Result::ok),
            Err(Pushed::Nobody) => Some(Reply::Gone),
            Err(_) => None,
        };
        let away = Failure::Unreachable("the replica that holds its session gave no answer");
        Ok((reply.ok_or(away)?, sent))
    }

    /// Says something to another replica; an error tells why it cannot be said.
    pub(crate) async fn say(&self, to: &str, word: &Word, payload: &[u8]) -> Result<(), Pushed> {
        let mut message = serde_json::to_vec(word).unwrap_or_default();
        message.push(b'\n');
        message.extend_from_slice(payload);
        let until = Instant::now() + FULL_FOR;
        loop {
            match self.0.relay.push(to, &message).await {
                Ok(Pushed::Done) => return Ok(()),
                Ok(Pushed::Full) if Instant::now() < until => sleep(FULL_STEP).await,
                Ok(problem) => return Err(problem),
                Err(error) => {
                    tracing::debug!(%error, "Could not reach another replica");
                    return Err(Pushed::Full);
                }
            }
        }
    }

    /// Sends a message of a stream on, in pieces.
    pub(crate) async fn send_on(
        &self,
        to: &str,
        ask: &str,
        seq: &mut u64,
        item: &Item,
    ) -> Result<(), Pushed> {
        let mut pieces = item.data.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let (more, last) = (pieces.peek().is_some(), item.last);
            let word = Word::Piece { ask: ask.to_owned(), seq: *seq, more, last };
            *seq += 1;
            self.say(to, &word, piece).await?;
        }
        Ok(())
    }

    /// Notes that something is sent on; none if it is already.
    pub(crate) fn serve(&self, from: &str, ask: &str) -> Option<Serving> {
        let key = (from.to_owned(), ask.to_owned());
        let stop = CancellationToken::new();
        let mut serving = self.0.serving.lock();
        if serving.contains_key(&key) {
            return None;
        }
        serving.insert(key.clone(), stop.clone());
        Some(Serving { remote: self.clone(), key, stop })
    }

    fn heard(&self, word: Word, payload: &[u8], limit: usize) -> Option<Word> {
        match word {
            Word::Reply { ask, reply } => {
                let waiting = self.0.waiting.lock().get_mut(&ask).and_then(|w| w.reply.take());
                waiting.and_then(|waiting| waiting.send(reply).ok());
            }
            Word::Piece { ask, seq, more, last } => {
                let mut waiting = self.0.waiting.lock();
                let budget = &self.0.budget;
                let fine = waiting.get_mut(&ask).is_none_or(|waiting| {
                    let fits = waiting.add(seq, payload, limit);
                    fits && (more || waiting.hand_over(last, budget))
                });
                if !fine {
                    // Its receiver sees the end.
                    waiting.remove(&ask);
                }
            }
            Word::Over { ask } => {
                self.0.waiting.lock().remove(&ask);
            }
            Word::Leave { ask, from } => {
                if let Some(stop) = self.0.serving.lock().get(&(from, ask)) {
                    stop.cancel();
                }
            }
            ask @ (Word::Ask { .. } | Word::Still { .. }) => return Some(ask),
        }
        None
    }

    /// Whether this replica waits for, or sends on, what `from` calls `ask`.
    fn knows(&self, ask: &str, from: &str) -> bool {
        self.0.waiting.lock().contains_key(ask)
            || self.0.serving.lock().contains_key(&(from.to_owned(), ask.to_owned()))
    }

    /// Reads this replica's mailbox for as long as the data path is there.
    pub(crate) async fn run(self, inner: Weak<Inner>) {
        if !self.0.relay.is_shared() {
            return;
        }
        let mut read_at = Instant::now();
        while inner.strong_count() > 0 {
            match self.0.relay.next().await {
                Ok(message) => {
                    read_at = Instant::now();
                    let Some(inner) = inner.upgrade() else { return };
                    if let Some(message) = message {
                        self.message(&inner, &message);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "This replica's mailbox cannot be read");
                    if read_at.elapsed() > LOST_AFTER {
                        self.0.waiting.lock().clear();
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn message(&self, inner: &Arc<Inner>, message: &[u8]) {
        let Some(end) = memchr::memchr(b'\n', message) else { return };
        let Ok(word) = serde_json::from_slice(&message[..end]) else { return };
        let limit = inner.options.max_message_bytes;
        match self.heard(word, &message[end + 1..], limit) {
            Some(Word::Ask { ask, from, bridge, server, what }) => {
                tokio::spawn(serve::serve(Arc::clone(inner), from, ask, bridge, server, what));
            }
            Some(Word::Still { ask, from }) if !self.knows(&ask, &from) => {
                let (remote, own) = (self.clone(), self.address().to_owned());
                tokio::spawn(async move {
                    let over = Word::Over { ask: ask.clone() };
                    remote.say(&from, &over, b"").await.ok()?;
                    remote.say(&from, &Word::Leave { ask, from: own }, b"").await.ok()
                });
            }
            _ => {}
        }
    }
}

impl Waiting {
    /// Takes a piece; false if the message cannot be put together or held.
    fn add(&mut self, seq: u64, piece: &[u8], limit: usize) -> bool {
        // Sent again after a lost answer.
        if seq < self.seq {
            return true;
        }
        let length = self.part.len() + piece.len();
        if seq > self.seq || length > limit || !self.share.fit(FREE + length) {
            return false;
        }
        self.seq += 1;
        self.part.extend_from_slice(piece);
        true
    }

    /// Hands a whole message over; false if whoever waits is behind by too much.
    fn hand_over(&mut self, last: bool, budget: &Budget) -> bool {
        if self.part.is_empty() {
            return true;
        }
        let share = std::mem::replace(&mut self.share, budget.share());
        let data = share.keep(Bytes::from(std::mem::take(&mut self.part)));
        self.items.try_send(Item { data, last }).is_ok()
    }
}

/// Something that is sent on to another replica; noted until this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    remote: Remote,
    key: (String, String),
    pub(crate) stop: CancellationToken,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.remote.0.serving.lock().remove(&self.key);
    }
}
