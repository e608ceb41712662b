//! A small map of expiring entries per owner, in the same store as the counters: what a session id
//! of ours stands for. An owner can hold only so many, so that nobody fills the store.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::contract::Clock;
use crate::plan::escaped;
use crate::redis::{self, RedisCounters};
use crate::unavailable::{Reason, Unavailable};

/// The longest value that is kept.
const MAX_VALUE: usize = 64 * 1024;
/// Owners in process at once before those with nothing left are swept out.
const SWEPT_ABOVE: usize = 1_024;

/// Expiring entries, see the module's head. Cheap to clone; clones share the entries.
#[derive(Clone)]
pub struct Bindings {
    store: Store,
    cap: usize,
}

#[derive(Clone)]
enum Store {
    Memory { clock: Clock, owners: Arc<Mutex<Owners>> },
    Redis(Arc<RedisCounters>),
}

#[derive(Default)]
struct Owners {
    entries: HashMap<String, HashMap<String, Entry>>,
    sweep_at: usize,
}

struct Entry {
    value: Vec<u8>,
    until: i64,
}

impl fmt::Debug for Bindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bindings").field("cap", &self.cap).finish_non_exhaustive()
    }
}

impl Owners {
    /// The owner's living entries.
    fn living(&mut self, owner: &str, now: i64) -> Option<&mut HashMap<String, Entry>> {
        let entries = self.entries.get_mut(owner)?;
        entries.retain(|_, entry| entry.until > now);
        if entries.is_empty() {
            self.entries.remove(owner);
            return None;
        }
        self.entries.get_mut(owner)
    }

    /// Takes out the entries that end first, until one more fits.
    fn make_room(&mut self, owner: &str, key: &str, cap: usize, now: i64) -> Vec<Displaced> {
        let Some(held) = self.living(owner, now) else { return Vec::new() };
        if held.contains_key(key) {
            return Vec::new();
        }
        let mut displaced = Vec::new();
        while held.len() >= cap {
            let oldest = held.iter().min_by_key(|(_, entry)| entry.until);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = held.remove(&oldest) {
                displaced.push(Displaced { key: oldest, value: entry.value });
            }
        }
        displaced
    }

    /// Sweeps out what has ended, each time the number of owners has doubled.
    fn sweep(&mut self, now: i64) {
        if self.entries.len() < self.sweep_at.max(SWEPT_ABOVE) {
            return;
        }
        self.entries.retain(|_, entries| {
            entries.retain(|_, entry| entry.until > now);
            !entries.is_empty()
        });
        self.sweep_at = self.entries.len() * 2;
    }
}

/// An entry that made room for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    pub key: String,
    pub value: Vec<u8>,
}

impl Displaced {
    fn read(name: &[u8], value: &[u8]) -> Self {
        Self { key: plain(&String::from_utf8_lossy(name)), value: value.to_vec() }
    }
}

impl Bindings {
    pub(crate) fn in_memory(clock: Clock, cap: usize) -> Self {
        Self { store: Store::Memory { clock, owners: Arc::default() }, cap }
    }

    pub(crate) const fn in_redis(redis: Arc<RedisCounters>, cap: usize) -> Self {
        Self { store: Store::Redis(redis), cap }
    }

