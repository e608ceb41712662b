//! Public pages: each in its three forms, and no dead link between them.

use std::collections::{BTreeSet, VecDeque};

use http::StatusCode;

use crate::world::World;

#[tokio::test]
async fn every_link_between_public_pages_is_alive() {
    let world = World::new().await;
    let mut browser = world.browser();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut queue: VecDeque<String> =
        VecDeque::from(["/".to_owned(), "/styleguide".to_owned(), "/llms.txt".to_owned()]);
    let mut pages = 0;
    while let Some(path) = queue.pop_front() {
        let page = browser.get(&path).await;
        assert!(
            page.status.is_success() || page.status.is_redirection(),
            "{path} is {}",
            page.status
        );
        pages += 1;
        if !page
            .headers
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
        {
            continue;
        }
        assert!(page.body.contains("<title>"), "{path} has no title");
        for link in page.links() {
            let target = link.split('#').next().unwrap_or_default().to_owned();
            // The API's document is served by another crate.
            let ours = target.starts_with('/') && !target.starts_with("/api/");
            let cosmetic = target.starts_with("/theme");
            if ours && !cosmetic && seen.insert(target.clone()) {
                queue.push_back(target);
            }
        }
    }
    assert!(pages > 40, "only {pages} pages were found");
}

#[tokio::test]
async fn the_sitemap_names_pages_that_exist() {
    let world = World::new().await;
    let mut browser = world.browser();
    let sitemap = browser.get("/sitemap.xml").await.body;
    let paths: Vec<String> = sitemap
        .split("<loc>http://localhost:8080")
        .skip(1)
        .filter_map(|rest| rest.split("</loc>").next())
        .map(str::to_owned)
        .collect();
    assert!(paths.len() > 20);
    for path in paths {
        assert_eq!(browser.get(&path).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_tool_has_a_page_a_text_and_a_value() {
    let world = World::new().await;
    let mut browser = world.browser();
    for (path, kind, holds) in [
        ("/tools/leghis-smart-e2b/executePython", "text/html", "Rate-limit this tool"),
        ("/tools/leghis-smart-e2b/executePython.md", "text/markdown", "## Recommended rule"),
        ("/tools/leghis-smart-e2b/executePython.md", "text/markdown", "Signals: accepts freeform"),
        ("/tools/leghis-smart-e2b/executePython.md", "text/markdown", "## Questions"),
        (
            "/tools/leghis-smart-e2b/executePython.json",
            "application/json",
            "\"executepython_rate\"",
        ),
        ("/tools/leghis-smart-e2b", "text/html", "Connect this server"),
        ("/tools/leghis-smart-e2b.md", "text/markdown", "## Tools"),
        ("/tools/leghis-smart-e2b.json", "application/json", "\"slug\""),
        ("/tools?q=executePython", "text/html", "executePython"),
        ("/tools.md?q=executePython", "text/markdown", "executePython"),
        ("/tools.json?q=executePython", "application/json", "executePython"),
        ("/docs/policy.schema.json", "application/json", "$schema"),
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.headers["content-type"].to_str().expect("ASCII").starts_with(kind), "{path}");
        assert!(page.body.contains(holds), "{path}: {}", page.body);
    }
    let value: serde_json::Value =
        serde_json::from_str(&browser.get("/tools/leghis-smart-e2b/executePython.json").await.body)
            .expect("JSON");
    assert_eq!(
        (value["category"].as_str(), value["severity"].as_str()),
        (Some("Execute"), Some("High"))
    );
}

#[tokio::test]
async fn what_is_not_there_helps_on() {
    let world = World::new().await;
    let mut browser = world.browser();
    for path in [
        "/nothing",
        "/tools/nobody",
        "/tools/leghis-smart-e2b/nothing",
        "/risk/odd",
        "/categories/Read",
        "/attacks/odd",
        "/docs/odd",
        "/guides/odd",
        "/static/x/odd.css",
    ] {
        assert_eq!(browser.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    browser.get("/nothing").await.says("There is no such page").says("Catalogue");
    let none = browser.get("/tools?q=zzzzqqqq%3Cimg%3E").await;
    none.says("Nothing matches “zzzzqqqq<img>”");
    assert!(!none.body.contains("<img"), "{}", none.body);
}

#[tokio::test]
async fn pages_carry_a_strict_policy_and_the_readers_theme() {
    let world = World::new().await;
    let mut browser = world.browser();
    let page = browser.get("/").await;
    let policy = page.headers["content-security-policy"].to_str().expect("ASCII");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.body.contains("data-theme=\"dark\""));
    assert_eq!(browser.get("/theme?set=dark&next=/docs").await.location(), "/docs");
    assert!(browser.get("/docs").await.body.contains("<html lang=\"en\" data-theme=\"dark\">"));
}
