//! The workspace itself over REST.

use http::Method;
use serde_json::json;
use sluice_domain::Role;
use sluice_testkit::on_both;

use crate::common::Api;

on_both! {
    async fn a_workspace_is_told_changed_and_deleted(api: Api) {
        let admin = api.admin().await;
        let viewer = api.client("acme", "vera@example.test", Role::Viewer).await;
        admin.connect("sandbox").await;
        let told = viewer.get("").await.must(200).json();
        assert_eq!((&told["slug"], &told["role"], &told["servers"]["used"]), (&json!("acme"), &json!("viewer"), &json!(1)));
        assert_eq!((&told["calls_per_day"], &told["servers"]["most"], &told["members"]["used"]), (&json!(null), &json!(200), &json!(2)));
        let patch = async |body: &serde_json::Value| {
            let headers = [("content-type", "application/json")];
            admin.call(Method::PATCH, "", &headers, body.to_string()).await
        };
        // One that is refused changes nothing of the other.
        let refused = patch(&json!({"name": "New name", "slug": "NOT a slug"})).await.must(422);
        assert_eq!(refused.problem().0, "bad_slug");
        assert_eq!(viewer.get("").await.must(200).json()["name"], told["name"]);
        patch(&json!({"name": "New name"})).await.must(204);
        assert_eq!(viewer.get("").await.must(200).json()["name"], "New name");
        patch(&json!({"nam": "x"})).await.must(422);
        for confirm in ["", "?confirm=New%20name", "?confirm=acme2"] {
            admin.call(Method::DELETE, confirm, &[], "").await.must(422);
        }
        viewer.get("").await.must(200);
        let deleted = admin.call(Method::DELETE, "?confirm=acme", &[], "").await.must(200).json();
        assert_eq!(deleted["erased_at"], "2026-12-14T12:00:00Z");
        for client in [&admin, &viewer] {
            // Its tokens are nobody's.
            client.get("").await.must(401);
            client.get("/servers").await.must(401);
        }
    }
}
