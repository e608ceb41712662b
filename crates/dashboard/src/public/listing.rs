//! `/risk/{severity}` and `/categories/{category}`: every tool of one kind.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sluice_domain::{Category, Severity};

use sluice_control::catalogue::ShelfTool;

use super::search::{PAGE, page_number, pager, tool_value};
use super::{Form, form};
use crate::DashboardState;
use crate::catalogue::ToolRow;
use crate::errors;
use crate::filters;
use crate::frame::PublicFrame;
use crate::page;
use crate::ui::{Html, Pages, text::ticks};
use crate::visitor::Visitor;

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    page: Option<String>,
}

/// What the list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Severity(Severity),
    Category(Category),
}

impl Kind {
    fn path(self) -> String {
        match self {
            Self::Severity(word) => format!("/risk/{}", word.as_str().to_lowercase()),
            Self::Category(word) => format!("/categories/{}", word.as_str().to_lowercase()),
        }
    }

    fn has(self, tool: &ShelfTool) -> bool {
        match self {
            Self::Severity(word) => tool.severity == word,
            Self::Category(word) => tool.category == word,
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Severity(Severity::Low) => {
                "A wrong call costs little: the tool reads, and changes nothing."
            }
            Self::Severity(Severity::Medium) => {
                "A wrong call changes something that can be changed back."
            }
            Self::Severity(Severity::High) => {
                "A wrong call can do what its caller never meant: run code, reach other systems, change who has access."
            }
            Self::Severity(Severity::Critical) => {
                "A wrong call cannot be taken back: something is deleted, or money moves."
            }
            Self::Category(Category::Read) => {
                "Read tools look things up. They are allowed as they are; what they return can still mislead an agent."
            }
            Self::Category(Category::Write) => {
                "Write tools create or change things. The recommended rule is 30 calls a minute per grant."
            }
            Self::Category(Category::Execute) => {
                "Execute tools run code or commands. The recommended rule is 10 calls a minute per grant."
            }
            Self::Category(Category::Destructive) => {
                "Destructive tools remove things for good. The recommended rule hides them."
            }
            Self::Category(Category::Financial) => {
                "Financial tools move money. The recommended rule lets a person approve each call."
            }
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "public/listing.html")]
struct ListingPage {
    frame: PublicFrame,
    title: String,
    about: Html,
    kind: Kind,
    path: String,
    rows: Vec<ToolRow>,
    pager: Pages,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the template's loops borrow")]
impl ListingPage {
    fn current_severity(&self, word: &Severity) -> bool {
        self.kind == Kind::Severity(*word)
    }

    fn current_category(&self, word: &Category) -> bool {
        self.kind == Kind::Category(*word)
    }
}

#[derive(Debug, Template)]
#[template(path = "public/listing.md")]
struct ListingText {
    base: String,
    title: String,
    about: &'static str,
    rows: Vec<ToolRow>,
    pager: Pages,
}

fn show(
    state: &DashboardState,
    visitor: Visitor,
    (kind, wanted): (Kind, Form),
    page: Option<&str>,
) -> Response {
    let (path, page) = (kind.path(), page_number(page));
    let shelf = state.control().shelf();
    let skip = page.saturating_sub(1).saturating_mul(PAGE);
    let (total, tools) = shelf.tools_where(|tool| kind.has(tool), skip, PAGE);
    let rows = ToolRow::all(&shelf, &tools);
    let pager =
        pager((skip, rows.len(), total), page, "tool", |page| format!("{path}?page={page}"));
    let title = match kind {
        Kind::Severity(word) => format!("Tools of {} severity", word.as_str().to_lowercase()),
        Kind::Category(word) => format!("{word} tools"),
    };
    match wanted {
        Form::Json => {
            let base = visitor.base();
            let tools: Vec<_> = rows.iter().map(|row| tool_value(row, base)).collect();
            let next = pager.next.map(|_| page + 1);
            page::json(&serde_json::json!({"title": title, "total": total, "page": page,
                "next_page": next, "tools": tools}))
        }
        Form::Markdown => {
            let base = visitor.base().to_owned();
            let text = ListingText { base, title, about: kind.about(), rows, pager };
            page::text("text/markdown; charset=utf-8", text.render().unwrap_or_default())
        }
        Form::Html => {
            let frame = visitor.frame("tools", &path);
            let about = ticks(kind.about());
            page::public(&ListingPage { frame, title, about, kind, path, rows, pager })
        }
    }
}

/// Both read their word in lower case.
fn word<T: Copy + std::fmt::Display>(all: &[T], text: &str) -> Option<T> {
    all.iter().copied().find(|word| word.to_string().to_lowercase() == text)
}

pub(crate) async fn risk(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path(text): Path<String>,
    Query(input): Query<Input>,
) -> Response {
    let (text, wanted) = form(&text);
    match word(Severity::ALL, text) {
        Some(word) => show(&state, visitor, (Kind::Severity(word), wanted), input.page.as_deref()),
        None => errors::not_found(visitor).into_response(),
    }
}

pub(crate) async fn category(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path(text): Path<String>,
    Query(input): Query<Input>,
) -> Response {
    let (text, wanted) = form(&text);
    match word(Category::ALL, text) {
        Some(word) => show(&state, visitor, (Kind::Category(word), wanted), input.page.as_deref()),
        None => errors::not_found(visitor).into_response(),
    }
}
