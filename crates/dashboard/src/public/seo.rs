//! `/llms.txt`, `/sitemap.xml`, `/robots.txt`.

use std::fmt::Write;

use axum::extract::State;
use axum::response::Response;
use sluice_domain::{Category, Severity};
use sluice_risk::{attacks, guides};

use super::docs;
use crate::DashboardState;
use crate::catalogue;
use crate::page;
use crate::ui::escape;

/// Every public page's path, in the order of the site.
pub(crate) fn paths() -> Vec<String> {
    let mut paths = vec!["/".to_owned(), "/tools".to_owned()];
    for server in catalogue::servers() {
        paths.push(server.path());
        paths.extend(server.tools.iter().map(|tool| tool.path(server)));
    }
    paths.extend(Severity::ALL.iter().map(|s| format!("/risk/{}", s.as_str().to_lowercase())));
    paths
        .extend(Category::ALL.iter().map(|c| format!("/categories/{}", c.as_str().to_lowercase())));
    paths.push("/attacks".to_owned());
    paths.extend(attacks().iter().map(|attack| format!("/attacks/{}", attack.slug)));
    paths.push("/guides".to_owned());
    paths.extend(guides().iter().map(|guide| format!("/guides/{}", guide.slug)));
    paths.push("/docs".to_owned());
    paths.extend(docs::pages().iter().map(|page| format!("/docs/{}", page.slug)));
    paths
}

pub(crate) async fn sitemap(State(state): State<DashboardState>) -> Response {
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for path in paths() {
        let _ = writeln!(body, "<url><loc>{}{}</loc></url>", escape(state.base()), escape(&path));
    }
    body.push_str("</urlset>\n");
    page::text("application/xml; charset=utf-8", body)
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
        let entry = server.entry;
        let _ = writeln!(
            body,
            "- [{}]({base}{}.md): {}",
            entry.owner_name,
            server.path(),
            entry.summary
        );
    }
    body.push_str("\n## Attacks\n\n");
    for attack in attacks() {
        let _ = writeln!(
            body,
            "- [{}]({base}/attacks/{}): {}",
            attack.title, attack.slug, attack.summary
        );
    }
    page::text("text/plain; charset=utf-8", body)
}
