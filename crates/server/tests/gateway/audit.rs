//! `sluice audit`, the other commands of an operator, and what somebody with the database can hide.

use std::process::{Output, Stdio};

use ::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{FakeServer, Setup, tamper};
use tokio::io::AsyncWriteExt as _;

use crate::world::{World, passed, setup};

fn ended(output: &Output, code: i32) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    format!("{out}{err}")
}

/// The hash after `head ` in the line of the workspace.
fn head(told: &str) -> String {
    let line = told.lines().find(|line| line.starts_with("workspace acme:")).expect("it is told");
    line.rsplit_once("head ").expect("it has a head").1.trim().to_owned()
}

async fn tampering_shows(setup: Setup, url: &str) {
    let world = World::start(setup).await;
    let setup = world.sluice.setup();
    for label in ["one", "two", "three"] {
        let body = json!({"label": label, "role": "viewer"});
        world.must(Method::POST, "/api-tokens", body, 201).await;
    }
    let told = ended(&setup.output(&["audit", "verify"]).await, 0);
    assert!(told.contains("the installation's own chain: 1 events"), "{told}");
    let noted = head(&told);
    world.must(Method::POST, "/api-tokens", json!({"label": "four", "role": "viewer"}), 201).await;
    let check = ["audit", "verify", "--workspace", "acme", "--head", noted.as_str()];
    let told = ended(&setup.output(&check).await, 0);
    assert_ne!(head(&told), noted, "the log went on");

    let lines = ended(&setup.output(&["audit", "export", "--workspace", "acme"]).await, 0);
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let numbers: Vec<_> =
        events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=u64::try_from(events.len()).expect("few")).collect::<Vec<_>>());
    assert_eq!(events.last().map(|event| event["hash"].clone()), Some(head(&told).into()));
    let csv = ended(
        &setup.output(&["audit", "export", "--workspace", "acme", "--format", "csv"]).await,
        0,
    );
    assert_eq!(csv.lines().count(), events.len() + 1);
    assert!(csv.starts_with("seq,at,id,actor_kind") && !csv.contains("slu_"), "{csv}");

    // Cut off at the end: only who noted the head sees it.
    let newest = numbers.len();
    let cut = format!(
        "DELETE FROM admin_events WHERE workspace_id IS NOT NULL AND seq >= {}",
        newest - 1
    );
    tamper::admin_events(url, &cut).await;
    ended(&setup.output(&["audit", "verify", "--workspace", "acme"]).await, 0);
    let told = ended(&setup.output(&check).await, 1);
    assert!(told.contains("workspace acme: BROKEN") && told.contains("cut off"), "{told}");
    let change =
        "UPDATE admin_events SET actor_name = 'eve' WHERE workspace_id IS NOT NULL AND seq = 2";
    tamper::admin_events(url, change).await;
    let told = ended(&setup.output(&["audit", "verify"]).await, 1);
    assert!(told.contains("workspace acme: BROKEN: event 2 was changed"), "{told}");
    tamper::admin_events(
        url,
        "DELETE FROM admin_events WHERE workspace_id IS NOT NULL AND seq <= 2",
    )
    .await;
    let told = ended(&setup.output(&["audit", "verify"]).await, 1);
    assert!(told.contains("the events before 3 are missing"), "{told}");
    ended(&setup.output(&["audit", "verify", "--workspace", "nowhere"]).await, 1);
    ended(&setup.output(&["audit", "verify", "--workspace", "acme", "--head", "xyz"]).await, 1);
    world.sluice.stop().await;
}

#[tokio::test]
async fn tampering_shows_on_sqlite() {
    let setup = setup();
    let url = format!("sqlite://{}", setup.data_dir().join("sluice.db").display());
    tampering_shows(setup, &url).await;
}

#[tokio::test]
async fn tampering_shows_on_postgresql() {
    let database = FreshDatabase::postgres().await;
    let setup = setup().with("SLUICE_DATABASE_URL", database.url());
    tampering_shows(setup, database.url()).await;
    database.remove().await;
}

/// Runs a command with a line on its standard input.
async fn told_line(setup: &Setup, arguments: &[&str], line: &str) -> Output {
    let mut command = setup.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    drop(input);
    child.wait_with_output().await.expect("it ends")
}

#[tokio::test]
async fn a_leaked_token_that_an_operator_is_shown_stops_at_once() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let connected =
        world.connect("notes", &upstream.url(), json!({"version": "1", "default": "allow"})).await;
    let agent = connected.agent();
    assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    let arguments = ["admin", "revoke-token", "--token-stdin"];
    let setup = world.sluice.setup();
    let told = ended(&told_line(setup, &arguments, &connected.token).await, 0);
    for words in
        ["the grant `", "for the server `notes` of the workspace acme", "It is revoked now."]
    {
        assert!(told.contains(words), "`{words}` is missing in: {told}");
    }
    assert!(!told.contains(&connected.token), "{told}");
    let since = std::time::Instant::now();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    while agent.post(&world.sluice, call.clone()).await.status != StatusCode::UNAUTHORIZED {
        assert!(since.elapsed().as_secs_f32() < 1.0, "a revoked token still works");
    }
    let told = ended(&told_line(setup, &arguments, "slg_nonsense").await, 1);
    assert!(told.contains("no token of Sluice"), "{told}");
    world.sluice.stop().await;
}
