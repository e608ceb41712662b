//! `sluice approvals`: calls that wait are listed, shown and decided from a terminal.

use std::process::Output;

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::{FakeServer, Setup};

use crate::approvals::policy;
use crate::world::{World, decision, passed, setup};

async fn cli(setup: &Setup, token: &str, arguments: &[&str]) -> Output {
    let mut command = setup.command([&["approvals"], arguments].concat());
    command.env("SLUICE_API_TOKEN", token).output().await.expect("the binary starts")
}

fn told(output: &Output, code: i32) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

fn parsed(output: &Output) -> Value {
    told(output, 0);
    serde_json::from_slice(&output.stdout).expect("one JSON value")
}

#[tokio::test]
async fn calls_are_listed_shown_and_decided_from_a_terminal() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let agent = world.connect("notes", &upstream.url(), policy("0s")).await.agent();
    let (setup, token) = (world.sluice.setup(), world.token.as_str());
    assert!(told(&cli(setup, token, &["list"]).await, 0).contains("No approvals"));

    let mut ids = Vec::new();
    for n in 1..=3 {
        let arguments = json!({ "n": n, "api_key": "sk-live-7h1s", "text": "\u{1b}[2J" });
        let answer = agent.call(&world.sluice, "echo", arguments).await;
        let id = decision(&answer)["approval"]["id"].as_str().expect("an id").to_owned();
        ids.push(id);
    }
    let listed = parsed(&cli(setup, token, &["list", "--json"]).await);
    let items = listed["items"].as_array().expect("items");
    // Equally risky: the oldest first.
    assert_eq!(
        items.iter().map(|one| &one["id"]).collect::<Vec<_>>(),
        ids.iter().collect::<Vec<_>>()
    );
    let table = told(&cli(setup, token, &["list", "--tool", "echo"]).await, 0);
    assert!(table.starts_with("ID ") && ids.iter().all(|id| table.contains(id)), "{table}");
    assert!(!told(&cli(setup, token, &["list", "--tool", "other"]).await, 0).contains(&ids[0]));

    let shown = told(&cli(setup, token, &["show", &ids[0]]).await, 0);
    assert!(shown.contains("[redacted]") && !shown.contains("7h1s"), "{shown}");
    assert!(shown.contains("/tools/echo/approve_if/0") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("asked") && shown.contains("shown by ann@example.com"), "{shown}");
    let whole = parsed(&cli(setup, token, &["show", &ids[0], "--json"]).await);
    assert_eq!(
        (whole["id"].as_str(), whole["arguments"]["n"].as_u64()),
        (Some(ids[0].as_str()), Some(1))
    );

    let approve = ["approve", &ids[0], "--note", "fine", "--workspace", "acme"];
    assert!(told(&cli(setup, token, &approve).await, 0).contains("approved"));
    let again = told(&cli(setup, token, &approve).await, 1);
    assert!(again.contains("was not changed") && again.contains("ann@example.com"), "{again}");
    let first = json!({ "n": 1, "api_key": "sk-live-7h1s", "text": "\u{1b}[2J" });
    assert!(passed(&agent.call(&world.sluice, "echo", first).await));

    // One of them is decided already, which keeps nobody from refusing the others.
    let deny = ["deny", &ids[0], &ids[1], "--note", "not today"];
    let text = told(&cli(setup, token, &deny).await, 1);
    assert!(text.contains(&format!("Approval {}: denied", ids[1])), "{text}");
    let second = json!({ "n": 2, "api_key": "sk-live-7h1s", "text": "\u{1b}[2J" });
    let refused = agent.call(&world.sluice, "echo", second).await;
    assert!(refused.to_string().contains("not today"), "{refused}");
    let hour = ["approve", &ids[2], "--allow-for", "1h", "--json"];
    assert_eq!(parsed(&cli(setup, token, &hour).await)["status"], "approved");
    let denied = parsed(&cli(setup, token, &["list", "--status", "denied", "--json"]).await);
    assert_eq!(denied["items"].as_array().map(Vec::len), Some(1));
    world.sluice.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_from_a_terminal_is_told_with_an_exit_code() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let agent = world.connect("notes", &upstream.url(), policy("0s")).await.agent();
    let (setup, token) = (world.sluice.setup(), world.token.as_str());
    let answer = agent.call(&world.sluice, "echo", json!({})).await;
    let id = decision(&answer)["approval"]["id"].as_str().expect("an id").to_owned();
    let body = json!({"label": "reader", "role": "viewer"});
    let viewer = world.must(Method::POST, "/api-tokens", body, 201).await;
    let viewer = viewer["token"].as_str().expect("a token");
    told(&cli(setup, viewer, &["list"]).await, 0);
    assert!(told(&cli(setup, viewer, &["approve", &id]).await, 2).contains("403"));
    assert!(told(&cli(setup, "slu_wrong", &["list"]).await, 2).contains("401"));
    let nobody = "019a1b2c-0000-7000-8000-000000000000";
    assert!(told(&cli(setup, token, &["show", nobody]).await, 2).contains("404"));
    told(&cli(setup, token, &["show", "not-an-id"]).await, 2);
    let clear = ["list", "--url", "http://gateway.example"];
    assert!(told(&cli(setup, token, &clear).await, 2).contains("in the clear"));
    let mut bare = setup.command(["approvals", "list"]);
    let bare = bare.env_remove("SLUICE_API_TOKEN").output().await.expect("it starts");
    assert!(told(&bare, 2).contains("SLUICE_API_TOKEN"));
    let away = world.sluice.setup().clone();
    world.sluice.stop().await;
    assert!(told(&cli(&away, token, &["list"]).await, 3).contains("no answer"));
}
