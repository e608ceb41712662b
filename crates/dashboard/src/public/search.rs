//! `/tools?q=`: the catalogue, searched.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sluice_control::catalogue::{Shelf, ShelfHit};

use crate::DashboardState;
use crate::catalogue::{ServerRow, ToolRow};
use crate::filters;
use crate::frame::PublicFrame;
use crate::next::encode;
use crate::page;
use crate::ui::text::count;
use crate::ui::{Field, Pages};
use crate::visitor::Visitor;

/// Rows on one page.
pub(crate) const PAGE: usize = 25;
/// No search looks at more hits than this.
const MOST: usize = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    q: String,
    #[serde(default)]
    page: Option<String>,
}

impl Input {
    /// What is searched for: at most 100 characters, trimmed.
    fn query(&self) -> String {
        self.q.trim().chars().take(100).collect()
    }

    fn page(&self) -> usize {
        page_number(self.page.as_deref())
    }
}

/// Anything but a number from 1 is page 1.
pub(crate) fn page_number(text: Option<&str>) -> usize {
    text.and_then(|text| text.parse().ok()).filter(|page| *page > 0).unwrap_or(1)
}

/// One page of `rows`, and the pager for it; `address` takes the page's number.
pub(crate) fn slice<T>(
    rows: Vec<T>,
    page: usize,
    noun: &str,
    address: impl Fn(usize) -> String,
) -> (Vec<T>, Pages) {
    let total = rows.len();
    let start = page.saturating_sub(1).saturating_mul(PAGE).min(total);
    let shown: Vec<T> = rows.into_iter().skip(start).take(PAGE).collect();
    let pager = pager((start, shown.len(), total), page, noun, address);
    (shown, pager)
}

/// The pager of a page that begins behind `start` rows and shows so many of all.
pub(crate) fn pager(
    (start, shown, total): (usize, usize, usize),
    page: usize,
    noun: &str,
    address: impl Fn(usize) -> String,
) -> Pages {
    let words = if total <= PAGE {
        count(total, noun, None)
    } else if shown == 0 {
        format!("Page {page} is past the end of {}", count(total, noun, None))
    } else {
        format!("{}–{} of {}", start + 1, start + shown, count(total, noun, None))
    };
    let previous = (page > 1 && total > 0).then(|| address((page - 1).min(total.div_ceil(PAGE))));
    let next = (start.saturating_add(shown) < total && shown > 0).then(|| address(page + 1));
    Pages { words, previous, next }
}

#[derive(Debug, Template)]
#[template(path = "public/search.html")]
struct SearchPage {
    frame: PublicFrame,
    query: String,
    field: Field,
    servers: Vec<ServerRow>,
    tools: Vec<ToolRow>,
    found: usize,
    pager: Pages,
}

/// What matches, best first; without a query every server and no tool.
fn find(shelf: &Shelf, query: &str) -> (Vec<ServerRow>, Vec<ToolRow>) {
    let (mut servers, mut tools) = (Vec::new(), Vec::new());
    for hit in shelf.search(query, MOST) {
        match hit {
            ShelfHit::Server(server) => servers.push(ServerRow::on_shelf(server)),
            ShelfHit::Tool(server, tool) => tools.push(ToolRow::on_shelf(server, tool)),
        }
    }
    (servers, tools)
}

/// All servers, one page of them.
fn every_server(shelf: &Shelf, page: usize) -> (Vec<ServerRow>, Pages) {
    let rows: Vec<_> = shelf.servers().iter().collect();
    let (rows, pager) = slice(rows, page, "server", |page| format!("/tools?page={page}"));
    (rows.into_iter().map(ServerRow::on_shelf).collect(), pager)
}

pub(crate) async fn html(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Query(input): Query<Input>,
) -> Response {
    let query = input.query();
    let shelf = state.control().shelf();
    let (found, servers, tools, pager) = if query.is_empty() {
        let (servers, pager) = every_server(&shelf, input.page());
        (shelf.servers().len(), servers, Vec::new(), pager)
    } else {
        let (servers, tools) = find(&shelf, &query);
        let found = servers.len() + tools.len();
        let address = |page| format!("/tools?q={}&page={page}", encode(&query));
        let (tools, pager) = slice(tools, input.page(), "tool", address);
        (found, servers.into_iter().take(PAGE).collect(), tools, pager)
    };
    let field = Field::new("search", "q", "Search the catalogue")
        .value(query.clone())
        .placeholder("executePython, files, payments…")
        .max(100);
    page::public(&SearchPage {
        frame: visitor.frame("tools", "/tools"),
        query,
        field,
        servers,
        tools,
        found,
        pager,
    })
}

/// For programs: the hits, or without a query one page of servers.
fn rows(shelf: &Shelf, input: &Input) -> (Vec<ServerRow>, Vec<ToolRow>) {
    let query = input.query();
    if query.is_empty() {
        return (every_server(shelf, input.page()).0, Vec::new());
    }
    find(shelf, &query)
}

pub(crate) async fn json(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Query(input): Query<Input>,
) -> Response {
    let shelf = state.control().shelf();
    let (servers, tools) = rows(&shelf, &input);
    let base = visitor.base();
    let servers: Vec<_> = servers
        .iter()
        .map(|server| {
            json!({"slug": server.slug, "name": server.owner_name, "title": server.title,
                "summary": server.summary, "url": format!("{base}{}", server.path)})
        })
        .collect();
    let tools: Vec<_> = tools.iter().map(|tool| tool_value(tool, base)).collect();
    page::json(&json!({"query": input.query(), "servers": servers, "tools": tools,
        "server_count": shelf.servers().len(), "tool_count": shelf.tools().len()}))
}

/// A tool in a list, for programs.
pub(crate) fn tool_value(tool: &ToolRow, base: &str) -> serde_json::Value {
    json!({"name": tool.name, "server": tool.server, "category": tool.category,
        "severity": tool.severity, "looks_poisoned": tool.poisoned, "url": format!("{base}{}", tool.path)})
}

#[derive(Debug, Template)]
#[template(path = "public/search.md")]
struct SearchText {
    base: String,
    query: String,
    servers: Vec<ServerRow>,
    tools: Vec<ToolRow>,
}

pub(crate) async fn markdown(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Query(input): Query<Input>,
) -> Response {
    let (servers, tools) = rows(&state.control().shelf(), &input);
    let base = visitor.base().to_owned();
    let text = SearchText { base, query: input.query(), servers, tools };
    page::text("text/markdown; charset=utf-8", text.render().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_filter_and_know_the_total() {
        let rows: Vec<usize> = (0..29).collect();
        let address = |page| format!("/tools?q=a&page={page}");
        let (shown, pager) = slice(rows.clone(), 2, "tool", address);
        assert_eq!(shown, [25, 26, 27, 28]);
        assert_eq!(pager.words, "26–29 of 29 tools");
        assert_eq!((pager.previous.as_deref(), pager.next), (Some("/tools?q=a&page=1"), None));
        let (shown, pager) = slice(rows, 99, "tool", address);
        assert!(shown.is_empty());
        assert_eq!(pager.previous.as_deref(), Some("/tools?q=a&page=2"));
        let (_, pager) = slice(Vec::<usize>::new(), 1, "tool", address);
        assert_eq!((pager.words.as_str(), pager.previous, pager.next), ("0 tools", None, None));
    }
}
