//! The parts that pages are built from. Each is a small template of its own, rendered once here and
//! shown on `/styleguide`; none knows a page.

mod charts;
pub(crate) mod code;
mod diff;
mod fields;
mod icons;
mod parts;
pub(crate) mod qr;
pub(crate) mod text;

use std::fmt;

pub(crate) use charts::{Bars, BarsDay};
pub(crate) use code::{Code, JsonText, LineMark};
pub(crate) use diff::Diff;
pub(crate) use fields::{Entry, Field, Select};
pub(crate) use icons::icon;
pub(crate) use parts::{
    Bridge, Empty, Export, Flash, Pager, Pages, Sentence, Sentences, Steps, Tab, Tabs, TokenBox,
    Tone, Trace, TraceRow, TraceState,
};

/// Markup that is escaped already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(pub(crate) String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

/// Escapes text for an element or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(&mut out, text);
    out
}

/// Appends escaped text.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Direction overrides would let a name rearrange the text around it.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                out.push_str("<span class=\"bad\">\u{fffd}</span>");
            }
            _ => out.push(c),
        }
    }
}
