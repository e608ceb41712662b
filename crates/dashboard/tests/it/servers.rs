//! Connecting servers, and their pages.

use http::StatusCode;
use sluice_testkit::mcp_server::tool;

use crate::world::World;

#[tokio::test]
async fn an_empty_list_teaches_the_next_step() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let page = browser.get("/w/acme/servers").await;
    page.says("No server yet").says("Connect a server");
    assert!(!page.body.contains("class=\"pager\""), "no page buttons on an empty list");
    browser.get("/w/acme/").await.says("Quick start").says("No agent has access");
    for (path, says) in [
        ("policies", "No policy yet"),
        ("grants", "No grant yet"),
        ("logs", "No call yet"),
        ("approvals", "waits"),
    ] {
        browser.get(&format!("/w/acme/{path}")).await.says(says);
    }
}

#[tokio::test]
async fn addresses_that_point_inside_or_are_none_are_told_beside_the_field() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    for odd in ["file:///etc/hosts", "not a url", "http://user:pw@example.com/", ""] {
        let page =
            browser.submit("/w/acme/servers/new", &[("name", "x"), ("upstream_url", odd)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{odd}");
        assert!(page.body.contains("id=\"upstream_url-error\""), "{odd}");
        assert_eq!((page.value("upstream_url").as_str(), page.value("name").as_str()), (odd, "x"));
    }
    browser.get("/w/acme/servers").await.says("No server yet");
}

#[tokio::test]
async fn a_server_that_is_down_is_kept_with_the_failure_in_words() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    // A port that was free a moment ago.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let url = format!("http://{closed}/mcp");
    let page = browser
        .submit(
            "/w/acme/servers/new",
            &[("name", "down"), ("upstream_url", &url), ("tool", "executePython")],
        )
        .await;
    let to = page.location().to_owned();
    assert!(to.contains("/settings?tool=executePython"), "{to}");
    let page = browser.get(&to).await;
    assert_eq!(page.value("upstream_url"), url);
    assert!(page.body.contains("flash-bad"), "the failure is told");
    page.says("The upstream does not accept connections. Check that the server is running");
    // Mended on the same page, the choice goes on.
    let path = to.split('?').next().expect("a path").to_owned();
    let mended = browser.submit_to(&to, &path, &[("upstream_url", &world.upstream.url())]).await;
    assert!(mended.location().ends_with("/tools/executePython/apply"), "{}", mended.location());
}

#[tokio::test]
async fn the_example_is_connected_with_one_press() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    browser.get("/w/acme/servers/new").await.says("Connect the example");
    let page = browser
        .submit("/w/acme/servers/new", &[("name", "Example server"), ("upstream_url", "example")])
        .await;
    let path = page.location().to_owned();
    browser
        .get(&path)
        .await
        .says("Example server")
        .says("executePython")
        .says("Rate-limit this tool");
}

