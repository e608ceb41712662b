//! Who is refused at the door is told to the operator, and to the workspace where a grant is known.

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::FakeServer;

use crate::world::{Agent, World, setup};

#[tokio::test]
async fn refused_attempts_are_counted_for_the_operator_and_shown_to_the_workspace() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let document = json!({"version": "1", "default": "allow"});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    let reached = upstream.seen().len();
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let unknown = Agent { path: "/mcp/no-such-server".to_owned(), ..agent.clone() };
    for _ in 0..3 {
        assert_eq!(unknown.post(&world.sluice, ask.clone()).await.status.as_u16(), 401);
    }
    let stranger = Agent { bearer: "Bearer slg_nonsense".to_owned(), ..agent.clone() };
    for _ in 0..5 {
        assert_eq!(stranger.post(&world.sluice, ask.clone()).await.status.as_u16(), 401);
    }
    let page = [("origin", "https://evil.example")];
    let answer = world.sluice.send(Method::POST, &agent.path, &page, ask).await;
    assert_eq!(answer.status.as_u16(), 403);
    assert_eq!(upstream.seen().len(), reached, "none of them reached the server");

    let rows = loop {
        let page = world.must(Method::GET, "/security-events", Value::Null, 200).await;
        let rows = page["items"].as_array().expect("items").clone();
        if !rows.is_empty() {
            break rows;
        }
        // Rows are written in batches, and nobody is told when.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    // What no token places in the workspace is not in it.
    assert_eq!(rows.len(), 1, "{rows:?}");
    let told = (&rows[0]["kind"], &rows[0]["grant_id"], &rows[0]["times"]);
    assert_eq!(told, (&json!("unknown_server"), &json!(connected.grant), &json!(1)), "at once");
    let none = world.must(Method::GET, "/security-events?kind=bad_token", Value::Null, 200).await;
    assert_eq!(none["items"], json!([]));

    // Repeats become a row at the end of the minute, or of the process.
    let setup = world.sluice.setup().clone();
    let (bad, grant) = (stranger.bearer.replace("Bearer ", ""), connected.token.clone());
    world.sluice.stop().await;
    let output = setup.output(&["admin", "security-log", "--json"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["kind"].as_str(), line["workspace"].as_str(), line["times"].as_i64()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("bad_token"), None, Some(5)),
            (Some("unknown_server"), Some("acme"), Some(3)),
            (Some("foreign_origin"), None, Some(1)),
        ],
        "{text}"
    );
    assert!(lines.iter().all(|line| line["address"] == "127.0.0.1"));
    assert!(!text.contains(&bad) && !text.contains(&grant), "a token is in the security log");
}