    /// Puts an entry that lives for `ttl`. `false`: the owner holds as many as allowed, or the value
    /// is over 64 KiB, and nothing was put.
    pub async fn put(
        &self,
        owner: &str,
        key: &str,
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, Unavailable> {
        if value.len() > MAX_VALUE {
            return Ok(false);
        }
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                let mut owners = owners.lock();
                owners.sweep(now);
                let held = owners.living(owner, now);
                let full =
                    held.is_some_and(|held| held.len() >= self.cap && !held.contains_key(key));
                if full || self.cap == 0 {
                    return Ok(false);
                }
                let entry = Entry { value: value.to_vec(), until: now.saturating_add(micros(ttl)) };
                owners.entries.entry(owner.to_owned()).or_default().insert(key.to_owned(), entry);
                Ok(true)
            }
            Store::Redis(redis) => {
                let (name, ttl) = (escaped(key), millis(ttl));
                let cap = self.cap.to_string();
                let args = [name.as_bytes(), value, ttl.as_bytes(), cap.as_bytes()];
                let put = redis.bound(&redis::BIND, keys(owner, key), &args).await?;
                number(&put).map(|put| put == 1)
            }
        }
    }

    /// [`Self::put`], but where the owner holds as many as allowed, those that were not used for longest
    /// make room. None: the value is over 64 KiB or nothing may be held, and nothing was put.
    pub async fn put_displacing(
        &self,
        owner: &str,
        key: &str,
        value: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<Displaced>>, Unavailable> {
        if value.len() > MAX_VALUE || self.cap == 0 {
            return Ok(None);
        }
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                let mut owners = owners.lock();
                owners.sweep(now);
                let displaced = owners.make_room(owner, key, self.cap, now);
                let entry = Entry { value: value.to_vec(), until: now.saturating_add(micros(ttl)) };
                owners.entries.entry(owner.to_owned()).or_default().insert(key.to_owned(), entry);
                Ok(Some(displaced))
            }
            Store::Redis(redis) => {
                let (name, ttl) = (escaped(key), millis(ttl));
                let (cap, prefix) = (self.cap.to_string(), prefix(owner));
                let args =
                    [name.as_bytes(), value, ttl.as_bytes(), cap.as_bytes(), prefix.as_bytes()];
                let gone = redis.bound(&redis::DISPLACE, keys(owner, key), &args).await?;
                let gone: Vec<Vec<u8>> =
                    ::redis::from_redis_value(gone).map_err(|_| unexpected())?;
                let pairs = gone.chunks_exact(2);
                Ok(Some(pairs.map(|pair| Displaced::read(&pair[0], &pair[1])).collect()))
            }
        }
    }

    /// Reads an entry without letting it live longer.
    pub async fn peek(&self, owner: &str, key: &str) -> Result<Option<Vec<u8>>, Unavailable> {
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                let mut owners = owners.lock();
                let entry = owners.living(owner, now).and_then(|held| held.get(key));
                Ok(entry.map(|entry| entry.value.clone()))
            }
            Store::Redis(redis) => {
                let value = redis.bound(&redis::PEEK, keys(owner, key), &[]).await?;
                ::redis::from_redis_value(value).map_err(|_| unexpected())
            }
        }
    }

    /// Reads an entry and lets it live for `ttl` from now.
    pub async fn get(
        &self,
        owner: &str,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, Unavailable> {
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                let mut owners = owners.lock();
                let entry = owners.living(owner, now).and_then(|held| held.get_mut(key));
                Ok(entry.map(|entry| {
                    entry.until = now.saturating_add(micros(ttl));
                    entry.value.clone()
                }))
            }
            Store::Redis(redis) => {
                let (name, ttl) = (escaped(key), millis(ttl));
                let args = [name.as_bytes(), ttl.as_bytes()];
                let value = redis.bound(&redis::TOUCH, keys(owner, key), &args).await?;
                ::redis::from_redis_value(value).map_err(|_| unexpected())
            }
        }
    }

    /// Takes an entry out; says whether it was there.
    pub async fn delete(&self, owner: &str, key: &str) -> Result<bool, Unavailable> {
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                let mut owners = owners.lock();
                Ok(owners.living(owner, now).is_some_and(|held| held.remove(key).is_some()))
            }
            Store::Redis(redis) => {
                let name = escaped(key);
                let gone =
                    redis.bound(&redis::UNBIND, keys(owner, key), &[name.as_bytes()]).await?;
                number(&gone).map(|gone| gone == 1)
            }
        }
    }

    /// How many entries an owner holds.
    pub async fn count(&self, owner: &str) -> Result<usize, Unavailable> {
        match &self.store {
            Store::Memory { clock, owners } => {
                let now = clock().timestamp_micros();
                Ok(owners.lock().living(owner, now).map_or(0, |held| held.len()))
            }
            Store::Redis(redis) => {
                let count = redis.bound(&redis::COUNT, keys(owner, ""), &[]).await?;
                number(&count).map(|count| usize::try_from(count).unwrap_or(0))
            }
        }
    }
}

/// The owner's index and one entry, on one shard.
fn keys(owner: &str, key: &str) -> [String; 2] {
    [format!("sluice:{{{}}}:b", escaped(owner)), format!("{}{}", prefix(owner), escaped(key))]
}

fn prefix(owner: &str) -> String {
    format!("sluice:{{{}}}:b:", escaped(owner))
}

/// What [`escaped`] made of a name, read back.
fn plain(escaped: &str) -> String {
    let mut out = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(code) = code.filter(|_| byte == b'%') {
            out.push(code);
            rest = &after[2..];
        } else {
            out.push(byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)
}

/// Redis takes no empty life.
fn millis(ttl: Duration) -> String {
    ttl.as_millis().max(1).to_string()
}

fn number(value: &::redis::Value) -> Result<i64, Unavailable> {
    ::redis::FromRedisValue::from_redis_value_ref(value).map_err(|_| unexpected())
}

fn unexpected() -> Unavailable {
    Unavailable::certain(Reason::Other("unexpected answer".to_owned()))
}
