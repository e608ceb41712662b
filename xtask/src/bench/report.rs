//! Figures of processes, and the table of a run.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::load::Turn;
use super::proxies::Target;

/// Seconds of processor time that a process has used in all of its threads.
pub(super) fn processor(process: u32) -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end meanwhile.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}

/// Resident memory in MiB.
pub(super) fn resident(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kibibytes: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(kibibytes / 1024.0)
}

pub(super) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The middle of a figure over the rounds.
fn median(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> f64 {
    let mut figures: Vec<f64> = turns.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn wait(turn: &Turn, hundredths: usize) -> f64 {
    let at = (turn.waits.len() * hundredths / 100).min(turn.waits.len() - 1);
    f64::from(turn.waits[at])
}

/// Prints medians over the rounds, and what they are of nginx's.
pub(super) fn table(connections: u32, targets: &[Arc<Target>], turns: &[Vec<Turn>]) {
    println!(
        "\n{connections} connections\n{:<12}{:>10}{:>9}{:>12}{:>9}{:>10}{:>10}{:>10}{:>9}",
        "", "calls/s", "/ nginx", "CPU us", "/ nginx", "p50 us", "added", "p99 us", "/ nginx"
    );
    let of = |name: &str| targets.iter().position(|target| target.name == name).unwrap_or(0);
    let (direct, nginx) = (&turns[of("upstream")], &turns[of("nginx")]);
    let rate = |turn: &Turn| number(turn.calls) / turn.seconds;
    for (target, turns) in targets.iter().zip(turns) {
        let against = |figure: &dyn Fn(&Turn) -> f64| median(turns, figure) / median(nginx, figure);
        println!(
            "{:<12}{:>10.0}{:>9.2}{:>12.1}{:>9.2}{:>10.0}{:>+10.0}{:>10.0}{:>9.2}",
            target.name,
            median(turns, rate),
            against(&rate),
            median(turns, |turn| turn.processor),
            against(&|turn| turn.processor),
            median(turns, |turn| wait(turn, 50)),
            median(turns, |turn| wait(turn, 50)) - median(direct, |turn| wait(turn, 50)),
            median(turns, |turn| wait(turn, 99)),
            against(&|turn| wait(turn, 99)),
        );
    }
}
