//! `cargo xtask bench`: calls through the binary beside nginx as a plain proxy, on the same upstream, in
//! turns. Proxies have one processor to themselves; upstream, clients and databases have the other.

mod load;
mod proxies;
mod report;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use load::Turn;
use proxies::{Proxies, Target};

use crate::services::Services;
use crate::{find, run};

/// The processor of the proxies, and that of everything else.
const PROXIES: &str = "0";
const OTHERS: &str = "1";
/// Connections that are held open for the figure of memory.
const IDLE: u32 = 1_000;

/// Measures `rounds` turns of `time` each, for every number of connections.
pub(crate) fn run(
    binary: &Path,
    rounds: u32,
    time: Duration,
    connections: &[u32],
) -> Result<ExitCode> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let processors = std::thread::available_parallelism()?;
    ensure!(processors.get() >= 2, "the bench needs two processors, one for the proxies alone");
    let found = find::all(&[&find::POSTGRES, &find::REDIS, &find::NGINX])?;
    // What is started from here on inherits it.
    run::done(
        Command::new("taskset")
            .args(["-a", "-c", "-p", OTHERS, &std::process::id().to_string()])
            .stdout(std::process::Stdio::null()),
    )?;
    // A database of its own for each that has one.
    let services = [Services::start(&found[0], &found[1])?, Services::start(&found[0], &found[1])?];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let upstream = load::upstream().await?;
        let proxies = Proxies::start(binary, &found[2], &services, upstream).await?;
        println!("load of the machine before: {}", load_average()?);
        for connections in connections {
            let turns = turns(&proxies.targets, rounds, time, *connections).await?;
            report::table(*connections, &proxies.targets, &turns);
        }
        println!("\nmemory, and what {IDLE} idle connections add to it:");
        for target in &proxies.targets {
            if let Some(process) = target.process {
                let before = report::resident(process)?;
                let held = load::idle(target, IDLE).await?;
                let after = report::resident(process)?;
                println!("{:<12}{before:>8.1} MiB{:>+8.1} MiB", target.name, after - before);
                drop(held);
            }
        }
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The same command, built to be quick: the clients must not be what is measured.
fn again_in_release() -> Result<ExitCode> {
    let mut again = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    again.args(["run", "--quiet", "--release", "-p", "xtask", "--"]).current_dir(run::root());
    let status = run::guarded(again.args(std::env::args_os().skip(1)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every round's turn of every target; each second round in the other order, so that nobody is always first.
async fn turns(
    targets: &[Arc<Target>],
    rounds: u32,
    time: Duration,
    connections: u32,
) -> Result<Vec<Vec<Turn>>> {
    let mut turns: Vec<Vec<Turn>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..targets.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            turns[at].push(load::turn(&targets[at], connections, time).await?);
        }
    }
    Ok(turns)
}

fn load_average() -> Result<String> {
    Ok(std::fs::read_to_string("/proc/loadavg")?.split(' ').next().unwrap_or_default().to_owned())
}
