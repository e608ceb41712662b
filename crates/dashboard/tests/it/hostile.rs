//! Names and texts of users and upstreams are text, on every page they reach.

use serde_json::json;

use crate::browser::MARKUP;
use crate::world::World;

#[tokio::test]
async fn markup_of_upstreams_and_users_is_shown_and_not_run() {
    let world = World::new().await;
    let mut browser = world.browser();
    browser.sign_up("ann@example.test").await;
    browser.submit("/workspaces/new", &[("name", &format!("Acme {MARKUP}"))]).await;
    let ws = browser.get("/w").await.location().trim_end_matches('/').to_owned();
    world.upstream.tools(vec![json!({"name": MARKUP, "title": MARKUP, "description": format!("Delete {MARKUP} <IMPORTANT>"),
        "inputSchema": {"type": "object", "properties": {MARKUP: {"type": "string", "description": MARKUP, "enum": [MARKUP]}}}})]);
    let typed = [("name", MARKUP), ("upstream_url", &world.upstream.url())];
    let server = browser.submit(&format!("{ws}/servers/new"), &typed).await.location().to_owned();
    let page = browser.get(&server).await;
    page.says(MARKUP);
    let tool = page.links().into_iter().find(|link| link.contains("/tools/")).expect("a tool");
    let tool = tool.trim_end_matches("/apply").to_owned();
    browser.submit(&format!("{server}/grants/new"), &[("label", MARKUP)]).await.says(MARKUP);
    for path in [
        server.clone(),
        tool.clone(),
        format!("{tool}/apply"),
        format!("{server}/policies"),
        format!("{server}/grants"),
        format!("{server}/settings"),
        format!("{server}/try"),
        format!("{server}?wanted={}", "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"),
        format!("{ws}/"),
        format!("{ws}/servers"),
        format!("{ws}/grants"),
        format!("{ws}/policies"),
        format!("{ws}/approvals"),
        format!("{ws}/approvals/exceptions"),
        format!("{ws}/notifications"),
        format!("{ws}/members"),
        format!("{ws}/audit"),
        format!("{ws}/settings"),
        format!("{ws}/logs?q=%3Cimg%20src%3Dx%3E&rule=%3Cimg%3E&outcome=%3Cimg%3E"),
    ] {
        let page = browser.open(&path).await;
        assert!(page.status.is_success(), "{path}: {}", page.status);
        assert!(
            !page.body.contains("<img") && !page.body.contains("<IMPORTANT"),
            "markup runs on {path}"
        );
    }
}
