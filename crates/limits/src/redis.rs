//! Counters in Redis or Valkey, shared by all replicas. Each step is one script in one round trip;
//! all keys of a workspace carry its hash tag, and the time is the server's own.

mod address;
mod circuit;
mod fault;
mod link;
mod script;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use sluice_domain::{Amount, GrantId, ReservationId, WorkspaceId};

pub use self::address::RedisUrlError;
use self::circuit::{Circuit, Refund};
use self::script::{Call, Script};
use crate::buckets::{Buckets, duration, from_parts, left};
use crate::contract::{Clock, Reading, Reserved};
use crate::plan::{Ask, Plan};
use crate::span::{SECOND, Span};
use crate::unavailable::{Health, Reason, Unavailable};

/// A retry must find its reservation, however short the windows are.
const LEAST_REMEMBERED: Duration = Duration::from_mins(1);
/// How long a given-back reservation turns late reserves away.
const VOID_REMEMBERED: Duration = Duration::from_mins(2);
/// Counters, or indexes of sessions, that one script reads: other calls wait for it.
const READ_AT_ONCE: usize = 1_000;

/// How to use Redis.
#[derive(Clone)]
pub struct RedisOptions {
    /// The bound on one answer, reconnecting included. A call may wait for two: its session and its limits.
    pub timeout: Duration,
    /// The first wait before a store that failed is tried again; doubles up to a second.
    pub first_retry: Duration,
    /// For tests: the time that counts, in place of the server's own.
    pub clock: Option<Clock>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(800),
            first_retry: Duration::from_millis(50),
            clock: None,
        }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The Redis store behind [`crate::Counters`].
pub struct RedisCounters {
    circuit: Arc<Circuit>,
    clock: Option<Clock>,
}

impl fmt::Debug for RedisCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCounters").finish_non_exhaustive()
    }
}

impl RedisCounters {
    pub(crate) async fn open(url: &str, options: RedisOptions) -> Result<Self, RedisUrlError> {
        let address = address::parse(url)?;
        let clock = options.clock.clone();
        Ok(Self { circuit: Circuit::start(address, options).await, clock })
    }