#[tokio::test]
async fn stored_credentials_are_never_shown_and_stay_when_the_field_is_left_empty() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let typed = [
        ("name", "keyed"),
        ("upstream_url", &world.upstream.url()),
        ("header_name", "X-Key"),
        ("header_value", "UP-1234"),
    ];
    let path = browser.submit("/w/acme/servers/new", &typed).await.location().to_owned();
    let settings = format!("{path}/settings");
    for page in [&path, &settings] {
        assert!(!browser.get(page).await.body.contains("UP-1234"), "{page}");
    }
    let page = browser.get(&settings).await;
    assert_eq!(page.value("header_name"), "X-Key");
    browser.submit(&settings, &[("name", "renamed")]).await;
    let sent = |value: &str| {
        let last = world.upstream.seen().into_iter().next_back().expect("a request");
        last.headers.get("x-key").is_some_and(|header| header == value)
    };
    assert!(sent("UP-1234"), "the stored value is still sent");
    let mut viewer = world.browser();
    viewer.sign_up("eve@example.test").await;
    assert_eq!(viewer.get(&settings).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_server_is_deleted_only_by_its_name() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let (settings, delete) = (format!("{path}/settings"), format!("{path}/delete"));
    let page = browser.submit_to(&settings, &delete, &[("confirm", "sandbo")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("Nothing was deleted");
    let page = browser.submit_to(&settings, &delete, &[("confirm", "sandbox")]).await;
    assert_eq!(page.location(), "/w/acme/servers");
    browser.get("/w/acme/servers").await.says("Deleted sandbox.").says("No server yet");
    assert_eq!(browser.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_changed_definition_is_shown_side_by_side_and_accepted() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    world.upstream.tools(vec![tool("executePython", "Execute Python code anywhere at all")]);
    browser.submit_to(&path, &format!("{path}/refresh"), &[]).await;
    browser.get(&path).await.says("1 changed").says("review");
    let tool_path = format!("{path}/tools/executePython");
    let page = browser.get(&tool_path).await;
    page.says("What changed").says("in a sandbox").says("anywhere at all");
    let accepted = browser.submit_to(&tool_path, &format!("{tool_path}/accept"), &[]).await;
    assert_eq!(accepted.location(), tool_path);
    let page = browser.get(&tool_path).await;
    page.says("Accepted the definition");
    assert!(!page.body.contains("What changed"));
}

#[tokio::test]
async fn the_rule_is_shown_before_it_is_saved_and_twice_changes_nothing() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let apply = format!("{path}/tools/executePython/apply");
    let only = browser.get(&apply).await;
    only.says("added: ").says("executepython_rate");
    assert!(!only.body.contains("read_file"), "only this tool");
    browser.get(&format!("{apply}?rest=recommended")).await.says("read_file").says("delete_file");
    browser.get("/w/acme/policies").await.says("No policy yet");
    browser.submit(&format!("{apply}?rest=recommended"), &[]).await;
    browser.get("/w/acme/policies").await.says("Recommended rules");
    browser.get(&format!("{apply}?rest=recommended")).await.says("says all of this already");
    browser.get(&path).await.says("Limited").says("Hidden");
    let odd = browser.get(&format!("{apply}?policy=nonsense")).await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
    odd.says("This server has no such policy.");
}

#[tokio::test]
async fn publishing_is_off_and_what_is_inside_cannot_be_published() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let settings = format!("{path}/settings");
    let page = browser.get(&settings).await;
    page.says("Publish its tools").says("no name of this workspace");
    assert_eq!(page.value("publish_tools"), "", "off");
    let page = browser.submit(&settings, &[("publish_tools", "1")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("The tools of this server cannot be published: only an address that begins with https: is published");
    assert_eq!(page.value("publish_tools"), "1", "what was chosen stays to be corrected");
}

#[tokio::test]
async fn a_press_can_be_undone_where_it_leads_and_on_the_policys_page() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let apply = |tool: &str| format!("{path}/tools/{tool}/apply");
    // At first it made the policy: it goes again.
    let grant = browser.submit(&apply("executePython"), &[]).await.location().to_owned();
    let page = browser.get(&grant).await;
    let undo = page
        .body
        .split("action=\"")
        .find(|rest| rest.split('"').next().is_some_and(|to| to.ends_with("/undo")));
    let undo = undo.and_then(|rest| rest.split('"').next()).expect("a form to undo it").to_owned();
    let undone = browser.submit_to(&grant, &undo, &[]).await;
    assert_eq!(undone.location(), "/w/acme/policies");
    browser.get("/w/acme/policies").await.says("Undone: the policy").says("No policy yet");
    // Then it changed one: it says what it said.
    browser.submit(&apply("executePython"), &[]).await;
    let grant = browser.submit(&apply("read_file"), &[]).await.location().to_owned();
    let policy =
        grant.split("policy=").nth(1).and_then(|rest| rest.split('&').next()).expect("the policy");
    let policy = format!("/w/acme/policies/{policy}");
    browser.get(&policy).await.says("Version 2 was saved by the button");
    let undone = browser.submit_to(&policy, &format!("{policy}/undo"), &[]).await;
    assert_eq!(undone.location(), policy);
    let page = browser.get(&policy).await;
    page.says("Undone: version 3 says what it said before.");
    assert!(
        !page.body.contains("/undo\"") && !page.body.contains("read_file"),
        "nothing is left to undo"
    );
    // An old form does nothing.
    let page = browser.post(&format!("{policy}/undo"), &[("version", "2")]).await;
    assert!(
        page.status.is_client_error() || page.status == StatusCode::SEE_OTHER,
        "{}",
        page.status
    );
    assert!(!browser.get(&policy).await.body.contains("read_file"));
}
