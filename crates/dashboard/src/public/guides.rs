//! `/guides` and `/guides/{slug}`: short texts from the risk crate.

use std::fmt::Write as _;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};
use sluice_risk::{Guide, guides};

use super::{Form, form};
use crate::filters;
use crate::frame::PublicFrame;
use crate::markdown::{self, Text};
use crate::visitor::Visitor;
use crate::{errors, page};

#[derive(Debug, Template)]
#[template(path = "public/guides.html")]
struct GuidesPage {
    frame: PublicFrame,
    guides: &'static [Guide],
}

#[derive(Debug, Template)]
#[template(path = "public/guide.html")]
struct GuidePage {
    frame: PublicFrame,
    guide: &'static Guide,
    text: Text,
    others: Vec<&'static Guide>,
}

pub(crate) async fn list(visitor: Visitor) -> Response {
    page::public(&GuidesPage { frame: visitor.frame("docs", "/guides"), guides: guides() })
}

/// `/guides.md`
pub(crate) async fn list_text(visitor: Visitor) -> Response {
    let base = visitor.base();
    let mut text = String::from("# Guides\n\n");
    for guide in guides() {
        let _ = writeln!(
            text,
            "- [{}]({base}/guides/{}.md): {}",
            guide.title, guide.slug, guide.summary
        );
    }
    page::text("text/markdown; charset=utf-8", text)
}

fn value(guide: &Guide, base: &str) -> Value {
    json!({"slug": guide.slug, "title": guide.title, "summary": guide.summary,
        "url": format!("{base}/guides/{}", guide.slug)})
}

/// `/guides.json`
pub(crate) async fn list_value(visitor: Visitor) -> Response {
    let all: Vec<Value> = guides().iter().map(|guide| value(guide, visitor.base())).collect();
    page::json(&json!({"guides": all}))
}

pub(crate) async fn get(visitor: Visitor, Path(slug): Path<String>) -> Response {
    let (slug, wanted) = form(&slug);
    let Some(guide) = guides().iter().find(|guide| guide.slug == slug) else {
        return errors::not_found(visitor);
    };
    match wanted {
        Form::Markdown => {
            let text = format!("# {}\n\n{}", guide.title, guide.markdown);
            return page::text("text/markdown; charset=utf-8", text);
        }
        Form::Json => {
            let mut value = value(guide, visitor.base());
            value["markdown"] = guide.markdown.into();
            return page::json(&value);
        }
        Form::Html => {}
    }
    page::public(&GuidePage {
        frame: visitor.frame("docs", &format!("/guides/{slug}")),
        guide,
        text: markdown::render(guide.markdown),
        others: guides().iter().filter(|other| other.slug != slug).collect(),
    })
}