    pub(crate) async fn reserve(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Reserved, Unavailable> {
        let call = self.booking(workspace, id, id, plan, &[], keep);
        self.reserved(plan, &call).await
    }

    /// [`Self::reserve`], but how the counters stand is told only with a refusal.
    pub(crate) async fn charge(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Result<(), Reserved>, Unavailable> {
        let call = self.booking(workspace, id, id, plan, &[], keep);
        let answer = self.circuit.run(&call).await?;
        if is_granted(&answer) {
            return Ok(Ok(()));
        }
        let reserved = read_reserved(&answer, plan)?;
        Ok(if reserved.granted { Ok(()) } else { Err(reserved) })
    }

    pub(crate) async fn rebook(
        &self,
        workspace: WorkspaceId,
        old: ReservationId,
        before: &Plan,
        new: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Reserved, Unavailable> {
        let others: Vec<&Ask> = before
            .asks
            .iter()
            .filter(|ask| !plan.asks.iter().any(|charged| charged.name == ask.name))
            .collect();
        let call = self.booking(workspace, new, old, plan, &others, keep);
        self.reserved(plan, &call).await
    }

    fn booking(
        &self,
        workspace: WorkspaceId,
        new: ReservationId,
        old: ReservationId,
        plan: &Plan,
        others: &[&Ask],
        keep: Duration,
    ) -> Call {
        let mut call = Call::new(&script::BOOK);
        call.key(&record_key(workspace, new)).key(&record_key(workspace, old));
        call.arg(&self.time()).arg(&keep.as_millis());
        call.arg(&LEAST_REMEMBERED.as_millis()).arg(&plan.asks.len());
        call.arg(&plan.session.as_ref().map_or("", |(_, session)| session));
        for ask in &plan.asks {
            call.key(&counter_key(workspace, &ask.name));
            push_ask(&mut call, ask);
        }
        for ask in others {
            call.key(&counter_key(workspace, &ask.name));
            push_span(&mut call, ask.span);
        }
        if let Some((grant, _)) = &plan.session {
            call.key(&sessions_key(workspace, grant));
        }
        call
    }

    async fn reserved(&self, plan: &Plan, call: &Call) -> Result<Reserved, Unavailable> {
        read_reserved(&self.circuit.run(call).await?, plan)
    }

    pub(crate) async fn refund(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
    ) -> Result<(), Unavailable> {
        let mut call = Call::new(&script::REFUND);
        call.key(&record_key(workspace, id)).arg(&self.time()).arg(&VOID_REMEMBERED.as_millis());
        for ask in &plan.asks {
            call.key(&counter_key(workspace, &ask.name));
            push_span(&mut call, ask.span);
        }
        let refund = Refund::new(call);
        let done = self.circuit.run(refund.call()).await;
        match &done {
            Err(failed) if fault::concerns_all(&failed.reason) => {
                self.circuit.keep(refund, &failed.reason);
            }
            Err(failed) => self.circuit.lost(&failed.reason),
            Ok(_) => {}
        }
        done.map(|_| ())
    }

    pub(crate) async fn read(
        &self,
        workspace: WorkspaceId,
        asks: &[Ask],
    ) -> Result<Vec<Reading>, Unavailable> {
        let mut readings = Vec::with_capacity(asks.len());
        for piece in asks.chunks(READ_AT_ONCE) {
            let mut call = Call::new(&script::READ);
            call.arg(&self.time());
            for ask in piece {
                call.key(&counter_key(workspace, &ask.name));
            }
            readings.extend(read_stored(&self.circuit.run(&call).await?, piece)?);
        }
        Ok(readings)
    }

    pub(crate) async fn sessions(
        &self,
        workspace: WorkspaceId,
        grants: &[GrantId],
        most: usize,
    ) -> Result<Vec<(GrantId, String)>, Unavailable> {
        let mut found = Vec::new();
        for piece in grants.chunks(READ_AT_ONCE) {
            let mut call = Call::new(&script::SESSIONS);
            call.arg(&self.time()).arg(&most);
            for grant in piece {
                call.key(&sessions_key(workspace, &grant.to_string()));
            }
            let answer = self.circuit.run(&call).await?;
            let told: Vec<Vec<String>> =
                redis::from_redis_value(answer).map_err(|_| unexpected())?;
            for (grant, sessions) in piece.iter().zip(told) {
                found.extend(sessions.into_iter().map(|session| (*grant, session)));
            }
        }
        Ok(found)
    }

    /// Empties a counter; what it held.
    pub(crate) async fn reset(
        &self,
        workspace: WorkspaceId,
        ask: &Ask,
    ) -> Result<Amount, Unavailable> {
        let mut call = Call::new(&script::RESET);
        call.key(&counter_key(workspace, &ask.name)).arg(&self.time());
        push_span(&mut call, ask.span);
        let answer = self.circuit.run(&call).await?;
        let held: (String, String) = redis::from_redis_value(answer).map_err(|_| unexpected())?;
        let (whole, part) = (held.0.parse(), held.1.parse());
        let (Ok(whole), Ok(part)) = (whole, part) else { return Err(unexpected()) };
        Ok(from_parts(whole, part))
    }

    /// Runs one of the scripts of the bindings.
    pub(crate) async fn bound(
        &self,
        script: &'static Script,
        keys: [String; 2],
        args: &[&[u8]],
    ) -> Result<Value, Unavailable> {
        let mut call = Call::new(script);
        for key in keys {
            call.key(&key);
        }
        for arg in args {
            call.bytes(arg);
        }
        self.circuit.run(&call).await
    }

    /// A connection that nothing else uses.
    pub(crate) async fn fresh_link(&self, timeout: Duration) -> redis::RedisResult<Link> {
        self.circuit.fresh(timeout).await
    }

    pub(crate) fn health(&self) -> Health {
        self.circuit.health()
    }

    pub(crate) async fn probe(&self) {
        self.circuit.probe().await;
    }

    fn time(&self) -> String {
        let now = self.clock.as_ref().map(|clock| clock().timestamp_micros());
        now.map(|now| now.to_string()).unwrap_or_default()
    }
}

pub(crate) use self::fault::unavailable;
pub(crate) use self::link::Link;
pub(crate) use self::script::{BIND, COUNT, DISPLACE, PEEK, PUSH, TOUCH, UNBIND};

fn record_key(workspace: WorkspaceId, id: ReservationId) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "sluice:{{{workspace}}}:r:{id}"))
}

