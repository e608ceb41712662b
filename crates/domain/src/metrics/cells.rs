//! The cells that metrics count in.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Family, Sample};

/// How a metric behaves, in Prometheus' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    /// Prometheus' word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A label with every value that it can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub name: &'static str,
    pub values: &'static [&'static str],
}

/// What a metric is.
#[derive(Debug, Clone, Copy)]
pub struct Meta {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [Label],
    pub help: &'static str,
}

impl Meta {
    /// How many series there can be.
    fn series(&self) -> usize {
        self.labels.iter().map(|label| label.values.len()).product()
    }

    /// The values of a series by its place.
    fn values(&self, mut place: usize) -> Vec<&'static str> {
        let mut values: Vec<&'static str> = Vec::with_capacity(self.labels.len());
        for label in self.labels.iter().rev() {
            values.push(label.values[place % label.values.len()]);
            place /= label.values.len();
        }
        values.reverse();
        values
    }
}

/// Cells of all series; made at the first use.
struct Cells(OnceLock<Box<[AtomicU64]>>);

impl Cells {
    const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn all(&self, count: usize, first: u64) -> &[AtomicU64] {
        self.0.get_or_init(|| (0..count).map(|_| AtomicU64::new(first)).collect())
    }
}

/// Where a series lies, by the places of its labels' values; none for values that the labels do not have.
fn place<const N: usize>(meta: &Meta, at: [usize; N]) -> Option<usize> {
    let mut place = 0;
    for (label, at) in meta.labels.iter().zip(at) {
        if at >= label.values.len() {
            return None;
        }
        place = place * label.values.len() + at;
    }
    Some(place)
}

/// What only rises. `N`: how many labels it has.
pub struct Counter<const N: usize> {
    meta: Meta,
    /// Series that were never counted are not shown.
    sparse: bool,
    cells: Cells,
}

impl<const N: usize> Counter<N> {
    pub(super) const fn new(
        name: &'static str,
        labels: &'static [Label; N],
        help: &'static str,
    ) -> Self {
        let meta = Meta { name, kind: Kind::Counter, labels, help };
        Self { meta, sparse: false, cells: Cells::new() }
    }

    /// With too many possible series to show those that never happened.
    pub(super) const fn sparse(mut self) -> Self {
        self.sparse = true;
        self
    }

    /// Counts. `at`: the place of each label's value in its list.
    pub fn add(&self, at: [usize; N], count: u64) {
        let cells = self.cells.all(self.meta.series(), 0);
        if let Some(cell) = place(&self.meta, at).and_then(|place| cells.get(place)) {
            cell.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    pub fn value(&self, at: [usize; N]) -> u64 {
        let cells = self.cells.all(self.meta.series(), 0);
        let cell = place(&self.meta, at).and_then(|place| cells.get(place));
        cell.map_or(0, |cell| cell.load(Ordering::Relaxed))
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
const fn number(count: u64) -> f64 {
    count as f64
}

impl<const N: usize> Family for Counter<N> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn samples(&self, line: &mut dyn FnMut(Sample<'_>)) {
        for (place, cell) in self.cells.all(self.meta.series(), 0).iter().enumerate() {
            let count = cell.load(Ordering::Relaxed);
            if count > 0 || !self.sparse {
                let values = self.meta.values(place);
                line(Sample { suffix: "", values: &values, bound: None, value: number(count) });
            }
        }
    }
}

/// What is told when somebody looks; a series that nobody told of is not shown.
pub struct Told<const N: usize> {
    meta: Meta,
    cells: Cells,
}

/// In a cell: nobody told. As a number it is none.
const UNTOLD: u64 = u64::MAX;

impl<const N: usize> Told<N> {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [Label; N],
        help: &'static str,
    ) -> Self {
        Self { meta: Meta { name, kind, labels, help }, cells: Cells::new() }
    }

    /// What it is now.
    pub fn tell(&self, at: [usize; N], value: f64) {
        let cells = self.cells.all(self.meta.series(), UNTOLD);
        if let Some(cell) = place(&self.meta, at).and_then(|place| cells.get(place)) {
            cell.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// The same for a count.
    pub fn count(&self, at: [usize; N], value: impl TryInto<u64>) {
        self.tell(at, value.try_into().map_or(f64::INFINITY, number));
    }
}

impl<const N: usize> Family for Told<N> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn samples(&self, line: &mut dyn FnMut(Sample<'_>)) {
        for (place, cell) in self.cells.all(self.meta.series(), UNTOLD).iter().enumerate() {
            let bits = cell.load(Ordering::Relaxed);
            if bits != UNTOLD {
                let (values, value) = (self.meta.values(place), f64::from_bits(bits));
                line(Sample { suffix: "", values: &values, bound: None, value });
            }
        }
    }
}

/// How long things take.
pub struct Histogram<const N: usize> {
    meta: Meta,
    /// Upper bounds of the buckets, in microseconds, rising.
    bounds: &'static [u64],
    /// Of each series: a cell for each bucket, one for what is beyond, and the sum in microseconds.
    cells: Cells,
}

impl<const N: usize> Histogram<N> {
    pub(super) const fn new(
        name: &'static str,
        labels: &'static [Label; N],
        bounds: &'static [u64],
        help: &'static str,
    ) -> Self {
        let meta = Meta { name, kind: Kind::Histogram, labels, help };
        Self { meta, bounds, cells: Cells::new() }
    }

    const fn width(&self) -> usize {
        self.bounds.len() + 2
    }

    fn cells(&self) -> &[AtomicU64] {
        self.cells.all(self.meta.series() * self.width(), 0)
    }

    /// Something took so many microseconds.
    pub fn micros(&self, at: [usize; N], micros: u64) {
        let Some(place) = place(&self.meta, at) else { return };
        let begins = place * self.width();
        let bucket = self.bounds.partition_point(|bound| *bound < micros);
        let cells = self.cells();
        if let (Some(bucket), Some(sum)) =
            (cells.get(begins + bucket), cells.get(begins + self.bounds.len() + 1))
        {
            bucket.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Something took so long.
    pub fn took(&self, at: [usize; N], time: Duration) {
        self.micros(at, u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 8));
    }
}

impl<const N: usize> Family for Histogram<N> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn samples(&self, line: &mut dyn FnMut(Sample<'_>)) {
        for (place, cells) in self.cells().chunks(self.width()).enumerate() {
            let cells: Vec<u64> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
            let Some((sum, buckets)) = cells.split_last() else { continue };
            let count: u64 = buckets.iter().sum();
            if count == 0 {
                continue;
            }
            let values = self.meta.values(place);
            let mut said = |suffix, bound, value| {
                line(Sample { suffix, values: &values, bound, value });
            };
            let mut below = 0;
            let bounds = self.bounds.iter().map(|micros| number(*micros) / 1e6);
            for (bound, bucket) in bounds.chain([f64::INFINITY]).zip(buckets) {
                below += bucket;
                said("_bucket", Some(bound), number(below));
            }
            said("_sum", None, number(*sum) / 1e6);
            said("_count", None, number(count));
        }
    }
}

macro_rules! described {
    ($($kind:ident),+) => {$(
        impl<const N: usize> std::fmt::Debug for $kind<N> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind)).field("meta", &self.meta).finish_non_exhaustive()
            }
        }
    )+};
}
described!(Counter, Told, Histogram);
