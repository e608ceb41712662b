//! `/guides` and `/guides/{slug}`: short texts from the risk crate.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use sluice_risk::{Guide, guides};

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

pub(crate) async fn get(visitor: Visitor, Path(slug): Path<String>) -> Response {
    let Some(guide) = guides().iter().find(|guide| guide.slug == slug) else {
        return errors::not_found(visitor);
    };
    page::public(&GuidePage {
        frame: visitor.frame("docs", &format!("/guides/{slug}")),
        guide,
        text: markdown::render(guide.markdown),
        others: guides().iter().filter(|other| other.slug != slug).collect(),
    })
}
