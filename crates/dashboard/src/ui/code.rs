//! Code blocks, and JSON with its keys, strings and numbers told apart. Works on any text, so that a
//! document with a mistake in it can be shown as it was typed.

use std::fmt::Write as _;

use askama::Template;

use super::{Html, escape_into};

/// A block of code with a head and a copy button.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/code.html")]
pub(crate) struct Code {
    pub(crate) label: String,
    pub(crate) body: Html,
    /// Long lines wrap instead of scrolling.
    pub(crate) wrap: bool,
}

impl askama::filters::HtmlSafe for Code {}

impl Code {
    /// Plain text such as a command.
    pub(crate) fn text(label: &str, text: &str) -> Self {
        let mut body = String::new();
        escape_into(&mut body, text);
        Self { label: label.to_owned(), body: Html(body), wrap: false }
    }

    /// The same, with long lines wrapped.
    pub(crate) fn wrapped(label: &str, text: &str) -> Self {
        Self { wrap: true, ..Self::text(label, text) }
    }

    /// JSON, coloured.
    pub(crate) fn json(label: &str, text: &str) -> Self {
        let lines: Vec<String> = json_lines(text).into_iter().map(|line| line.0).collect();
        Self { label: label.to_owned(), body: Html(lines.join("\n")), wrap: false }
    }

    /// A value, printed over several lines.
    pub(crate) fn value(label: &str, value: &serde_json::Value) -> Self {
        Self::json(label, &pretty(value))
    }
}

/// A value printed for people: two spaces an indent, and characters that no screen shows written as `\u200b`, which
/// is the same JSON.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    if !text.contains(sluice_risk::is_invisible) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        if sluice_risk::is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// What is marked on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineMark {
    Warning,
    Error,
}

/// JSON with line numbers and marks.
#[derive(Debug, Template)]
#[template(path = "parts/json.html")]
pub(crate) struct JsonText {
    pub(crate) label: String,
    pub(crate) lines: Vec<(Html, &'static str)>,
}

impl askama::filters::HtmlSafe for JsonText {}

impl JsonText {
    /// `marks` holds line numbers from 1.
    pub(crate) fn new(label: &str, text: &str, marks: &[(u32, LineMark)]) -> Self {
        let class = |number: usize| {
            let of_line = |mark| marks.iter().any(|(n, m)| *n as usize == number && *m == mark);
            if of_line(LineMark::Error) {
                " l-err"
            } else if of_line(LineMark::Warning) {
                " l-warn"
            } else {
                ""
            }
        };
        let lines = json_lines(text)
            .into_iter()
            .enumerate()
            .map(|(at, line)| (line, class(at + 1)))
            .collect();
        Self { label: label.to_owned(), lines }
    }
}

/// Each line of a JSON text as markup.
pub(crate) fn json_lines(text: &str) -> Vec<Html> {
    text.lines().map(|line| Html(colour(line))).collect()
}

/// Tokens never span lines in JSON, so a line is coloured alone.
fn colour(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (class, length) = match first {
            '"' => {
                let length = string_length(rest);
                let key = rest[length..].trim_start().starts_with(':');
                (if key { "j-k" } else { "j-s" }, length)
            }
            '-' | '0'..='9' => {
                ("j-n", run(rest, |c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
            }
            c if c.is_ascii_alphabetic() => ("j-w", run(rest, |c| c.is_ascii_alphabetic())),
            '{' | '}' | '[' | ']' | ',' | ':' => ("j-p", 1),
            _ => ("", first.len_utf8()),
        };
        let (token, after) = rest.split_at(length);
        if class.is_empty() {
            escape_into(&mut out, token);
        } else {
            out.push_str("<span class=\"");
            out.push_str(class);
            out.push_str("\">");
            escape_into(&mut out, token);
            out.push_str("</span>");
        }
        rest = after;
    }
    out
}

fn run(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !wanted(c)).unwrap_or(text.len())
}

/// The length of a string token with its quotes; an open one reaches to the end of the line.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart_and_escaped() {
        let shown = colour(r#"  "a<b": "c\"d", 1e2, true"#);
        assert_eq!(
            shown,
            "  <span class=\"j-k\">&quot;a&lt;b&quot;</span><span class=\"j-p\">:</span> \
             <span class=\"j-s\">&quot;c\\&quot;d&quot;</span><span class=\"j-p\">,</span> \
             <span class=\"j-n\">1e2</span><span class=\"j-p\">,</span> <span class=\"j-w\">true</span>"
        );
    }

    #[test]
    fn text_that_is_not_json_is_shown_whole() {
        for text in ["\"open", "{\"a\": \"é\\", "☃ <script>", "\\\"", ""] {
            let shown = colour(text);
            assert!(!shown.contains("<script"), "{shown}");
            let plain = regex_free_text(&shown);
            assert_eq!(plain, text);
        }
    }

    fn regex_free_text(html: &str) -> String {
        let mut out = String::new();
        let mut inside = false;
        for c in html.chars() {
            match c {
                '<' => inside = true,
                '>' if inside => inside = false,
                _ if !inside => out.push(c),
                _ => {}
            }
        }
        out.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    #[test]
    fn marked_lines_carry_their_class() {
        let view = JsonText::new("x", "{\n1\n}", &[(2, LineMark::Error), (2, LineMark::Warning)]);
        assert_eq!(view.lines.iter().map(|l| l.1).collect::<Vec<_>>(), ["", " l-err", ""]);
    }

    #[test]
    fn what_no_screen_shows_is_spelt_out_and_stays_the_same_json() {
        let value = serde_json::json!({"a\u{200b}": "All\u{e0072} good \u{202e}x é\u{301}"});
        let shown = pretty(&value);
        assert!(shown.contains(r#""a\u200b": "All\udb40\udc72 good \u202ex é"#), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
