//! Limits over REST: how they stand, page by page, and setting one back.

use serde_json::{Value, json};
use sluice_control::Bounds;
use sluice_domain::{Amount, GrantId, ReservationId, Reset, Role, Scope, WorkspaceId};
use sluice_limits::{CounterKey, Counters, Demand, RedisOptions};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{RedisServer, TestClock, on_both};

use crate::common::{Api, Client};

/// A grant under a policy with two limits.
async fn limited(admin: &Client<'_>) -> (String, String) {
    let server = admin.connect("sandbox").await;
    let document = json!({"version": "1", "default": "deny", "tools": {"executePython": {"limits": [
        {"counter": "runs", "window": "minute", "max": 10},
        {"counter": "money", "window": "day", "max": 100.5, "scope": "server", "reset": "calendar",
         "increment_from": "args.amount", "on_unavailable": "allow"}]}}});
    let body = json!({"name": "p", "document": document});
    let policy = admin.post(&format!("/servers/{server}/policies"), &body).await.must(201).json();
    let body = json!({"label": "agent", "policy_id": policy["id"]});
    let grant = admin.post(&format!("/servers/{server}/grants"), &body).await.must(201).json();
    (server, grant["id"].as_str().expect("an id").to_owned())
}

async fn charge(api: &Api, workspace: WorkspaceId, grant: &str, count: u32) {
    let key = CounterKey {
        counter: "runs".to_owned(),
        window: "minute".parse().expect("a window"),
        reset: Reset::Sliding,
        scope: Scope::Grant,
        owner: grant.parse::<GrantId>().expect("an id").to_string(),
    };
    let demand = [Demand { key, max: Amount::whole(10), amount: Amount::whole(count) }];
    let told = api.counters.reserve(workspace, ReservationId::new(), &demand).await;
    assert!(told.expect("available").granted);
}

async fn workspace(admin: &Client<'_>) -> WorkspaceId {
    let me = admin.get("/api/v1/me").await.must(200).json();
    me["workspaces"][0]["id"].as_str().expect("an id").parse().expect("an id")
}

on_both! {
    async fn a_limit_is_told_live_and_set_back(api: Api) {
        let admin = api.admin().await;
        let (server, grant) = limited(&admin).await;
        let workspace = workspace(&admin).await;
        charge(&api, workspace, &grant, 9).await;
        let listed = admin.get("/limits").await.must(200).json();
        assert_eq!((listed["items"].as_array().map(Vec::len), &listed["next_cursor"]), (Some(2), &Value::Null));
        let runs = &listed["items"][0];
        assert_eq!((&runs["used"], &runs["left"], &runs["max"]), (&json!(9), &json!(1), &json!(10)));
        assert_eq!((&runs["counter"], &runs["window"], &runs["reset"], &runs["scope"]), (&json!("runs"), &json!("minute"), &json!("sliding"), &json!("grant")));
        assert_eq!((&runs["grant_id"], &runs["grant_label"], &runs["used_percent"]), (&json!(grant), &json!("agent"), &json!(90)));
        assert_eq!(runs["rules"], json!(["/tools/executePython/limits/0"]));
        assert_eq!((&runs["resets_in_seconds"], &runs["resets_at"]), (&json!(63), &json!("2026-11-30T12:01:03Z")));
        assert_eq!(runs["retry_after_seconds"], Value::Null, "one more fits");
        let money = &listed["items"][1];
        assert_eq!((&money["max"], &money["left"], &money["increment_from"]), (&json!(100.5), &json!(100.5), &json!("args.amount")));
        assert_eq!((&money["grant_id"], &money["server_id"], &money["on_unavailable"]), (&Value::Null, &json!(server), &json!("allow")));
        assert_eq!((&money["resets_in_seconds"], &money["resets_at"]), (&Value::Null, &Value::Null));

        charge(&api, workspace, &grant, 1).await;
        let near = admin.get("/limits?near=80").await.must(200).json();
        assert_eq!(near["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(near["items"][0]["retry_after_seconds"], 63, "nothing fits before");

        let which = json!({"counter": "runs", "window": "minute", "scope": "grant", "grant_id": grant});
        let was = admin.post("/limits/reset", &which).await.must(200).json();
        assert_eq!(was, json!({"used_before": 10}));
        let listed = admin.get(&format!("/limits?grant={grant}")).await.must(200).json();
        assert_eq!(listed["items"][0]["used"], 0);
        let events = admin.get("/admin-events?action=limit.reset").await.must(200).json();
        assert_eq!(events["items"][0]["object_name"], "runs");
    }

    async fn pages_filters_and_faults(api: Api) {
        let admin = api.admin().await;
        let (server, grant) = limited(&admin).await;
        let first = admin.get("/limits?limit=1").await.must(200).json();
        let cursor = first["next_cursor"].as_str().expect("there is more");
        let second = admin.get(&format!("/limits?limit=1&cursor={cursor}")).await.must(200).json();
        assert_eq!((&second["items"][0]["counter"], &second["next_cursor"]), (&json!("money"), &Value::Null));
        for path in [format!("/limits?server={server}"), format!("/limits?grant={grant}")] {
            assert_eq!(admin.get(&path).await.must(200).json()["items"].as_array().map(Vec::len), Some(2), "{path}");
        }
        let unknown = uuid::Uuid::now_v7();
        for filter in ["server", "grant", "policy"] {
            admin.get(&format!("/limits?{filter}={unknown}")).await.must(404);
        }
        for (query, pointer) in [("near=0", "/near"), ("near=101", "/near"), ("limit=0", "/limit"), ("cursor=x", "/cursor"), ("who=me", "/who")] {
            let refused = admin.get(&format!("/limits?{query}")).await.must(422);
            assert_eq!(refused.problem().1, pointer, "{query}");
        }
        let odd = json!({"counter": "C", "window": "minute", "scope": "grant", "grant_id": grant});
        assert_eq!(admin.post("/limits/reset", &odd).await.must(422).problem().1, "/counter");
        let none = json!({"counter": "c", "window": "minute", "scope": "grant", "grant_id": unknown});
        admin.post("/limits/reset", &none).await.must(404);
        let viewer = api.client("acme", "vera@example.test", Role::Viewer).await;
        viewer.get("/limits").await.must(200);
        viewer.post("/limits/reset", &none).await.must(403);
    }
}

#[tokio::test]
async fn with_redis_away_the_answer_says_so_at_once() {
    let mut redis = RedisServer::start();
    let counters =
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("an address");
    let fresh = FreshDatabase::sqlite();
    let clock = TestClock::at("2026-11-30T12:00:00Z");
    let api = Api::with(fresh.connect().await, Bounds::default(), clock, counters).await;
    let admin = api.admin().await;
    let (_, grant) = limited(&admin).await;
    redis.kill();
    let which = json!({"counter": "runs", "window": "minute", "scope": "grant", "grant_id": grant});
    for answer in [
        admin.get("/limits").await,
        admin.get("/limits?near=80").await,
        admin.post("/limits/reset", &which).await,
    ] {
        let problem = answer.must(503);
        assert_eq!(problem.problem().0, "unavailable");
        assert!(problem.text.contains("counters' store"), "{}", problem.text);
    }
}
