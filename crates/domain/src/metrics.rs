//! Every metric of Sluice. This list is all there is: `/metrics` and the page `/docs/metrics` are made from it.
//!
//! A label's values are a list in the code, so there are only as many series as the lists say, and counting is one
//! atomic addition at a known place: no lookup, no formatting, no allocation, no lock.

mod cells;
mod list;
mod text;

pub use cells::{Counter, Histogram, Kind, Label, Meta, Told};
pub use list::*;
pub use text::{exposition, page};

/// A metric of any kind.
pub trait Family: Sync {
    /// What it is.
    fn meta(&self) -> &Meta;

    /// Calls `line` for each sample: what follows the name (`_bucket` and the like), the labels' values,
    /// a histogram's bound, and the value.
    fn samples(&self, line: &mut dyn FnMut(Sample<'_>));
}

/// One line of `/metrics`.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub suffix: &'static str,
    /// One of each label.
    pub values: &'a [&'static str],
    /// The upper bound of a bucket, in seconds; infinite for the last.
    pub bound: Option<f64>,
    pub value: f64,
}

#[cfg(test)]
mod tests;
