//! What two people edit at once: the second is told, with the other's change, whatever it is.

use http::Method;
use serde_json::{Value, json};
use sluice_testkit::{WebhookSink, on_both};

use crate::common::{Api, Client};

/// Everything that has an `ETag`: how it is edited, and what an edit leaves behind.
async fn tagged(
    admin: &Client<'_>,
    sink: &WebhookSink,
) -> Vec<(Method, String, fn(&str) -> Value, &'static str)> {
    let server = admin.connect("sandbox").await;
    let id = |made: Value| made["id"].as_str().expect("an id").to_owned();
    let policy = json!({"name": "p", "document": {"version": "1", "default": "deny"}});
    let policy =
        id(admin.post(&format!("/servers/{server}/policies"), &policy).await.must(201).json());
    let grant = json!({"label": "agent"});
    let grant = id(admin.post(&format!("/servers/{server}/grants"), &grant).await.must(201).json());
    let hook = json!({"name": "ops", "kind": "webhook", "url": sink.url("hook")});
    let hook = id(admin.post("/notification-endpoints", &hook).await.must(201).json());
    let name: fn(&str) -> Value = |text| json!({"name": text});
    vec![
        (Method::PATCH, format!("/servers/{server}"), name, "/name"),
        (
            Method::PUT,
            format!("/policies/{policy}"),
            |text| json!({"document": {"version": "1", "default": "deny", "description": text}}),
            "/document/description",
        ),
        (Method::PATCH, format!("/grants/{grant}"), |text| json!({"label": text}), "/label"),
        (Method::PATCH, format!("/notification-endpoints/{hook}"), name, "/name"),
    ]
}

on_both! {
    async fn the_second_of_two_edits_is_answered_with_the_first(api: Api) {
        let admin = api.admin().await;
        let sink = WebhookSink::start().await;
        for (method, path, edit, place) in tagged(&admin, &sink).await {
            let read = admin.get(&path).await.must(200).header("etag").to_owned();
            assert!(read.starts_with('"'), "{path}: {read}");
            let missing = admin.change(method.clone(), &path, None, &edit("mine")).await.must(428);
            assert_eq!(missing.problem().0, "if_match_required", "{path}");
            let first = admin.change(method.clone(), &path, Some(&read), &edit("theirs")).await.must(200);
            let tag = first.header("etag").to_owned();
            assert_ne!(tag, read, "{path}");
            let stale = admin.change(method.clone(), &path, Some(&read), &edit("mine")).await.must(412);
            assert_eq!(stale.problem().0, "stale", "{path}");
            let told = stale.json();
            assert_eq!(told["current"].pointer(place), Some(&json!("theirs")), "{path}: {told}");
            assert_eq!(format!("\"{}\"", told["current_version"]), tag, "{path}");
            assert_eq!(told["current"], admin.get(&path).await.must(200).json(), "{path}: whole, and nothing lost");
            admin.change(method.clone(), &path, Some(&tag), &edit("mine")).await.must(200);
            admin.change(method, &path, Some("*"), &edit("last")).await.must(200);
        }
    }
}
