//! What search engines read of the catalogue's pages.

use serde_json::{Value, json};

use crate::browser::MARKUP;
use crate::catalogue::{keep, tool};
use crate::world::World;

/// What each kind of node needs for others to read it: names, whole addresses, positions in order, and nothing
/// that is `null` or empty.
fn is_valid(node: &Value) {
    let kind = node["@type"].as_str().unwrap_or_else(|| panic!("a kind: {node}"));
    let needed: &[&str] = match kind {
        "BreadcrumbList" => &["itemListElement"],
        "ListItem" => &["position", "name", "item"],
        "SoftwareApplication" => &["name", "applicationCategory", "url", "description"],
        "TechArticle" => &["headline", "about", "url"],
        "WebAPI" => &["name", "description", "provider"],
        "FAQPage" => &["mainEntity"],
        "Question" => &["name", "acceptedAnswer"],
        "Answer" => &["text"],
        other => panic!("{other}: {node}"),
    };
    for name in needed {
        assert!(node.get(name).is_some(), "{kind} without {name}: {node}");
    }
    for (name, value) in node.as_object().expect("an object") {
        let empty = value.is_null()
            || value.as_str().is_some_and(|it| it.trim().is_empty())
            || value.as_array().is_some_and(Vec::is_empty);
        assert!(!empty, "{name} of {node}");
        if matches!(name.as_str(), "url" | "item" | "sameAs") {
            assert!(value.as_str().is_some_and(|it| it.starts_with("http")), "{name} of {node}");
        }
        let inner: Vec<&Value> =
            value.as_array().map_or_else(|| vec![value], |it| it.iter().collect());
        for (position, one) in (1_u64..).zip(inner) {
            if one.is_object() {
                is_valid(one);
            }
            if one["@type"] == "ListItem" {
                assert_eq!(one["position"], position, "{node}");
            }
        }
    }
}

#[tokio::test]
async fn structured_data_is_json_that_cannot_end_its_block() {
    let world = World::new().await;
    keep(
        &world,
        "com.example/notes",
        json!([tool("get_note", &format!("Gets </script>{MARKUP}"))]),
    )
    .await;
    let mut browser = world.browser();
    for path in [
        "/tools/com.example~notes",
        "/tools/com.example~notes/get_note",
        "/tools/leghis-smart-e2b/executePython",
    ] {
        let page = browser.get(path).await;
        let block = page
            .body
            .split("<script type=\"application/ld+json\">")
            .nth(1)
            .and_then(|rest| rest.split("</script>").next());
        let value: Value = serde_json::from_str(block.expect("a block"))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(value["@context"], "https://schema.org");
        let kinds: Vec<_> = value["@graph"]
            .as_array()
            .expect("a graph")
            .iter()
            .map(|it| it["@type"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert!(kinds.contains(&"BreadcrumbList".to_owned()), "{kinds:?}");
        for node in value["@graph"].as_array().into_iter().flatten() {
            is_valid(node);
        }
        assert!(!page.body.contains("<img"), "{path}");
    }
}
