//! What templates may do to a value: only ways of showing it.

#![expect(
    unreachable_pub,
    clippy::inline_always,
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "made by `filter_fn`"
)]

use askama::{Result, Values};
use chrono::{DateTime, Utc};
use sluice_domain::{Category, Outcome, Severity};

use crate::ui::{self, Html};

/// A small value, however often a template's loops have borrowed it.
pub(crate) trait Plain<T> {
    fn plain(&self) -> T;
}

macro_rules! plain {
    ($($kind:ty),+) => { $(
        impl Plain<$kind> for $kind {
            fn plain(&self) -> $kind {
                *self
            }
        }
    )+ };
}
plain!(Category, Severity, Outcome, DateTime<Utc>, i64);

impl<T, P: Plain<T> + ?Sized> Plain<T> for &P {
    fn plain(&self) -> T {
        (**self).plain()
    }
}

/// An icon by name.
#[askama::filter_fn]
pub(crate) fn icon(name: &str, _: &dyn Values) -> Result<Html> {
    Ok(ui::icon(name))
}

/// A sentence with code between backticks.
#[askama::filter_fn]
pub(crate) fn ticks(text: impl AsRef<str>, _: &dyn Values) -> Result<Html> {
    Ok(ui::text::ticks(text.as_ref()))
}

/// A name that may be broken behind each `/`, and not only where the room ends.
#[askama::filter_fn]
pub(crate) fn slashes(text: impl AsRef<str>, _: &dyn Values) -> Result<Html> {
    Ok(Html(ui::escape(text.as_ref()).replace('/', "/<wbr>")))
}

/// Anybody's text on one line of Markdown, as text.
#[askama::filter_fn]
pub(crate) fn md(text: impl AsRef<str>, _: &dyn Values) -> Result<Html> {
    Ok(Html(ui::text::markdown_escaped(text.as_ref())))
}

/// A library's phrase as a sentence, its names as code.
#[askama::filter_fn]
pub(crate) fn sentence(text: impl AsRef<str>, _: &dyn Values) -> Result<Html> {
    Ok(ui::text::ticks(&crate::faults::sentence(text.as_ref())))
}

/// A number with thousands parted.
#[askama::filter_fn]
pub(crate) fn num(value: impl Plain<i64>, _: &dyn Values) -> Result<String> {
    Ok(ui::text::number(value.plain()))
}

/// An exact moment.
#[askama::filter_fn]
pub(crate) fn stamp(at: impl Plain<DateTime<Utc>>, _: &dyn Values) -> Result<Html> {
    Ok(ui::text::stamp(at.plain()))
}

/// A moment relative to the page's `now`.
#[askama::filter_fn]
pub(crate) fn ago(
    at: impl Plain<DateTime<Utc>>,
    _: &dyn Values,
    now: &DateTime<Utc>,
) -> Result<Html> {
    Ok(ui::text::stamp_ago(at.plain(), *now))
}

/// A category as icon, word and colour.
#[askama::filter_fn]
pub(crate) fn chip(category: impl Plain<Category>, _: &dyn Values) -> Result<Html> {
    let word = category.plain().as_str();
    let class = word.to_lowercase();
    Ok(Html(format!("<span class=\"chip c-{class}\">{}{word}</span>", ui::icon(&class))))
}

/// A severity as a bar of four steps and a word.
#[askama::filter_fn]
pub(crate) fn sev(severity: impl Plain<Severity>, _: &dyn Values) -> Result<Html> {
    let severity = severity.plain();
    let word = severity.as_str();
    let mut steps = String::new();
    for (at, step) in Severity::ALL.iter().enumerate() {
        let (class, x) = (if *step <= severity { "on" } else { "off" }, at * 8);
        let rect =
            format!("<rect class=\"{class}\" x=\"{x}\" width=\"6\" height=\"10\" rx=\"1\"/>");
        steps.push_str(&rect);
    }
    let class = word.to_lowercase();
    Ok(Html(format!(
        "<span class=\"sev sev-{class}\"><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\">{steps}</svg>{word}</span>"
    )))
}

/// An outcome as a mark and a word.
#[askama::filter_fn]
pub(crate) fn outcome(outcome: impl Plain<Outcome>, _: &dyn Values) -> Result<Html> {
    let outcome = outcome.plain();
    let (word, shape) = match outcome {
        Outcome::Allowed => {
            ("Allowed", "<circle cx=\"6\" cy=\"6\" r=\"4\" fill=\"currentColor\"/>")
        }
        Outcome::Limited => ("Limited", "<path d=\"M6 1.5 11 10.5H1z\" fill=\"currentColor\"/>"),
        Outcome::Denied => {
            ("Denied", "<path d=\"M3 3l6 6M9 3l-6 6\" stroke=\"currentColor\" stroke-width=\"2\"/>")
        }
        Outcome::Hidden => {
            ("Hidden", "<path d=\"M2.5 9.5l7-7\" stroke=\"currentColor\" stroke-width=\"2\"/>")
        }
        Outcome::Waiting => (
            "Waiting",
            "<circle cx=\"6\" cy=\"6\" r=\"4.5\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/><path d=\"M6 3.5V6l1.5 1\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/>",
        ),
        Outcome::Failed => (
            "Failed",
            "<circle cx=\"6\" cy=\"6\" r=\"4\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/>",
        ),
        Outcome::Rejected => (
            "Rejected",
            "<rect x=\"2.5\" y=\"2.5\" width=\"7\" height=\"7\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/>",
        ),
    };
    Ok(Html(format!(
        "<span class=\"mark m-{outcome}\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\">{shape}</svg>{word}</span>"
    )))
}
