//! Pages that anyone may read: the catalogue, attacks, guides, docs, and what crawlers ask for.

mod attacks;
mod card;
pub(crate) mod docs;
mod guides;
mod home;
mod listing;
mod report;
mod search;
mod seo;
mod server;
mod structured;
mod styleguide;
mod tool;

use axum::routing::get;

use crate::routes::Routes;

/// The public routes.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/", get(home::get))
        .route("/tools", get(search::html))
        .route("/tools.json", get(search::json))
        .route("/tools.md", get(search::markdown))
        .route("/tools/{server}", get(server::get))
        .route("/tools/{server}/{tool}", get(tool::get))
        .route("/cards/{server}/{tool}", get(card::get))
        .route("/risk/{severity}", get(listing::risk))
        .route("/categories/{category}", get(listing::category))
        .route("/attacks", get(attacks::list))
        .route("/attacks.md", get(attacks::list_text))
        .route("/attacks.json", get(attacks::list_value))
        .route("/attacks/{slug}", get(attacks::get))
        .route("/guides", get(guides::list))
        .route("/docs.md", get(docs::list_text))
        .route("/docs.json", get(docs::list_value))
        .route("/guides.md", get(guides::list_text))
        .route("/guides.json", get(guides::list_value))
        .route("/guides/{slug}", get(guides::get))
        .route("/docs", get(docs::list))
        .route("/docs/{page}", get(docs::get))
        .route("/report", get(report::form).post(report::send))
        .route("/styleguide", get(styleguide::get))
        .route("/llms.txt", get(seo::llms))
        .route("/sitemap.xml", get(seo::sitemap))
        .route("/sitemaps/{part}", get(seo::sitemap_part))
        .route("/robots.txt", get(seo::robots))
}

/// Which of a page's three forms was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Markdown,
    Json,
}

/// Parts `name.md` into name and form.
pub(crate) fn form(text: &str) -> (&str, Form) {
    if let Some(name) = text.strip_suffix(".md") {
        (name, Form::Markdown)
    } else if let Some(name) = text.strip_suffix(".json") {
        (name, Form::Json)
    } else {
        (text, Form::Html)
    }
}
