//! Whether a figure grows: the median of the measurement's first third beside that of its last.

use super::gateway::Usage;

/// One figure of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) of: fn(&Usage) -> f64,
    /// What it may differ by for other reasons: a share, and an amount.
    share: f64,
    amount: f64,
}

/// What is looked at. Memory: an allocator keeps what it may need again, and the database's cache fills.
pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "memory, KiB", of: |usage| usage.memory, share: 0.05, amount: 4_096.0 },
    Figure { name: "descriptors", of: |usage| usage.descriptors, share: 0.25, amount: 24.0 },
    Figure { name: "tasks", of: |usage| usage.tasks, share: 0.25, amount: 24.0 },
    Figure { name: "sessions", of: |usage| usage.sessions, share: 0.05, amount: 50.0 },
    Figure { name: "open requests", of: |usage| usage.open, share: 0.5, amount: 16.0 },
];

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl Figure {
    /// The medians of the first and the last third.
    pub(super) fn windows(&self, samples: &[Usage]) -> (f64, f64) {
        let third = (samples.len() / 3).max(1).min(samples.len());
        let of = |part: &[Usage]| median(part.iter().map(self.of));
        (of(&samples[..third]), of(&samples[samples.len() - third..]))
    }

    /// Whether it grew by more than it may.
    pub(super) fn grows(&self, (first, last): (f64, f64)) -> bool {
        last > first + (first * self.share).max(self.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(of: impl Fn(f64) -> f64) -> bool {
        let samples: Vec<Usage> =
            (0..90_u32).map(|at| Usage { memory: of(at.into()), ..Usage::default() }).collect();
        FIGURES[0].grows(FIGURES[0].windows(&samples))
    }

    #[test]
    fn steady_growth_is_seen_and_peaks_and_noise_are_not() {
        assert!(memory(|at| 50_000.0 + at * 100.0));
        assert!(!memory(|at| 50_000.0 + (at * 7.0) % 900.0));
        assert!(!memory(|at| if at % 10.0 < 1.0 { 90_000.0 } else { 50_000.0 }));
        assert!(!memory(|at| 60_000.0 - at * 10.0));
    }
}
