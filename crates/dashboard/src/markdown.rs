//! Markdown to HTML for our own texts. Raw HTML in them is shown, not run.

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use crate::ui::code::json_lines;
use crate::ui::{Html, escape};

/// A rendered text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    /// The first heading, without markup.
    pub(crate) title: String,
    /// The first paragraph, without markup.
    pub(crate) summary: String,
    /// Everything after the first heading.
    pub(crate) body: Html,
    /// Second-level headings: anchor and words.
    pub(crate) sections: Vec<(String, String)>,
}

/// Renders a text.
pub(crate) fn render(markdown: &str) -> Text {
    let events: Vec<Event<'_>> =
        Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
            .map(harmless)
            .collect();
    let mut text = Text::default();
    let mut out = Vec::with_capacity(events.len() + 16);
    let mut at = 0;
    while at < events.len() {
        match &events[at] {
            Event::Start(Tag::Heading { level, .. }) => {
                let end = find_end(&events, at);
                let words = plain(&events[at..end]);
                if *level == HeadingLevel::H1 {
                    text.title = words;
                } else {
                    push_heading(&mut out, &mut text, *level, &words, &events[at + 1..end]);
                }
                at = end;
            }
            Event::Start(Tag::Link { dest_url, .. }) if dest_url.starts_with('#') => {
                let end = find_end(&events, at);
                let words = plain(&events[at..end]);
                out.push(if dest_url[1..] == words && is_word(&words) {
                    // A link to itself is its own anchor.
                    Event::Html(format!("<a id=\"{words}\" href=\"#{words}\">").into())
                } else {
                    events[at].clone()
                });
            }
            Event::Start(Tag::Table(_)) => {
                out.push(raw("<div class=\"table-scroll\">"));
                out.push(events[at].clone());
            }
            Event::End(TagEnd::Table) => {
                out.push(events[at].clone());
                out.push(raw("</div>"));
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let end = find_end(&events, at);
                out.push(Event::Html(code_block(kind, &plain(&events[at..end])).into()));
                at = end;
            }
            Event::Start(Tag::Paragraph) if text.summary.is_empty() => {
                let end = find_end(&events, at);
                text.summary = plain(&events[at..end]);
                out.push(events[at].clone());
            }
            event => out.push(event.clone()),
        }
        at += 1;
    }
    let mut body = String::new();
    html::push_html(&mut body, out.into_iter());
    text.body = Html(body);
    text
}

/// A block of code. JSON is coloured; test cases of the documents around them fold away.
fn code_block(kind: &CodeBlockKind<'_>, code: &str) -> String {
    let info = match kind {
        CodeBlockKind::Fenced(info) => info.as_ref(),
        CodeBlockKind::Indented => "",
    };
    let mut words = info.split_whitespace();
    let body = match words.next() {
        Some("json" | "jsonc") => {
            let lines: Vec<String> = json_lines(code).into_iter().map(|line| line.0).collect();
            lines.join("\n")
        }
        _ => escape(code.trim_end()),
    };
    if words.any(|word| word == "cases") {
        format!(
            "<details><summary>What becomes of calls under it</summary><pre><code>{body}</code></pre></details>\n"
        )
    } else {
        format!("<pre><code>{body}</code></pre>\n")
    }
}

fn raw(html: &'static str) -> Event<'static> {
    Event::Html(CowStr::Borrowed(html))
}

/// HTML becomes text; links go to pages here, to anchors or to the web.
fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let fine =
                ["/", "#", "https://", "http://"].iter().any(|start| dest_url.starts_with(start));
            let dest_url = if fine { dest_url } else { CowStr::Borrowed("#") };
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        event => event,
    }
}

/// The index of the event that ends the block begun at `at`.
fn find_end(events: &[Event<'_>], at: usize) -> usize {
    let Event::Start(tag) = &events[at] else { return at };
    let wanted = Event::End(tag.to_end());
    events[at..].iter().position(|event| *event == wanted).map_or(events.len() - 1, |n| at + n)
}

fn plain(events: &[Event<'_>]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            Event::SoftBreak | Event::HardBreak => Some(" "),
            _ => None,
        })
        .collect()
}

fn push_heading<'a>(
    out: &mut Vec<Event<'a>>,
    text: &mut Text,
    level: HeadingLevel,
    words: &str,
    inner: &[Event<'a>],
) {
    let anchor = anchor(words);
    let number = if level == HeadingLevel::H2 { 2 } else { 3 };
    if number == 2 {
        text.sections.push((anchor.clone(), words.to_owned()));
    }
    out.push(Event::Html(format!("<h{number} id=\"{anchor}\">").into()));
    out.extend(inner.iter().cloned());
    out.push(Event::Html(format!("</h{number}>\n").into()));
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Lower case, everything else a hyphen.
fn anchor(words: &str) -> String {
    let mut out = String::new();
    for c in words.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_and_odd_links_do_nothing() {
        let text =
            render("# T\n\n<img src=x onerror=alert(1)> a <b>c</b> [x](javascript:alert(1))\n");
        assert!(!text.body.0.contains("<img") && !text.body.0.contains("<b>"), "{}", text.body.0);
        assert!(!text.body.0.contains("javascript:"), "{}", text.body.0);
    }

    #[test]
    fn code_is_escaped_and_coloured_and_cases_fold_away() {
        let text = render(
            "# T\n\n```json example\n{\"a\": \"<b>\"}\n```\n\n```json cases\n{}\n```\n\n```sh\na && b\n```\n",
        );
        assert!(
            text.body.0.contains("<span class=\"j-s\">&quot;&lt;b&gt;&quot;</span>"),
            "{}",
            text.body.0
        );
        assert_eq!(text.body.0.matches("<details>").count(), 1);
        assert!(text.body.0.contains("<pre><code>a &amp;&amp; b</code></pre>"), "{}", text.body.0);
    }

    #[test]
    fn headings_have_anchors_and_the_title_stands_apart() {
        let text = render(
            "# The `title`\n\nFirst *words*\nhere.\n\n## A `b` c!\n\ntext\n\n| a |\n|---|\n| 1 |\n",
        );
        assert_eq!(
            (text.title.as_str(), text.summary.as_str()),
            ("The title", "First words here.")
        );
        assert_eq!(text.sections, [("a-b-c".to_owned(), "A b c!".to_owned())]);
        assert!(
            text.body.0.contains("<h2 id=\"a-b-c\">A <code>b</code> c!</h2>"),
            "{}",
            text.body.0
        );
        assert!(text.body.0.contains("<div class=\"table-scroll\"><table>"), "{}", text.body.0);
    }
}
