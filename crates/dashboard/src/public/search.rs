//! `/tools?q=`: the catalogue, searched.

use askama::Template;
use axum::extract::Query;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sluice_risk::catalogue::search;

use crate::catalogue::{self, CatalogueServer, CatalogueTool};
use crate::filters;
use crate::frame::PublicFrame;
use crate::next::encode;
use crate::page;
use crate::ui::text::count;
use crate::ui::{Field, Pager};
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
) -> (Vec<T>, Pager) {
    let total = rows.len();
    let start = page.saturating_sub(1).saturating_mul(PAGE).min(total);
    let shown: Vec<T> = rows.into_iter().skip(start).take(PAGE).collect();
    let words = if total <= PAGE {
        count(total, noun, None)
    } else if shown.is_empty() {
        format!("Page {page} is past the end of {}", count(total, noun, None))
    } else {
        format!("{}–{} of {}", start + 1, start + shown.len(), count(total, noun, None))
    };
    let previous = (page > 1 && total > 0).then(|| address((page - 1).min(total.div_ceil(PAGE))));
    let next = (start + shown.len() < total).then(|| address(page + 1));
    (shown, Pager { words, previous, next })
}

#[derive(Debug, Template)]
#[template(path = "public/search.html")]
struct SearchPage {
    frame: PublicFrame,
    query: String,
    field: Field,
    servers: Vec<&'static CatalogueServer>,
    tools: Vec<(&'static CatalogueServer, &'static CatalogueTool)>,
    found: usize,
    pager: Pager,
}

/// What matches, best first; without a query every server and no tool.
fn find(
    query: &str,
) -> (Vec<&'static CatalogueServer>, Vec<(&'static CatalogueServer, &'static CatalogueTool)>) {
    if query.is_empty() {
        return (catalogue::servers().iter().collect(), Vec::new());
    }
    let (mut servers, mut tools) = (Vec::new(), Vec::new());
    for hit in search(query, MOST) {
        let Some(server) = catalogue::server(&hit.server.slug) else { continue };
        match hit.tool {
            None => servers.push(server),
            Some(tool) => tools.extend(server.tool(&tool.name).map(|tool| (server, tool))),
        }
    }
    (servers, tools)
}

pub(crate) async fn html(visitor: Visitor, Query(input): Query<Input>) -> Response {
    let query = input.query();
    let (servers, tools) = find(&query);
    let found = servers.len() + tools.len();
    let address = |page| format!("/tools?q={}&page={page}", encode(&query));
    let (tools, pager) = slice(tools, input.page(), "tool", address);
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

pub(crate) async fn json(visitor: Visitor, Query(input): Query<Input>) -> Response {
    let (servers, tools) = find(&input.query());
    let base = visitor.base();
    let servers: Vec<_> = servers
        .iter()
        .map(|server| {
            json!({"slug": server.entry.slug, "name": server.entry.owner_name, "title": server.entry.title,
                "summary": server.entry.summary, "url": format!("{base}{}", server.path())})
        })
        .collect();
    let tools: Vec<_> = tools
        .iter()
        .map(|(server, tool)| {
            json!({"name": tool.definition.name, "server": server.entry.slug,
                "category": tool.rating.category, "severity": tool.rating.severity,
                "url": format!("{base}{}", tool.path(server))})
        })
        .collect();
    page::json(&json!({"query": input.query(), "servers": servers, "tools": tools}))
}

#[derive(Debug, Template)]
#[template(path = "public/search.md")]
struct SearchText {
    base: String,
    query: String,
    servers: Vec<&'static CatalogueServer>,
    tools: Vec<(&'static CatalogueServer, &'static CatalogueTool)>,
}

pub(crate) async fn markdown(visitor: Visitor, Query(input): Query<Input>) -> Response {
    let query = input.query();
    let (servers, tools) = find(&query);
    let base = visitor.base().to_owned();
    let text = SearchText { base, query, servers, tools };
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
