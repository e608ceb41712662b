//! Keeps the connection, and stops asking a Redis that fails: after the first failure calls are
//! answered at once, while one task tries until the server takes writes again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::time::{Instant, timeout};

use super::RedisOptions;
use super::address::Address;
use super::fault::{concerns_all, is_unknown_script, link_is_useless, unavailable};
use super::link::Link;
use super::script::Call;
use crate::unavailable::{Health, Reason, RedisUse, Unavailable};

/// The longest wait between two tries of a store that failed.
const LAST_RETRY: Duration = Duration::from_secs(1);
/// Refunds that wait for the store; beyond it the oldest is dropped, and its call stays charged.
const MAX_WAITING: usize = 10_000;

/// A refund that must not be lost.
#[derive(Debug)]
pub(crate) struct Refund(Call);

impl Refund {
    pub(crate) const fn new(call: Call) -> Self {
        Self(call)
    }

    pub(crate) const fn call(&self) -> &Call {
        &self.0
    }
}

/// A connection and its number, so that the many calls on a broken one replace it once.
type Numbered = (u64, Link);

/// What is wrong, since when.
#[derive(Debug, Clone)]
struct Fault {
    reason: Reason,
    since: Instant,
}

/// See the module's head.
pub(crate) struct Circuit {
    address: Address,
    options: RedisOptions,
    link: Mutex<Option<Numbered>>,
    links: AtomicU64,
    connecting: tokio::sync::Mutex<()>,
    fault: Mutex<Option<Fault>>,
    faults: AtomicU64,
    refunds: Mutex<VecDeque<Refund>>,
    lost_refunds: AtomicU64,
    commands: AtomicU64,
    waiting: AtomicU64,
}

