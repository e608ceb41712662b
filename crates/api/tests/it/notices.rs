//! Endpoints, their messages, and what people set about notifications, by REST.

use http::Method;
use serde_json::json;
use sluice_domain::Role;
use sluice_testkit::{WebhookSink, on_both};

use crate::common::Api;

const ENDPOINTS: &str = "/notification-endpoints";

on_both! {
    async fn an_endpoint_is_made_tested_edited_and_removed(api: Api) {
        let admin = api.admin().await;
        let sink = WebhookSink::start().await;
        let odd = admin.post(ENDPOINTS, &json!({"name": "", "kind": "webhook", "url": "file:///x", "events": ["test"]})).await;
        assert_eq!(odd.must(422).json()["errors"].as_array().map(Vec::len), Some(3));
        admin.post(ENDPOINTS, &json!({"name": "x", "kind": "pager", "url": sink.url("x")})).await.must(422);
        let body = json!({"name": "ops", "kind": "webhook", "url": sink.url("hook?k=tok-9x"), "events": ["approval.asked"]});
        let made = admin.post(ENDPOINTS, &body).await.must(201).json();
        let secret = made["secret"].as_str().expect("shown once").to_owned();
        assert!(secret.starts_with("whsec_"));
        let id = made["id"].as_str().expect("an id");
        let one = format!("{ENDPOINTS}/{id}");
        let shown = admin.get(&one).await.must(200);
        assert!(!shown.text.contains(&secret) && !shown.text.contains("tok-9x"), "{}", shown.text);
        assert_eq!(shown.headers["etag"], "\"1\"");
        let test = admin.post(&format!("{one}/test"), &json!({})).await.must(200).json();
        assert_eq!((test["status"].as_str(), test["attempts"][0]["status"].as_u64(), test["event"].as_str()), (Some("sent"), Some(204), Some("test")));
        let off = json!({"enabled": false});
        admin.change(Method::PATCH, &one, None, &off).await.must(428);
        admin.change(Method::PATCH, &one, Some("\"9\""), &off).await.must(412);
        let edited = admin.change(Method::PATCH, &one, Some("\"1\""), &off).await.must(200).json();
        assert_eq!((edited["enabled"].as_bool(), edited["revision"].as_i64(), edited["events"].clone()), (Some(false), Some(2), json!(["approval.asked"])));
        admin.post(&format!("{one}/test"), &json!({})).await.must(409);
        let rotated = admin.post(&format!("{one}/rotate-secret"), &json!({})).await.must(200).json();
        assert_ne!(rotated["secret"], secret.as_str());
        let log = admin.get("/notification-deliveries?status=sent").await.must(200).json();
        let message = log["items"][0]["id"].as_str().expect("an id").to_owned();
        let again = admin.post(&format!("/notification-deliveries/{message}/replay"), &json!({})).await.must(200).json();
        assert_eq!(again["status"], "waiting");
        admin.post(&format!("/notification-deliveries/{message}/replay"), &json!({})).await.must(409);
        admin.get(&format!("/notification-deliveries/{message}")).await.must(200);
        let slack = json!({"name": "chat", "kind": "slack", "url": sink.url("s")});
        let slack = admin.post(ENDPOINTS, &slack).await.must(201).json();
        assert!(slack["secret"].is_null() && slack["events"].as_array().is_some_and(|all| all.len() == 4));
        let rotate = format!("{ENDPOINTS}/{}/rotate-secret", slack["id"].as_str().expect("an id"));
        admin.post(&rotate, &json!({})).await.must(409);
        admin.delete(&one).await.must(204);
        admin.get(&one).await.must(404);
        // What is not there is 404, whatever else is missing or wrong.
        admin.change(Method::PATCH, &one, None, &off).await.must(404);
        admin.change(Method::PATCH, &one, Some("\"1\""), &json!({"nothing": 1})).await.must(404);
        assert_eq!(admin.get(ENDPOINTS).await.must(200).json()["items"].as_array().map(Vec::len), Some(1));
    }

    async fn escalation_is_an_admins_and_mail_ones_own(api: Api) {
        let admin = api.admin().await;
        let viewer = api.client("acme", "vera@example.test", Role::Viewer).await;
        let path = "/notification-settings";
        let before = viewer.get(path).await.must(200).json();
        assert_eq!(before, json!({"escalate_after_seconds": null, "mail_available": false, "mail_me": true}));
        for odd in ["soon", "59s", "8d"] {
            let told = admin.change(Method::PATCH, path, None, &json!({"escalate_after": odd})).await.must(422);
            assert_eq!(told.json()["pointer"], "/escalate_after", "{odd}");
        }
        admin.change(Method::PATCH, path, None, &json!({"escalate_after": "15m"})).await.must(200);
        assert_eq!(viewer.get(path).await.must(200).json()["escalate_after_seconds"], 900);
        admin.change(Method::PATCH, path, None, &json!({"escalate_after": null})).await.must(200);
        let own = json!({"mail_me": false});
        let after = viewer.change(Method::PATCH, "/notification-preferences", None, &own).await.must(200).json();
        assert_eq!(after, json!({"escalate_after_seconds": null, "mail_available": false, "mail_me": false}));
        assert_eq!(admin.get(path).await.must(200).json()["mail_me"], true);
    }
}
