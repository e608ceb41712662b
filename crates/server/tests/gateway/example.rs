//! What a newcomer without an MCP server sees: the built-in example, and the demo in a terminal.

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::Sluice;

use crate::world::{Agent, World, decision, id, passed, setup};

/// Where the log says that the example listens.
fn example_url(sluice: &Sluice) -> Option<String> {
    let said = sluice.said();
    let line = said.lines().find(|line| line.contains("The example server runs"))?;
    let address = line.split("address=").nth(1)?.split_whitespace().next()?;
    Some(format!("http://{address}/mcp"))
}

#[tokio::test]
async fn the_example_has_one_tool_of_each_category_rated_like_any_other() {
    let world = World::start(setup()).await;
    let url = example_url(&world.sluice).expect("the example runs on loopback");
    let body = json!({"name": "Example server", "upstream_url": url});
    let server = id(&world.create("/servers", body).await);
    world.must(Method::POST, &format!("/servers/{server}/refresh"), json!({}), 200).await;
    let tools =
        world.must(Method::GET, &format!("/servers/{server}/tools"), Value::Null, 200).await;
    let tools = tools["items"].as_array().expect("items");
    let mut rated: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| {
            assert!(!tool["reasons"].as_array().expect("reasons").is_empty(), "{tool}");
            (tool["category"].as_str().expect("a word"), tool["name"].as_str().expect("a name"))
        })
        .collect();
    rated.sort_unstable();
    assert_eq!(
        rated,
        [
            ("Destructive", "delete_note"),
            ("Execute", "executePython"),
            ("Financial", "create_charge"),
            ("Read", "read_note"),
            ("Write", "write_note"),
        ]
    );
    // A real endpoint: the tools work, and nothing is executed or paid.
    let document = json!({"version": "1", "default": "allow"});
    let body = json!({"name": "all", "document": document});
    let policy = id(&world.create(&format!("/servers/{server}/policies"), body).await);
    let body = json!({"label": "agent", "policy_id": policy});
    let grant = world.create(&format!("/servers/{server}/grants"), body).await;
    let bearer = format!("Bearer {}", grant["token"].as_str().expect("a token"));
    let agent = Agent { path: format!("/mcp/{server}"), bearer };
    let write = json!({"title": "t", "text": "kept"});
    assert!(passed(&agent.call(&world.sluice, "write_note", write).await));
    let read = agent.call(&world.sluice, "read_note", json!({"title": "t"})).await;
    assert!(read["result"]["content"][0]["text"].as_str().is_some_and(|t| t.contains("kept")));
    let file = world.sluice.setup().data_dir().join("made-by-python");
    let code = json!({"code": format!("open('{}', 'w')", file.display())});
    assert!(passed(&agent.call(&world.sluice, "executePython", code).await));
    assert!(!file.exists());
    world.sluice.stop().await;
}

/// Connected once, it is still there after a restart: its port is kept.
#[tokio::test]
async fn the_example_keeps_its_address_over_a_restart() {
    let setup = setup();
    let first = setup.serve().await;
    let url = example_url(&first);
    first.stop().await;
    let second = setup.serve().await;
    assert!(url.is_some());
    assert_eq!(example_url(&second), url);
    second.stop().await;
}

#[tokio::test]
async fn the_example_is_off_where_sluice_is_public_unless_asked_for() {
    let public = || setup().with("SLUICE_PUBLIC_URL", "https://sluice.example.com");
    let off = public().serve().await;
    assert_eq!(example_url(&off), None, "{}", off.said());
    off.stop().await;
    let asked = public()
        .with("SLUICE_EXAMPLE_SERVER", "yes")
        .with("SLUICE_ALLOW_PRIVATE_UPSTREAMS", "yes")
        .serve()
        .await;
    assert!(example_url(&asked).is_some(), "{}", asked.said());
    asked.stop().await;
}

#[tokio::test]
async fn the_demo_plays_the_path_and_leaves_nothing_behind() {
    // Settings around it are those of another installation, and none of its business.
    let setup = setup().with("SLUICE_REDIS_URL", "redis://127.0.0.1:1");
    let output = setup.output(&["demo"]).await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "1. The operator makes a workspace",
        "executePython  Execute      High",
        "\"executepython_rate\"",
        "   10. ",
        "   11. [POLICY DENIED] executePython is limited to 10 calls a minute. Retry after",
        "\"retry_after_seconds\"",
        "read_note → [POLICY DENIED]",
    ] {
        assert!(said.contains(line), "`{line}` is missing in:\n{said}");
    }
    assert_eq!(said.matches("[POLICY DENIED]").count(), 2, "{said}");
    assert!(!setup.data_dir().exists(), "the demo has a directory of its own");
}

/// The limit of the example is the one that any server's tool would get.
#[tokio::test]
async fn ten_calls_of_the_example_pass_and_the_eleventh_is_refused() {
    let world = World::start(setup()).await;
    let url = example_url(&world.sluice).expect("the example runs on loopback");
    let body = json!({"name": "Example server", "upstream_url": url});
    let server = id(&world.create("/servers", body).await);
    world.must(Method::POST, &format!("/servers/{server}/refresh"), json!({}), 200).await;
    let apply = format!("/servers/{server}/tools/executePython/apply-recommended");
    let applied = world.must(Method::POST, &apply, json!({"rest": "recommended"}), 200).await;
    let body = json!({"label": "agent", "policy_id": applied["policy"]["id"]});
    let grant = world.create(&format!("/servers/{server}/grants"), body).await;
    let bearer = format!("Bearer {}", grant["token"].as_str().expect("a token"));
    let agent = Agent { path: format!("/mcp/{server}"), bearer };
    for _ in 0..10 {
        let call = agent.call(&world.sluice, "executePython", json!({"code": "1"})).await;
        assert!(passed(&call), "{call}");
    }
    let refused = agent.call(&world.sluice, "executePython", json!({"code": "1"})).await;
    assert_eq!(decision(&refused)["code"], "rate_limited");
    // With the recommended rules for the rest, reading goes on and deleting is not even listed.
    assert!(passed(&agent.call(&world.sluice, "read_note", json!({"title": "welcome"})).await));
    assert!(!agent.tools(&world.sluice).await.contains(&"delete_note".to_owned()));
    world.sluice.stop().await;
}
