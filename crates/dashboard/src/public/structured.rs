//! What search engines and social sites read of a page: JSON-LD, as data that no browser runs.

use serde_json::{Value, json};

use crate::catalogue::{CatalogueServer, CatalogueTool};
use crate::ui::Html;

/// The value as a data block. Nothing in it can end the block: `<` is written as its code.
fn block(value: &Value) -> Html {
    let text = value.to_string().replace('<', "\\u003c").replace("\u{2028}", "\\u2028");
    Html(format!("<script type=\"application/ld+json\">{text}</script>"))
}

fn crumbs(base: &str, places: &[(&str, String)]) -> Value {
    let items: Vec<Value> = (1..)
        .zip(places)
        .map(|(position, (name, path))| {
            json!({"@type": "ListItem", "position": position, "name": name, "item": format!("{base}{path}")})
        })
        .collect();
    json!({"@type": "BreadcrumbList", "itemListElement": items})
}

/// A server's page.
pub(crate) fn server(server: &CatalogueServer, base: &str) -> Html {
    let entry = &server.entry;
    let url = format!("{base}{}", server.path());
    let mut application = json!({"@type": "SoftwareApplication", "name": entry.title,
        "alternateName": entry.owner_name, "description": entry.summary, "url": url,
        "applicationCategory": "DeveloperApplication", "softwareVersion": entry.version,
        "sameAs": entry.repository});
    if let Some(members) = application.as_object_mut() {
        // What is not known is left out.
        members.retain(|_, value| !value.is_null());
    }
    let crumbs =
        crumbs(base, &[("Catalogue", "/tools".to_owned()), (&entry.owner_name, server.path())]);
    block(&json!({"@context": "https://schema.org", "@graph": [application, crumbs]}))
}

/// A tool's page, with the questions that it answers in plain text.
pub(crate) fn tool(
    server: &CatalogueServer,
    tool: &CatalogueTool,
    questions: &[(String, String)],
    base: &str,
) -> Html {
    let name = tool.definition.name.as_str();
    let article = json!({"@type": "TechArticle", "headline": format!("{name}: risk and rule"),
        "about": {"@type": "WebAPI", "name": name, "description": tool.about(), "provider": server.entry.owner_name},
        "url": format!("{base}{}", tool.path(server))});
    let answers: Vec<Value> = questions
        .iter()
        .map(|(question, answer)| {
            let plain = |text: &str| text.replace('`', "");
            json!({"@type": "Question", "name": plain(question),
                "acceptedAnswer": {"@type": "Answer", "text": plain(answer)}})
        })
        .collect();
    let crumbs = crumbs(
        base,
        &[
            ("Catalogue", "/tools".to_owned()),
            (&server.entry.owner_name, server.path()),
            (name, tool.path(server)),
        ],
    );
    let faq = json!({"@type": "FAQPage", "mainEntity": answers});
    block(&json!({"@context": "https://schema.org", "@graph": [article, faq, crumbs]}))
}
