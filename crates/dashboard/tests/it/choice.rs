//! The path from a public tool page to a grant: the choice is carried all the way.

use crate::browser::PASSWORD;
use crate::world::World;
use sluice_testkit::mcp_server::tool;

const START: &str = "/start?server=leghis-smart-e2b&tool=executePython";

#[tokio::test]
async fn the_choice_survives_signing_up_and_ends_at_the_log() {
    let world = World::new().await;
    let mut browser = world.browser();
    let page = browser.get("/tools/leghis-smart-e2b/executePython").await;
    assert!(page.links().contains(&START.to_owned()), "{:?}", page.links());
    page.says("Rate-limit this tool");

    let signup = browser.get(START).await.location().to_owned();
    assert!(signup.starts_with("/signup?next="), "{signup}");
    // A mistake on the way must not lose it.
    let page = browser.submit(&signup, &[("email", "no address"), ("password", "short")]).await;
    assert_eq!((page.status.as_u16(), page.value("next").as_str()), (422, START));
    assert_eq!(page.value("email"), "no address");
    let page =
        browser.submit(&signup, &[("email", "ann@example.test"), ("password", PASSWORD)]).await;
    assert_eq!(page.location(), START);

    let workspace = browser.get(START).await.location().to_owned();
    assert!(workspace.starts_with("/workspaces/new?next="), "{workspace}");
    let to = browser.submit(&workspace, &[("name", "Acme")]).await.location().to_owned();
    let connect = browser.get(&to).await.location().to_owned();
    assert!(connect.starts_with("/w/acme/servers/new?"), "{connect}");
    let page = browser.get(&connect).await;
    assert_eq!(
        (page.value("server").as_str(), page.value("tool").as_str()),
        ("leghis-smart-e2b", "executePython")
    );
    page.says("stdio-to-HTTP bridge")
        .says("npx -y mcp-proxy@6.7.19 --host 127.0.0.1 --port 8808 -- smart-e2b")
        .says("npm install -g git+https://github.com/Leghis/smart-e2b.git")
        .says("With E2B_API_KEY set");
    assert_eq!(page.value("upstream_url"), "http://127.0.0.1:8808/mcp");

    let typed = [("upstream_url", world.upstream.url()), ("name", "sandbox".to_owned())];
    let typed: Vec<(&str, &str)> = typed.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let apply = browser.submit(&connect, &typed).await.location().to_owned();
    assert!(apply.ends_with("/tools/executePython/apply"), "{apply}");

    let page = browser.get(&apply).await;
    page.says("may run 10 times a minute").says("executepython_rate").says("Apply rule");
    let grant = browser.submit(&apply, &[]).await.location().to_owned();
    assert!(grant.contains("/grants/new?policy="), "{grant}");
    let page = browser.submit(&grant, &[("label", "runaway")]).await;
    page.says("slg_").says("Configure your client").says("mcp-remote").says("claude mcp add");
    assert_eq!(
        page.headers["cache-control"], "no-store",
        "a token must not be kept by the browser"
    );

    // Signed in and connected, the button goes straight to the rule.
    assert_eq!(browser.get(START).await.location(), apply);
}

#[tokio::test]
async fn the_choice_survives_signing_in() {
    let world = World::new().await;
    world.admin().await;
    let mut browser = world.browser();
    let signup = browser.get(START).await.location().to_owned();
    let links = browser.get(&signup).await.links();
    let login =
        links.iter().find(|link| link.starts_with("/login?next=")).expect("a way to sign in");
    let typed = [("email", "ann@example.test"), ("password", PASSWORD)];
    assert_eq!(browser.submit(login, &typed).await.location(), START);
}

#[tokio::test]
async fn next_leads_to_no_other_site() {
    let world = World::new().await;
    let mut browser = world.browser();
    for away in ["//evil.example", "https://evil.example", "/%5Cevil.example", "/\\evil.example"] {
        let page = browser.get(&format!("/signup?next={}", away.replace('\\', "%5C"))).await;
        assert_eq!(page.value("next"), "", "{away}");
        let theme =
            browser.get(&format!("/theme?set=dark&next={}", away.replace('\\', "%5C"))).await;
        assert!(theme.location().starts_with('/') && !theme.location().starts_with("//"));
    }
    let page = browser
        .submit(
            "/signup",
            &[("email", "bob@example.test"), ("password", PASSWORD), ("next", "//evil.example")],
        )
        .await;
    assert_eq!(page.location(), "/w");
}

#[tokio::test]
async fn a_server_without_the_tool_says_so_and_offers_what_it_has() {
    let world = World::new().await;
    world.upstream.tools(vec![tool("run_shell", "Run a shell command")]);
    let mut browser = world.admin().await;
    let connect = browser.get(START).await.location().to_owned();
    let typed = [("upstream_url", world.upstream.url()), ("name", "other".to_owned())];
    let typed: Vec<(&str, &str)> = typed.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let to = browser.submit(&connect, &typed).await.location().to_owned();
    assert!(to.contains("?wanted=executePython"), "{to}");
    let page = browser.get(&to).await;
    page.says("This server has no tool of that name").says("run_shell");
}
