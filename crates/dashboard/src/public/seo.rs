//! `/llms.txt`, `/sitemap.xml`, `/robots.txt`.

use std::fmt::Write;

use axum::extract::{Path, State};
use axum::response::Response;
use sluice_control::catalogue::Shelf;
use sluice_domain::{Category, Severity};
use sluice_risk::{attacks, guides};

use super::docs;
use crate::DashboardState;
use crate::catalogue;
use crate::next::segment;
use crate::ui::escape;
use crate::visitor::Visitor;
use crate::{errors, page};

/// Addresses of one sitemap: the protocol allows 50,000.
const PART: usize = 45_000;

/// Every public page's path, in the order of the site; the catalogue's come last.
pub(crate) fn paths(shelf: &Shelf) -> impl Iterator<Item = String> + '_ {
    let mut paths = vec!["/".to_owned(), "/tools".to_owned()];
    paths.extend(Severity::ALL.iter().map(|s| format!("/risk/{}", s.as_str().to_lowercase())));
    paths
        .extend(Category::ALL.iter().map(|c| format!("/categories/{}", c.as_str().to_lowercase())));
    paths.push("/attacks".to_owned());
    paths.extend(attacks().iter().map(|attack| format!("/attacks/{}", attack.slug)));
    paths.push("/guides".to_owned());
    paths.extend(guides().iter().map(|guide| format!("/guides/{}", guide.slug)));
    paths.push("/docs".to_owned());
    paths.extend(docs::pages().iter().map(|page| format!("/docs/{}", page.slug)));
    let servers = shelf.servers().iter().map(|server| format!("/tools/{}", server.slug));
    let tools = shelf
        .tools()
        .iter()
        .map(|tool| format!("/tools/{}/{}", shelf.server_of(tool).slug, segment(&tool.name)));
    paths.into_iter().chain(servers).chain(tools)
}

/// One sitemap, or where there are too many addresses for one, the list of its parts.
pub(crate) async fn sitemap(State(state): State<DashboardState>) -> Response {
    let shelf = state.control().shelf();
    let total = paths(&shelf).count();
    page::text("application/xml; charset=utf-8", whole(&shelf, state.base(), total, PART))
}

fn whole(shelf: &Shelf, base: &str, total: usize, most: usize) -> String {
    if total <= most {
        return part(shelf, base, 0, most);
    }
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for number in 1..=total.div_ceil(most) {
        let _ =
            writeln!(body, "<sitemap><loc>{}/sitemaps/{number}.xml</loc></sitemap>", escape(base));
    }
    body.push_str("</sitemapindex>\n");
    body
}

fn part(shelf: &Shelf, base: &str, skip: usize, most: usize) -> String {
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for path in paths(shelf).skip(skip).take(most) {
        let _ = writeln!(body, "<url><loc>{}{}</loc></url>", escape(base), escape(&path));
    }
    body.push_str("</urlset>\n");
    body
}

/// `/sitemaps/{number}.xml`
pub(crate) async fn sitemap_part(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path(name): Path<String>,
) -> Response {
    let number = name.strip_suffix(".xml").and_then(|number| number.parse::<usize>().ok());
    let shelf = state.control().shelf();
    match number.and_then(|number| number.checked_sub(1)?.checked_mul(PART)) {
        Some(skip) if skip < paths(&shelf).count() => {
            page::text("application/xml; charset=utf-8", part(&shelf, state.base(), skip, PART))
        }
        _ => errors::not_found(visitor),
    }
}

pub(crate) async fn robots(State(state): State<DashboardState>) -> Response {
    let body = format!(
        "User-agent: *\nDisallow: /w/\nDisallow: /start\nDisallow: /theme\nDisallow: /mcp/\nDisallow: /api/\n\nSitemap: {}/sitemap.xml\n",
        state.base()
    );
    page::text("text/plain; charset=utf-8", body)
}

pub(crate) async fn llms(State(state): State<DashboardState>) -> Response {
    let base = state.base();
    let mut body = String::from(
        "# Sluice\n\n> Sluice stands between AI agents and the MCP servers they use. Every tool call is decided by a policy, counted against limits, and logged.\n\n## Docs\n\n",
    );
    for page in docs::pages() {
        let _ = writeln!(
            body,
            "- [{}]({base}/docs/{}.md): {}",
            page.text.title, page.slug, page.text.summary
        );
    }
    let _ = writeln!(
        body,
        "- [Policy JSON Schema]({base}/docs/policy.schema.json)\n- [REST API (OpenAPI)]({base}/api/v1/openapi.json)\n\n## Catalogue\n"
    );
    for server in catalogue::servers() {
        let entry = &server.entry;
        let _ = writeln!(
            body,
            "- [{}]({base}{}.md): {}",
            entry.owner_name,
            server.path(),
            entry.summary
        );
    }
    let shelf = state.control().shelf();
    let _ = writeln!(
        body,
        "\nIn all {} servers and {} tools: search them at {base}/tools.json?q=… or {base}/tools.md?q=…, and read \
         {base}/tools/{{server}}.md and {base}/tools/{{server}}/{{tool}}.md.",
        shelf.servers().len(),
        shelf.tools().len()
    );
    body.push_str("\n## Attacks\n\n");
    for attack in attacks() {
        let _ = writeln!(
            body,
            "- [{}]({base}/attacks/{}.md): {}",
            attack.title, attack.slug, attack.summary
        );
    }
    body.push_str("\n## Guides\n\n");
    for guide in guides() {
        let _ = writeln!(
            body,
            "- [{}]({base}/guides/{}.md): {}",
            guide.title, guide.slug, guide.summary
        );
    }
    page::text("text/plain; charset=utf-8", body)
}

#[cfg(test)]
mod tests {
    use sluice_control::catalogue::Shelf;

    use super::*;

    #[test]
    fn a_sitemap_that_is_too_long_is_a_list_of_parts_that_hold_every_path_once() {
        let shelf = Shelf::starter();
        let all: Vec<String> = paths(&shelf).collect();
        assert!(whole(&shelf, "https://a.example", all.len(), PART).contains("<urlset"));
        let index = whole(&shelf, "https://a.example", all.len(), 70);
        let parts = index.matches("<sitemap>").count();
        assert_eq!(parts, all.len().div_ceil(70));
        assert!(index.contains("<loc>https://a.example/sitemaps/1.xml</loc>"), "{index}");
        let told: String = (0..parts).map(|at| part(&shelf, "", at * 70, 70)).collect();
        assert_eq!(told.matches("<loc>").count(), all.len());
        for path in &all {
            let line = format!("<loc>{}</loc>", escape(path));
            assert_eq!(told.matches(&line).count(), 1, "{path}");
        }
    }
}