/// Counts a command while its answer is awaited, however that ends.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn begins(circuit: &'a Circuit) -> Self {
        circuit.commands.fetch_add(1, Ordering::Relaxed);
        circuit.waiting.fetch_add(1, Ordering::Relaxed);
        Self(&circuit.waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Circuit {
    pub(crate) async fn start(address: Address, options: RedisOptions) -> Arc<Self> {
        let circuit = Arc::new(Self {
            address,
            options,
            link: Mutex::new(None),
            links: AtomicU64::new(0),
            connecting: tokio::sync::Mutex::new(()),
            fault: Mutex::new(None),
            faults: AtomicU64::new(0),
            refunds: Mutex::new(VecDeque::new()),
            lost_refunds: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        });
        circuit.probe().await;
        circuit
    }

    /// Runs a script: at once, or within the time-out, or not at all.
    pub(crate) async fn run(self: &Arc<Self>, call: &Call) -> Result<Value, Unavailable> {
        if let Some(fault) = self.fault.lock().as_ref() {
            return Err(Unavailable::certain(fault.reason.clone()));
        }
        let waiting = Waiting::begins(self);
        // Boxed: whoever charges a counter would hold room for all that a connection may need.
        let attempt = Box::pin(self.attempt(call));
        let answer = timeout(self.options.timeout, attempt).await;
        drop(waiting);
        let failed = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => unavailable(&error),
            Err(_) => Unavailable { reason: Reason::TimedOut, doubtful: true },
        };
        if concerns_all(&failed.reason) {
            self.trip(&failed.reason, call.shard());
        } else {
            tracing::warn!(reason = %failed.reason, "Redis refused a call of the limits' script");
        }
        Err(failed)
    }

    /// Once, and once more over a new connection where the old one was found broken.
    async fn attempt(&self, call: &Call) -> RedisResult<Value> {
        let (number, mut link) = self.link().await?;
        match send(&mut link, call).await {
            Err(error) if link_is_useless(&error) => {
                self.link.lock().take_if(|(current, _)| *current == number);
                send(&mut self.link().await?.1, call).await
            }
            answer => answer,
        }
    }

    /// The connection, made if there is none; one caller makes it for all.
    async fn link(&self) -> RedisResult<Numbered> {
        if let Some(link) = self.link.lock().clone() {
            return Ok(link);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(link) = self.link.lock().clone() {
            return Ok(link);
        }
        // Every answer over it is waited for within a time-out already.
        let link = Link::open(&self.address, self.options.timeout, None).await?;
        Ok(self.put(link))
    }

    /// A connection beside the shared one.
    pub(crate) async fn fresh(&self, timeout: Duration) -> RedisResult<Link> {
        Link::open(&self.address, timeout, Some(timeout)).await
    }

    fn put(&self, link: Link) -> Numbered {
        let numbered = (self.links.fetch_add(1, Ordering::Relaxed), link);
        *self.link.lock() = Some(numbered.clone());
        numbered
    }

    /// Notes a fault, and starts the task that waits for the end of it.
    fn trip(self: &Arc<Self>, reason: &Reason, shard: &str) {
        let first = {
            let mut fault = self.fault.lock();
            let first = fault.is_none();
            let since = fault.as_ref().map_or_else(Instant::now, |fault| fault.since);
            *fault = Some(Fault { reason: reason.clone(), since });
            first
        };
        if !first {
            return;
        }
        self.link.lock().take();
        self.faults.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(reason = %reason, "Limits are unavailable");
        let (circuit, shard) = (Arc::downgrade(self), probe_key(shard));
        let mut wait = self.options.first_retry;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(wait).await;
                let Some(circuit) = circuit.upgrade() else { return };
                if circuit.try_to_close(&shard).await {
                    return;
                }
                wait = (wait * 2).min(LAST_RETRY);
            }
        });
    }

    /// Tries a write over a new connection, then pays the refunds that are due, then closes.
    async fn try_to_close(self: &Arc<Self>, shard: &str) -> bool {
        let trial = timeout(self.options.timeout, async {
            let mut link = Link::open(&self.address, self.options.timeout, None).await?;
            link.send(&trial_write(shard)).await?;
            Ok::<_, RedisError>(link)
        });
        let failed = match trial.await {
            Ok(Ok(link)) => match self.pay(link.clone()).await {
                Ok(()) => {
                    self.put(link);
                    let fault = self.fault.lock().take();
                    let lasted_ms = fault.map_or(0, |fault| fault.since.elapsed().as_millis());
                    tracing::info!(lasted_ms, "Limits are available again");
                    self.pay_what_came_late();
                    return true;
                }
                Err(error) => unavailable(&error).reason,
            },
            Ok(Err(error)) => unavailable(&error).reason,
            Err(_) => Reason::TimedOut,
        };
        if let Some(fault) = self.fault.lock().as_mut() {
            fault.reason = failed;
        }
        false
    }

    async fn pay(&self, mut link: Link) -> RedisResult<()> {
        loop {
            let Some(refund) = self.refunds.lock().pop_front() else { return Ok(()) };
            let paid = timeout(self.options.timeout, send(&mut link, refund.call())).await;
            let error = match paid {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => error,
                Err(_) => std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
            };
            let reason = unavailable(&error).reason;
            if concerns_all(&reason) {
                self.refunds.lock().push_front(refund);
                return Err(error);
            }
            self.lost(&reason);
        }
    }

    /// A refund was given up.
    pub(crate) fn lost(&self, reason: &Reason) {
        self.lost_refunds.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%reason, "A refund is lost; its call stays charged until its window has passed");
    }

    /// Keeps a refund for when the store is back.
    pub(crate) fn keep(self: &Arc<Self>, refund: Refund, reason: &Reason) {
        let dropped = {
            let mut refunds = self.refunds.lock();
            let full = refunds.len() >= MAX_WAITING;
            refunds.push_back(refund);
            if full { refunds.pop_front() } else { None }
        };
        if dropped.is_some() {
            self.lost(reason);
        }
        self.pay_what_came_late();
    }

    /// Pays refunds that came while the circuit was closing: nobody else would.
    fn pay_what_came_late(self: &Arc<Self>) {
        if self.fault.lock().is_some() || self.refunds.lock().is_empty() {
            return;
        }
        let circuit = Arc::clone(self);
        tokio::spawn(async move {
            let paid = match circuit.link().await {
                Ok((_, link)) => circuit.pay(link).await,
                Err(error) => Err(error),
            };
            if let Err(error) = paid {
                circuit.trip(&unavailable(&error).reason, "");
            }
        });
    }

    /// Finds out how the server is, if it is not known to be faulty.
    pub(crate) async fn probe(self: &Arc<Self>) {
        if self.fault.lock().is_some() {
            return;
        }
        let trial = timeout(self.options.timeout, async {
            self.link().await?.1.send(&trial_write(&probe_key(""))).await
        });
        let failed = match trial.await {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => unavailable(&error).reason,
            Err(_) => Reason::TimedOut,
        };
        self.trip(&failed, "");
    }

    pub(crate) fn health(&self) -> Health {
        let fault = self.fault.lock().clone();
        Health {
            store: "redis",
            for_how_long: fault.as_ref().map(|fault| fault.since.elapsed()),
            fault: fault.map(|fault| fault.reason),
            faults: self.faults.load(Ordering::Relaxed),
            waiting_refunds: self.refunds.lock().len(),
            lost_refunds: self.lost_refunds.load(Ordering::Relaxed),
            counters: None,
            redis: Some(RedisUse {
                commands: self.commands.load(Ordering::Relaxed),
                waiting: self.waiting.load(Ordering::Relaxed),
                connected: self.links.load(Ordering::Relaxed),
            }),
        }
    }
}

async fn send(link: &mut Link, call: &Call) -> RedisResult<Value> {
    match link.send(&call.short()).await {
        Err(error) if is_unknown_script(&error) => link.send(&call.whole()).await,
        answer => answer,
    }
}

/// A key on the same shard as `key`.
fn probe_key(key: &str) -> String {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    format!("sluice:{{{}}}:probe", tag.map_or("probe", |(tag, _)| tag))
}

/// A write, since a full or read-only server still answers a PING.
fn trial_write(key: &str) -> Cmd {
    let mut command = redis::cmd("SET");
    command.arg(key).arg("1").arg("PX").arg(1_000);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_goes_to_the_shard_that_failed() {
        assert_eq!(probe_key("sluice:{w}:r:1"), "sluice:{w}:probe");
        assert_eq!(probe_key(""), "sluice:{probe}:probe");
    }
}
