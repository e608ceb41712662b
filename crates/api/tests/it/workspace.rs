//! The workspace itself over REST.

use http::Method;
use serde_json::json;
use sluice_domain::Role;
use sluice_store::users;
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

on_both! {
    async fn domains_are_opened_and_the_provider_is_chosen_over_rest(api: Api) {
        let admin = api.admin().await;
        let viewer = api.client("acme", "vera@example.test", Role::Viewer).await;
        assert_eq!(admin.get("/join-domains").await.must(200).json(), json!({"items": []}));
        viewer.get("/join-domains").await.must(403);
        let add = json!({"domain": "example.test"});
        let refused = admin.post("/join-domains", &add).await.must(422);
        assert_eq!(refused.problem(), ("unconfirmed_address".to_owned(), "/domain".to_owned()));
        let mut tx = api.db.begin().await.expect("begins");
        let user = users::find_by_email(&mut tx.conn(), "ann@example.test").await.expect("answers").expect("there");
        users::set_verified(&mut tx.conn(), user.id, api.clock.now()).await.expect("notes");
        tx.commit().await.expect("commits");
        let made = admin.post("/join-domains", &add).await.must(201).json();
        assert_eq!((&made["domain"], &made["role"]), (&json!("example.test"), &json!("viewer")));
        assert_eq!(admin.post("/join-domains", &add).await.must(409).problem().0, "domain_taken");
        assert_eq!(admin.get("/join-domains").await.must(200).json(), json!({"items": [made]}));
        let path = format!("/join-domains/{}", made["id"].as_str().expect("an id"));
        admin.delete(&path).await.must(204);
        admin.delete(&path).await.must(404);
        let patch = async |body: serde_json::Value| {
            let headers = [("content-type", "application/json")];
            admin.call(Method::PATCH, "", &headers, body.to_string()).await
        };
        let refused = patch(json!({"name": "Other", "required_provider": "nobody"})).await.must(422);
        assert_eq!(refused.problem(), ("unknown_provider".to_owned(), "/required_provider".to_owned()));
        assert_ne!(admin.get("").await.must(200).json()["name"], "Other", "all or nothing");
        patch(json!({"required_provider": null})).await.must(204);
        assert_eq!(admin.get("").await.must(200).json()["required_provider"], json!(null));
    }
}
