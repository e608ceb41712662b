//! Messages from one replica to another, through the store that counters use: each replica reads a
//! mailbox of its own, waiting for what comes. A single process has nobody to write to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::redis::{self as store, Link, RedisCounters};
use crate::unavailable::{Reason, Unavailable};

/// Messages that wait for a replica at once.
const MAX_WAITING: usize = 256;
/// The longest message.
pub const MAX_MESSAGE: usize = 300 * 1024;
/// How long a message waits for its reader.
const WAITS: Duration = Duration::from_secs(30);
/// How long a replica counts as there after it last looked.
const THERE_FOR: Duration = Duration::from_secs(5);
/// How long one look waits, in seconds, and how long its answer may take.
const LOOK: u32 = 1;
const LOOK_TIMEOUT: Duration = Duration::from_secs(4);

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Done,
    /// The reader is behind; try again in a moment.
    Full,
    /// No replica reads this mailbox.
    Nobody,
}

/// This replica's mailbox, and the way to others'. Cheap to clone.
#[derive(Clone)]
pub struct Relay {
    address: Arc<str>,
    redis: Option<Arc<Reader>>,
}

struct Reader {
    store: Arc<RedisCounters>,
    /// A connection of its own: waiting for a message blocks it.
    link: Mutex<Option<Link>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Relay {
    pub(crate) fn alone(address: &str) -> Self {
        Self { address: address.into(), redis: None }
    }

    pub(crate) fn in_redis(address: &str, store: Arc<RedisCounters>) -> Self {
        let reader = Reader { store, link: Mutex::new(None) };
        Self { address: address.into(), redis: Some(Arc::new(reader)) }
    }

    /// Where others write to this replica.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether there can be other replicas at all.
    pub const fn is_shared(&self) -> bool {
        self.redis.is_some()
    }

    /// Writes to another replica. A message that is sent again after a lost answer may arrive twice.
    pub async fn push(&self, to: &str, message: &[u8]) -> Result<Pushed, Unavailable> {
        let Some(reader) = &self.redis else { return Ok(Pushed::Nobody) };
        let (waits, most) = (WAITS.as_millis().to_string(), MAX_WAITING.to_string());
        let args = [message, most.as_bytes(), waits.as_bytes()];
        let pushed = reader.store.bound(&store::PUSH, [mailbox(to), there(to)], &args).await?;
        Ok(match pushed {
            Value::Int(1) => Pushed::Done,
            Value::Int(0) => Pushed::Full,
            _ => Pushed::Nobody,
        })
    }

    /// The next message for this replica, waited for; none if none came for a moment. To be called
    /// again and again by one task: others see by it that the replica is there.
    pub async fn next(&self) -> Result<Option<Vec<u8>>, Unavailable> {
        let Some(reader) = &self.redis else { return std::future::pending().await };
        let mut held = reader.link.lock().await;
        let looked = timeout(LOOK_TIMEOUT, reader.look(&mut held, &self.address)).await;
        let failed = match looked {
            Ok(Ok(message)) => return Ok(message),
            Ok(Err(error)) => store::unavailable(&error),
            Err(_) => Unavailable { reason: Reason::TimedOut, doubtful: false },
        };
        *held = None;
        Err(failed)
    }
}

impl Reader {
    async fn look(
        &self,
        held: &mut Option<Link>,
        address: &str,
    ) -> redis::RedisResult<Option<Vec<u8>>> {
        let mut link = match held.take() {
            Some(link) => link,
            None => self.store.fresh_link(LOOK_TIMEOUT).await?,
        };
        let mut here = redis::cmd("SET");
        here.arg(there(address)).arg(1).arg("PX").arg(THERE_FOR.as_millis().to_string());
        link.send(&here).await?;
        let mut pop = redis::cmd("BLPOP");
        pop.arg(mailbox(address)).arg(LOOK);
        let answer = link.send(&pop).await?;
        *held = Some(link);
        let popped: Option<(Vec<u8>, Vec<u8>)> = redis::from_redis_value(answer)?;
        Ok(popped.map(|(_, message)| message))
    }
}

fn mailbox(address: &str) -> String {
    format!("sluice:{{relay-{address}}}:m")
}

fn there(address: &str) -> String {
    format!("sluice:{{relay-{address}}}:on")
}
