//! `/docs`: the handbook, from `crates/dashboard/docs/*.md`.

pub(crate) mod find;
pub(crate) mod pages;

use std::fmt::Write as _;
use std::sync::LazyLock;

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::Response;
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde_json::{Value, json};

use self::find::{Hit, find};
use self::pages::{Picture, picture};
use super::{Form, form};
use crate::filters;
use crate::frame::PublicFrame;
use crate::markdown::{self, Text};
use crate::visitor::Visitor;
use crate::{errors, page};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/docs");

/// Reading order; a page not named here comes at the end.
const ORDER: &[&str] = &[
    "quickstart",
    "dashboard",
    "servers",
    "grants",
    "clients",
    "editor",
    "policy",
    "policy-as-code",
    "limits",
    "approvals",
    "logs",
    "catalogue",
    "grades",
    "scan",
    "roles",
    "api",
    "protocol",
    "security",
    "operate",
    "deploy",
    "metrics",
];

/// One page of the handbook.
#[derive(Debug)]
pub(crate) struct DocPage {
    pub(crate) slug: String,
    pub(crate) text: Text,
    markdown: String,
}

/// Stands in the page of metrics for the list in the code.
const METRICS: &str = "<!-- every metric -->\n";

/// Stands in the page of the API for the list in the code.
const CODES: &str = "<!-- every problem code -->\n";

static PAGES: LazyLock<Vec<DocPage>> = LazyLock::new(|| {
    let mut pages: Vec<DocPage> = FILES
        .files()
        .filter_map(|file| {
            let slug = file.path().file_stem()?.to_str()?.to_owned();
            let markdown = file
                .contents_utf8()?
                .replace(METRICS, &sluice_domain::metrics::page())
                .replace(CODES, &sluice_control::codes::page());
            Some(DocPage { slug, text: markdown::render(&markdown), markdown })
        })
        .collect();
    let place =
        |page: &DocPage| ORDER.iter().position(|slug| *slug == page.slug).unwrap_or(ORDER.len());
    pages.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.slug.cmp(&b.slug)));
    pages
});

/// Every page, in reading order.
pub(crate) fn pages() -> &'static [DocPage] {
    &PAGES
}

#[derive(Debug, Template)]
#[template(path = "docs/list.html")]
struct ListPage {
    frame: PublicFrame,
    pages: &'static [DocPage],
    /// What is looked for.
    q: String,
    hits: Vec<Hit>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    q: String,
}

#[derive(Debug, Template)]
#[template(path = "docs/page.html")]
struct TextPage {
    frame: PublicFrame,
    pages: &'static [DocPage],
    page: &'static DocPage,
    next: Option<&'static DocPage>,
    picture: Option<&'static Picture>,
}

pub(crate) async fn list(visitor: Visitor, Query(input): Query<Input>) -> Response {
    page::public(&ListPage {
        frame: visitor.frame("docs", "/docs"),
        pages: pages(),
        hits: find(&input.q),
        q: input.q.trim().chars().take(100).collect(),
    })
}

/// `/docs.md`
pub(crate) async fn list_text(visitor: Visitor) -> Response {
    let base = visitor.base();
    let mut text = String::from("# Docs\n\n");
    for page in pages() {
        let DocPage { slug, text: shown, .. } = page;
        let _ = writeln!(text, "- [{}]({base}/docs/{slug}.md): {}", shown.title, shown.summary);
    }
    page::text("text/markdown; charset=utf-8", text)
}

/// `/docs.json`
pub(crate) async fn list_value(visitor: Visitor) -> Response {
    let base = visitor.base();
    let value = |page: &DocPage| {
        json!({"slug": page.slug, "title": page.text.title, "summary": page.text.summary,
            "url": format!("{base}/docs/{}", page.slug)})
    };
    let all: Vec<Value> = pages().iter().map(value).collect();
    page::json(&json!({"pages": all}))
}

pub(crate) async fn get(visitor: Visitor, Path(slug): Path<String>) -> Response {
    if slug == "policy.schema.json" {
        return page::json(&sluice_policy::json_schema());
    }
    let (name, wanted) = form(&slug);
    let Some(at) = pages().iter().position(|page| page.slug == name) else {
        return errors::not_found(visitor);
    };
    let doc = &pages()[at];
    match wanted {
        Form::Markdown => {
            return page::text("text/markdown; charset=utf-8", doc.markdown.clone());
        }
        Form::Json => {
            return page::json(&json!({"slug": doc.slug, "title": doc.text.title,
                "summary": doc.text.summary, "markdown": doc.markdown}));
        }
        Form::Html => {}
    }
    page::public(&TextPage {
        frame: visitor.frame("docs", &format!("/docs/{name}")),
        pages: pages(),
        page: doc,
        next: pages().get(at + 1),
        picture: picture(&doc.slug),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_problem_has_its_anchor() {
        let api = pages().iter().find(|page| page.slug == "api").expect("the page");
        let mut count = 0;
        for (code, _) in sluice_control::codes::GROUPS.iter().flat_map(|(_, codes)| *codes) {
            let anchor = format!("<a id=\"{code}\" href=\"#{code}\">");
            assert_eq!(api.text.body.0.matches(&anchor).count(), 1, "{code}");
            count += 1;
        }
        assert_eq!(api.text.body.0.matches("<a id=").count(), count);
    }
}