fn counter_key(workspace: WorkspaceId, name: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "sluice:{{{workspace}}}:c:{name}"))
}

/// Where a grant's charged sessions are noted.
fn sessions_key(workspace: WorkspaceId, grant: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "sluice:{{{workspace}}}:s:{grant}"))
}

fn push_span(call: &mut Call, span: Span) {
    let (kind, length) = match span {
        Span::Sliding { width } => ("s", width),
        Span::Fixed { length } => ("c", length),
        Span::Month => ("m", 0),
    };
    call.arg(&kind).arg(&length);
}

fn push_ask(call: &mut Call, ask: &Ask) {
    push_span(call, ask.span);
    for amount in [ask.max, ask.amount] {
        let billion = Amount::ONE.billionths();
        call.arg(&amount.billionths().div_euclid(billion));
        call.arg(&amount.billionths().rem_euclid(billion));
    }
}

fn unexpected() -> Unavailable {
    Unavailable::certain(Reason::Other("unexpected answer".to_owned()))
}

/// Reads what counters hold, see `lua/read.lua`.
fn read_stored(answer: &Value, asks: &[Ask]) -> Result<Vec<Reading>, Unavailable> {
    let told: Vec<Option<Vec<u8>>> =
        redis::FromRedisValue::from_redis_value_ref(answer).map_err(|_| unexpected())?;
    let text = |stored: &Option<Vec<u8>>| {
        String::from_utf8_lossy(stored.as_deref().unwrap_or_default()).into_owned()
    };
    let now = told.first().and_then(|now| text(now).parse::<i64>().ok());
    let now = now.filter(|_| told.len() == asks.len() + 1).ok_or_else(unexpected)?;
    let reading = |(ask, stored): (&Ask, &Option<Vec<u8>>)| {
        let mut buckets = Buckets::parse(&text(stored));
        buckets.settle(ask.span, now);
        buckets.reading(ask.span, now, ask.max, ask.amount)
    };
    Ok(asks.iter().zip(&told[1..]).map(reading).collect())
}

/// What scripts answer where all is charged.
const GRANTED: &str = "granted";

/// Whether the answer's first word, which is all that most calls need of it, says so.
fn is_granted(answer: &Value) -> bool {
    let Value::Array(words) = answer else { return false };
    match words.first() {
        Some(Value::BulkString(word)) => word == GRANTED.as_bytes(),
        Some(Value::SimpleString(word)) => word == GRANTED,
        _ => false,
    }
}

fn read_reserved(answer: &Value, plan: &Plan) -> Result<Reserved, Unavailable> {
    let (verdict, readings) = read_answer(answer, &plan.asks)?;
    Ok(Reserved { granted: verdict == GRANTED, readings: plan.readings(&readings) })
}

/// Reads a verdict and four numbers for each ask, see `lua/common.lua`.
fn read_answer(answer: &Value, asks: &[Ask]) -> Result<(String, Vec<Reading>), Unavailable> {
    let words: Vec<String> =
        redis::FromRedisValue::from_redis_value_ref(answer).map_err(|_| unexpected())?;
    let numbers: Option<Vec<i128>> = words.iter().skip(1).map(|word| word.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == 4 * asks.len());
    let (Some(verdict), Some(numbers)) = (words.first(), numbers) else {
        return Err(unexpected());
    };
    let readings = asks.iter().zip(numbers.chunks_exact(4)).map(|(ask, told)| {
        let used = from_parts(told[0], told[1]);
        let time = |micros: i128| {
            let micros = i64::try_from(micros).ok().filter(|micros| *micros >= 0);
            micros.map(|micros| duration(micros.min(400 * 86_400 * SECOND)))
        };
        Reading {
            used,
            remaining: left(ask.max, used),
            wait: time(told[2]),
            never: told[2] == -2,
            resets_in: time(told[3]),
        }
    });
    Ok((verdict.clone(), readings.collect()))
}
