//! A mail as paragraphs and one button, written as plain text and as HTML that any reader shows.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A mail to one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    pub to: String,
    pub subject: String,
    pub paragraphs: Vec<String>,
    /// Names and values, such as the tool and the grant.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// What to do: a label and an address.
    #[serde(default)]
    pub button: Option<(String, String)>,
    /// Why the person gets this, and how to get no more.
    pub foot: String,
}

impl Letter {
    /// The plain text.
    pub(super) fn text(&self) -> String {
        let mut parts = self.paragraphs.clone();
        if !self.facts.is_empty() {
            let lines: Vec<String> =
                self.facts.iter().map(|(name, value)| format!("{name}: {}", line(value))).collect();
            parts.push(lines.join("\n"));
        }
        if let Some((label, address)) = &self.button {
            parts.push(format!("{label}:\n{address}"));
        }
        parts.push(format!("-- \n{}", self.foot));
        parts.join("\n\n") + "\n"
    }

    /// The HTML, with no image, script or address of anybody else's in it.
    pub(super) fn html(&self) -> String {
        // Writing to a String cannot fail.
        let mut body = String::new();
        for paragraph in &self.paragraphs {
            let _ = write!(body, "<p>{}</p>", escape(paragraph));
        }
        if !self.facts.is_empty() {
            body.push_str("<table cellpadding=\"4\">");
            for (name, value) in &self.facts {
                let (name, value) = (escape(name), escape(&line(value)));
                let _ = write!(
                    body,
                    "<tr><td style=\"color:#666\">{name}</td><td><strong>{value}</strong></td></tr>"
                );
            }
            body.push_str("</table>");
        }
        if let Some((label, address)) = &self.button {
            let (label, address) = (escape(label), escape(address));
            let _ = write!(
                body,
                "<p><a href=\"{address}\" style=\"display:inline-block;padding:10px 16px;background:#0f766e;color:#fff;text-decoration:none;border-radius:6px\">{label}</a></p>"
            );
        }
        let foot = escape(&self.foot);
        format!(
            "<!doctype html><html><body style=\"font-family:sans-serif;line-height:1.5\">{body}<p style=\"color:#666;font-size:13px\">{foot}</p></body></html>"
        )
    }
}

/// Values come from agents and servers: one line, no controls.
pub(super) fn line(text: &str) -> String {
    const MOST: usize = 200;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_values_is_text_and_each_fact_stays_on_its_line() {
        let letter = Letter {
            to: "ann@example.test".to_owned(),
            subject: "s".to_owned(),
            paragraphs: vec!["A call waits.".to_owned()],
            facts: vec![("Tool".to_owned(), "<img src=x>\nAgent: evil".to_owned())],
            button: Some(("Review".to_owned(), "https://a.example/approve/x?a=1&b=2".to_owned())),
            foot: "You are an approver.".to_owned(),
        };
        assert!(letter.text().contains("\nTool: <img src=x> Agent: evil\n"), "{}", letter.text());
        assert!(letter.text().contains("Review:\nhttps://a.example/approve/x?a=1&b=2\n"));
        let html = letter.html();
        assert!(html.contains("&lt;img src=x&gt; Agent: evil") && !html.contains("<img"), "{html}");
        assert!(html.contains("href=\"https://a.example/approve/x?a=1&amp;b=2\""), "{html}");
    }
}
