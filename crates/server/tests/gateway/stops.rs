//! Stops and restarts: nothing is lost, calls in flight end, readiness fails first.

use std::os::unix::fs::PermissionsExt as _;

use ::http::{Method, StatusCode};
use serde_json::json;
use sluice_testkit::{Behaviour, FakeServer, Sluice, http};

use crate::world::{World, decision, passed, setup};

#[tokio::test]
async fn a_restart_loses_no_setting_no_token_no_row_and_no_count() {
    nothing_is_lost(Sluice::terminate).await;
}

#[tokio::test]
async fn ctrl_c_loses_nothing_either() {
    nothing_is_lost(Sluice::interrupt).await;
}

/// Stops Sluice by a signal and starts it again on the same data directory.
async fn nothing_is_lost(signal: fn(&Sluice)) {
    let upstream = FakeServer::start().await;
    let mut world = World::start(setup()).await;
    let limit = json!({"counter": "c", "window": "day", "max": 2});
    let document =
        json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}}});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    for _ in 0..2 {
        assert!(passed(&agent.call(&world.sluice, "echo", json!({"a": 1})).await));
    }
    let mode = |name: &str| {
        let file = world.sluice.setup().data_dir().join(name);
        std::fs::metadata(file).expect(name).permissions().mode() & 0o777
    };
    assert_eq!((mode("."), mode("master.keys")), (0o700, 0o600));

    let setup = world.sluice.setup().clone();
    signal(&world.sluice);
    let (status, said) = world.sluice.ended().await;
    assert!(status.success(), "a clean stop ends with 0, not {status}\n{said}");
    world.sluice = setup.serve().await;
    let refused = agent.call(&world.sluice, "echo", json!({"a": 1})).await;
    assert_eq!(decision(&refused)["code"], "rate_limited", "{refused}");
    assert_eq!(world.calls("tool=echo", 3).await.len(), 3);
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_crash_loses_at_most_what_was_counted_since_the_last_writing() {
    let upstream = FakeServer::start().await;
    let mut world = World::start(setup()).await;
    let limit = json!({"counter": "crashing", "window": "day", "max": 3});
    let document =
        json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}}});
    let agent = world.connect("notes", &upstream.url(), document).await.agent();
    for _ in 0..2 {
        assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    }
    let file = world.sluice.setup().data_dir().join("counters.json");
    let written = async {
        // The file is replaced every few seconds, and nobody is told when.
        while !std::fs::read_to_string(&file).is_ok_and(|text| counts(&text) == 2) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(std::time::Duration::from_secs(30), written).await;
    in_time.expect("the counters are written");
    let setup = world.sluice.setup().clone();
    world.sluice.crash().await;
    world.sluice = setup.serve().await;
    assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    let refused = agent.call(&world.sluice, "echo", json!({})).await;
    assert_eq!(decision(&refused)["code"], "rate_limited", "{refused}");
    world.sluice.stop().await;
}

/// What the counter of the test above holds in a file of counters.
fn counts(text: &str) -> i64 {
    let file: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let counters = file["counters"].as_array().cloned().unwrap_or_default();
    let ours = counters.iter().filter(|one| one["name"].to_string().contains("crashing"));
    ours.flat_map(|one| one["buckets"].as_array().cloned().unwrap_or_default())
        .filter_map(|bucket| bucket[1].as_i64())
        .sum()
}

#[tokio::test]
async fn a_call_in_flight_ends_after_the_stop_signal() {
    let upstream = FakeServer::start().await;
    upstream.on_call("echo", Behaviour::Held("done".to_owned()));
    let mut world = World::start(setup()).await;
    let document = json!({"version": "1", "default": "allow"});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    let before = upstream.seen().len();
    let address = world.sluice.address();
    let (path, bearer) = (agent.path.clone(), agent.bearer.clone());
    let in_flight = tokio::spawn(async move {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let params = json!({"name": "echo", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        http::send(address, Method::POST, &path, &headers, call.to_string()).await
    });
    upstream.arrived(before + 1).await;

    world.sluice.terminate();
    // A signal arrives when it arrives: from then on nothing is ready.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while let Ok(answer) = http::send(address, Method::GET, "/readyz", &[], "").await {
        if answer.status == StatusCode::SERVICE_UNAVAILABLE {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "still ready: {answer:?}");
    }
    upstream.release(1);
    let answer = in_flight.await.expect("no panic").expect("an answer");
    assert!(passed(&answer.json()), "{}", answer.text());

    let setup = world.sluice.setup().clone();
    let (status, said) = world.sluice.ended().await;
    assert!(status.success(), "{status}\n{said}");
    world.sluice = setup.serve().await;
    assert_eq!(world.calls("tool=echo&outcome=allowed", 1).await.len(), 1);
    world.sluice.stop().await;
}

#[tokio::test]
async fn logs_hold_no_token_and_are_json_when_asked() {
    let upstream = FakeServer::start().await;
    let world =
        World::start(setup().with("SLUICE_LOG_FORMAT", "json").with("SLUICE_LOG", "debug")).await;
    let document = json!({"version": "1", "default": "allow"});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    assert!(passed(&agent.call(&world.sluice, "echo", json!({"password": "p-BBBB"})).await));
    world.calls("tool=echo", 1).await;
    let (token, grant) = (world.token.clone(), connected.token.clone());
    world.sluice.terminate();
    let (_, said) = world.sluice.ended().await;
    for secret in [token.as_str(), grant.as_str(), "p-BBBB"] {
        assert!(!said.contains(secret), "a secret is in the log");
    }
    for line in said.lines() {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(line);
        assert!(parsed.is_ok(), "not JSON: {line}");
    }
}
