//! `cargo xtask soak`: load for minutes, and nothing may grow. `cargo xtask streams`: what an idle
//! stream costs.

mod client;
pub(crate) mod gateway;
mod growth;
mod load;
mod upstream;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;

use gateway::{Gateway, Usage};
use growth::FIGURES;
use load::Done;

const WORKERS: u32 = 12;
/// Between two rounds of a worker: the load is there, and no machine is at its end.
const PAUSE: Duration = Duration::from_millis(250);
/// Of the time, what is not measured: pools and caches fill.
const WARM_UP: f64 = 0.25;
/// After the load everything must have ended within this.
const SETTLE: Duration = Duration::from_secs(10);

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Soaks the binary for `time`.
pub(crate) fn run(binary: &Path, time: Duration) -> Result<ExitCode> {
    runtime()?.block_on(soak(binary, time))
}

async fn soak(binary: &Path, time: Duration) -> Result<ExitCode> {
    let gateway = Gateway::start(binary, upstream::start().await?).await?;
    let client = gateway.grant("soak").await?;
    load::fill(&client).await?;
    let (done, stop) = (Arc::new(Done::default()), Arc::new(AtomicBool::new(false)));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(load::worker(client.clone(), Arc::clone(&done), Arc::clone(&stop), PAUSE));
    }
    tokio::time::sleep(time.mul_f64(WARM_UP)).await;
    let samples = sample(&gateway, time.mul_f64(1.0 - WARM_UP), &mut workers).await?;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    let rest = settled(&gateway).await?;
    report(&samples, &done, &rest);
    let grown: Vec<_> =
        FIGURES.iter().filter(|figure| figure.grows(figure.windows(&samples))).collect();
    for figure in &grown {
        println!("{} GREW", figure.name);
    }
    let left = rest.open > 0.0;
    if left {
        println!("requests are STILL OPEN {} s after the load", SETTLE.as_secs());
    }
    Ok(if grown.is_empty() && !left { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks at the gateway until the time is over; a worker that ends has met something wrong.
async fn sample(
    gateway: &Gateway,
    time: Duration,
    workers: &mut JoinSet<Result<()>>,
) -> Result<Vec<Usage>> {
    let until = Instant::now() + time;
    let mut ticks = tokio::time::interval((time / 200).max(Duration::from_millis(100)));
    let mut samples = Vec::new();
    while Instant::now() < until {
        tokio::select! {
            _ = ticks.tick() => samples.push(gateway.usage().await?),
            Some(ended) = workers.join_next() => ended?.and_then(|()| anyhow::bail!("a client ended"))?,
        }
    }
    ensure!(samples.len() >= 9, "too few samples; let it run longer");
    Ok(samples)
}

/// What is left once nobody asks for anything.
async fn settled(gateway: &Gateway) -> Result<Usage> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let usage = gateway.usage().await?;
        if usage.open == 0.0 || Instant::now() > deadline {
            return Ok(usage);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn report(samples: &[Usage], done: &Done, rest: &Usage) {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} sessions, {} calls, {} streams held, {} clients vanished, {} answers cut",
        of(&done.sessions),
        of(&done.calls),
        of(&done.streams),
        of(&done.vanished),
        of(&done.cut)
    );
    println!("{:<16}{:>12}{:>12}{:>12}", "median", "first third", "last third", "after");
    for figure in FIGURES {
        let (first, last) = figure.windows(samples);
        println!("{:<16}{first:>12.0}{last:>12.0}{:>12.0}", figure.name, (figure.of)(rest));
    }
}

/// Streams of one grant: it may have a thousand requests open.
const STREAMS_A_GRANT: u32 = 900;
/// Streams that are opened before memory is looked at first, so that what is made once is there.
const FIRST: u32 = 200;
/// Descriptors that each side has for other things.
const OTHERS: u32 = 120;

/// Opens `wanted` idle streams and tells what each costs in memory.
pub(crate) fn streams(binary: &Path, wanted: u32) -> Result<ExitCode> {
    // Two descriptors a stream, in the gateway and here: its client's and its upstream's.
    let streams = wanted.min((descriptors()? - OTHERS) / 2).min(10_000 - FIRST);
    if streams < wanted {
        println!(
            "{streams} streams, as the limit of descriptors (or of connections) allows no more"
        );
    }
    runtime()?.block_on(async {
        let gateway = Gateway::start(binary, upstream::start().await?).await?;
        let mut held = hold(sessions(&gateway, FIRST).await?).await?;
        let before = settled_memory(&gateway).await?;
        let opened = sessions(&gateway, streams - FIRST).await?;
        let between = settled_memory(&gateway).await?;
        let last = opened.last().context("no streams")?.0.clone();
        let of_last = opened.iter().filter(|(client, _)| client.grant == last.grant).count();
        held.extend(hold(opened).await?);
        let after = settled_memory(&gateway).await?;
        ensure!(after.open >= f64::from(streams), "only {} are open", after.open);
        let more = f64::from(streams - FIRST);
        let each = |now: Usage, then: Usage| (now.memory - then.memory) / more;
        println!(
            "{streams} idle streams: {:.1} MiB in all, {:.1} KiB a stream and {:.1} KiB its session",
            after.memory / 1024.0,
            each(after, between),
            each(between, before)
        );
        let each = each(after, before);
        println!("10000 would take {:.0} MiB", (before.memory + each * 10_000.0) / 1024.0);
        let (since, of_last) = (Instant::now(), f64::from(u32::try_from(of_last)?));
        gateway.revoke(&last).await?;
        while gateway.usage().await?.open > after.open - of_last {
            ensure!(since.elapsed() < Duration::from_mins(1), "streams of a revoked grant go on");
        }
        println!("{of_last} streams of a revoked grant had ended {:.2?} after", since.elapsed());
        drop(held);
        Ok(ExitCode::SUCCESS)
    })
}

/// A session, and how to name it.
type Opened = (client::Client, String);

async fn sessions(gateway: &Gateway, count: u32) -> Result<Vec<Opened>> {
    let mut opened = Vec::new();
    for at in 0..count {
        let client = match opened.last() {
            Some((client, _)) if at % STREAMS_A_GRANT > 0 => client::Client::clone(client),
            _ => gateway.grant(&format!("{at} of {count}")).await?,
        };
        let headers = load::session(&client).await?;
        opened.push((client, headers));
    }
    Ok(opened)
}

/// Each session's stream, begun.
async fn hold(sessions: Vec<Opened>) -> Result<Vec<client::Reply>> {
    let mut held = Vec::new();
    for (client, headers) in sessions {
        let stream = client.hold(&headers).await?;
        ensure!(stream.status == 200, "GET: {} {}", stream.status, stream.text());
        held.push(stream);
    }
    Ok(held)
}

/// The usage after a few quiet seconds.
async fn settled_memory(gateway: &Gateway) -> Result<Usage> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    gateway.usage().await
}

/// How many descriptors a process may have.
fn descriptors() -> Result<u32> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    soft.context("no limit of open files in /proc/self/limits")
}
