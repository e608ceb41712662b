//! Stacked bars a day, as inline SVG with the same numbers in a table.

use std::fmt::Write;

use askama::Template;

use super::{Html, escape};
use crate::filters;

/// One day's calls by outcome.
#[derive(Debug, Clone)]
pub(crate) struct BarsDay {
    pub(crate) label: String,
    pub(crate) href: String,
    pub(crate) allowed: i64,
    pub(crate) limited: i64,
    pub(crate) denied: i64,
    pub(crate) other: i64,
}

impl BarsDay {
    fn total(&self) -> i64 {
        self.allowed + self.limited + self.denied + self.other
    }
}

/// Days side by side.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/bars.html")]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) days: Vec<BarsDay>,
}

impl askama::filters::HtmlSafe for Bars {}

const HEIGHT: i64 = 132;
const FLOOR: i64 = 148;
const STEP: i64 = 92;
const BAR: i64 = 44;

impl Bars {
    fn width(&self) -> i64 {
        STEP * i64::try_from(self.days.len()).unwrap_or(1).max(1)
    }

    /// The bars; presentation attributes only, since the page's policy forbids inline style.
    fn svg(&self) -> Html {
        let most = self.days.iter().map(BarsDay::total).max().unwrap_or(0).max(1);
        let mut out = String::new();
        for (at, day) in self.days.iter().enumerate() {
            let left = STEP * i64::try_from(at).unwrap_or(0) + (STEP - BAR) / 2;
            let mut top = FLOOR;
            let parts = [
                (day.allowed, "allowed"),
                (day.limited, "limited"),
                (day.denied, "denied"),
                (day.other, "waiting"),
            ];
            for (value, class) in parts.into_iter().filter(|(value, _)| *value > 0) {
                // At least two units, so that one refusal among thousands is seen.
                let height = (value * HEIGHT / most).max(2);
                top -= height;
                let _ = write!(
                    out,
                    "<rect class=\"b-{class}\" x=\"{left}\" y=\"{top}\" width=\"{BAR}\" height=\"{height}\"/>"
                );
            }
            let middle = left + BAR / 2;
            let _ = write!(
                out,
                "<text x=\"{middle}\" y=\"166\" text-anchor=\"middle\">{}</text>",
                escape(&day.label)
            );
        }
        Html(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_refusal_among_thousands_is_still_drawn() {
        let day = BarsDay {
            label: "Mon".to_owned(),
            href: "/x".to_owned(),
            allowed: 90_000,
            limited: 0,
            denied: 1,
            other: 0,
        };
        let bars = Bars { title: "Calls".to_owned(), days: vec![day] };
        let html = bars.to_string();
        assert!(html.contains("class=\"b-denied\"") && html.contains("height=\"2\""), "{html}");
        assert!(html.contains("90,000"), "the table twin has the number: {html}");
        assert!(!html.contains("style="));
    }
}
