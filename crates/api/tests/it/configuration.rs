//! Policy as code over REST: the files go out and in as JSON, and a lost race is told with the plan.

use http::Method;
use serde_json::{Value, json};
use sluice_domain::Role;
use sluice_testkit::on_both;

use crate::common::Api;

fn files(api: &Api) -> Value {
    let main = format!(
        "sluice: 1\nworkspace: {{name: acme}}\nservers:\n  - name: s\n    upstream_url: {}\n    headers:\n      \
         X-Key: ${{env:KEY}}\n    policies:\n      - {{name: p, file: policies/p.json}}\n    grants:\n      - \
         {{label: g, policy: p}}\n",
        api.upstream.url()
    );
    json!({"workspace.yaml": main, "policies/p.json": "{\"version\":\"1\",\"default\":\"deny\"}\n"})
}

on_both! {
    async fn files_are_planned_applied_and_given_back(api: Api) {
        let admin = api.admin().await;
        let body = json!({"files": files(&api), "secrets": {"env:KEY": "UP-1234"}});
        let plan = admin.post("/configuration/plan", &body).await.must(200);
        assert!(!plan.text.contains("UP-1234"));
        let plan = plan.json();
        assert_eq!((&plan["summary"]["create"], &plan["refusal"]["code"]), (&json!(3), &json!("tokens_wanted")));
        let refused = admin.post("/configuration/apply", &body).await.must(409);
        assert_eq!(refused.problem().0, "tokens_wanted");
        assert_eq!(refused.json()["plan"]["summary"]["create"], 3);
        assert_eq!(admin.get("/servers").await.must(200).json()["items"], json!([]));
        let taking = json!({"files": files(&api), "secrets": {"env:KEY": "UP-1234"}, "take_tokens": true});
        let headers = [("content-type", "application/json"), ("idempotency-key", "run-1")];
        let done = admin.call(Method::POST, "/configuration/apply", &headers, taking.to_string()).await.must(200);
        assert_eq!(done.header("cache-control"), "no-store");
        let token = done.json()["tokens"][0]["token"].as_str().expect("a token").to_owned();
        assert!(token.starts_with("slg_"));
        // The answer was lost on its way: sent again, it is the same one.
        let again = admin.call(Method::POST, "/configuration/apply", &headers, taking.to_string()).await.must(200);
        assert_eq!(again.json(), done.json());
        let second = admin.post("/configuration/apply", &json!({"files": files(&api)})).await.must(200).json();
        assert_eq!(second["plan"]["summary"], json!({"create": 0, "update": 0, "delete": 0, "unchanged": 4, "orphan": 0}));
        let out = admin.get("/configuration").await.must(200).json();
        assert_eq!(out["files"]["policies/s/p.json"], files(&api)["policies/p.json"]);
        assert!(!out.to_string().contains("UP-1234"));
    }

    async fn a_hand_in_between_is_a_conflict_with_the_plan(api: Api) {
        let admin = api.admin().await;
        let mut body = json!({"files": files(&api), "secrets": {"env:KEY": "1"}, "take_tokens": true});
        admin.post("/configuration/apply", &body).await.must(200);
        let grants = admin.get("/servers").await.must(200).json();
        let server = grants["items"][0]["id"].as_str().expect("an id").to_owned();
        admin.change(Method::PATCH, &format!("/servers/{server}"), Some("*"), &json!({"on_drift": "deny"})).await.must(200);
        let drift = admin.post("/configuration/apply", &body).await.must(409);
        assert_eq!(drift.problem().0, "drift");
        let changes = drift.json()["plan"]["changes"].clone();
        let server = changes.as_array().expect("changes").iter().find(|one| one["kind"] == "server").expect("told");
        assert_eq!(server["drift"], "changed_by_hand");
        assert_eq!(server["fields"], json!([{"field": "settings.on_drift", "before": "deny", "after": "allow_and_flag"}]));
        body["overwrite_drift"] = true.into();
        admin.post("/configuration/apply", &body).await.must(200);
    }

    async fn faults_are_told_with_file_line_and_pointer(api: Api) {
        let admin = api.admin().await;
        let body = json!({"files": {"workspace.yaml": "sluice: 1\nservers:\n  - nmae: x\n"}});
        let told = admin.post("/configuration/plan", &body).await.must(422).json();
        let fault = &told["errors"][0];
        assert_eq!((&fault["file"], &fault["line"], &fault["pointer"], &fault["suggestion"]),
            (&json!("workspace.yaml"), &json!(3), &json!("/servers/0/nmae"), &json!("name")), "{told:#}");
        admin.post("/configuration/plan", &json!({"files": {}, "dry": true})).await.must(422);
        let huge = json!({"files": {"workspace.yaml": "x".repeat(9 << 20)}});
        admin.post("/configuration/apply", &huge).await.must(413);
    }

    async fn it_is_for_admins(api: Api) {
        api.admin().await;
        let manager = api.client("acme", "max@example.test", Role::PolicyManager).await;
        let body = json!({"files": files(&api)});
        manager.get("/configuration").await.must(403);
        manager.post("/configuration/plan", &body).await.must(403);
        manager.post("/configuration/apply", &body).await.must(403);
    }
}
