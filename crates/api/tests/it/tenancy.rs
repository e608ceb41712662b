//! Who may do what: nobody, strangers, and each role.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_domain::Role;
use sluice_testkit::on_both;
use utoipa::openapi::path::PathItem;

use crate::common::{Api, Client};

/// Every path and method of the OpenAPI document, with real ids of `acme` in it.
fn every_route(server: &str, policy: &str, grant: &str) -> Vec<(Method, String)> {
    let document = sluice_api::document();
    let id_of = |path: &str| {
        if path.contains("/policies/{id}") {
            policy.to_owned()
        } else if path.contains("/grants/{id}") {
            grant.to_owned()
        } else if path.contains("/servers/{id}") {
            server.to_owned()
        } else {
            // Approvals, members, invites, tokens and calls: an id that is nobody's.
            uuid::Uuid::now_v7().to_string()
        }
    };
    let methods = |item: &PathItem| {
        [
            (Method::GET, item.get.is_some()),
            (Method::POST, item.post.is_some()),
            (Method::PUT, item.put.is_some()),
            (Method::PATCH, item.patch.is_some()),
            (Method::DELETE, item.delete.is_some()),
        ]
    };
    let mut all = Vec::new();
    for (path, item) in &document.paths.paths {
        let filled = path.replace("{ws}", "acme").replace("{id}", &id_of(path));
        let filled = format!(
            "/api/v1{}",
            filled.replace("{tool}", "executePython").replace("{version}", "1")
        );
        let there = methods(item).into_iter().filter(|(_, there)| *there);
        all.extend(there.map(|(method, _)| (method, filled.clone())));
    }
    assert!(all.len() > 35, "the document lists the routes: {}", all.len());
    all
}

async fn probe(client: &Client<'_>, method: &Method, path: &str) -> StatusCode {
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    client.call(method.clone(), path, &headers, "{\"nonsense\": 1}").await.status
}

async fn things(admin: &Client<'_>) -> (String, String, String) {
    let server = admin.connect("sandbox").await;
    let document = json!({"version": "1", "default": "deny"});
    let body = json!({"name": "p", "document": document});
    let policy = admin.post(&format!("/servers/{server}/policies"), &body).await.must(201).json();
    let body = json!({"label": "g"});
    let grant = admin.post(&format!("/servers/{server}/grants"), &body).await.must(201).json();
    let id = |value: &Value| value["id"].as_str().expect("an id").to_owned();
    (server, id(&policy), id(&grant))
}

on_both! {
    async fn nobody_and_strangers_reach_nothing(api: Api) {
        let admin = api.admin().await;
        let (server, policy, grant) = things(&admin).await;
        let stranger = api.client("other", "bob@example.test", Role::Admin).await;
        let mut nobody = admin.clone();
        nobody.token = String::new();
        let mut forged = admin.clone();
        let last = if admin.token.ends_with('x') { 'y' } else { 'x' };
        forged.token = format!("{}{last}", &admin.token[..admin.token.len() - 1]);
        for (method, path) in every_route(&server, &policy, &grant) {
            for unknown in [&nobody, &forged] {
                let status = probe(unknown, &method, &path).await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
            }
            if path != "/api/v1/me" {
                let status = probe(&stranger, &method, &path).await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
                // Through their own workspace the ids lead nowhere either.
                let own = path.replace("/acme", "/other");
                let has_id = [&server, &policy, &grant].iter().any(|id| own.contains(id.as_str()));
                if has_id {
                    let status = probe(&stranger, &method, &own).await;
                    let hidden = [StatusCode::NOT_FOUND, StatusCode::UNPROCESSABLE_ENTITY];
                    assert!(hidden.contains(&status), "{method} {own}: {status}");
                }
            }
        }
        admin.get(&format!("/servers/{server}")).await.must(200);
        admin.get(&format!("/policies/{policy}")).await.must(200);
        assert!(admin.get(&format!("/grants/{grant}")).await.must(200).json()["revoked_at"].is_null());
    }

    async fn a_role_decides_before_the_body_is_looked_at(api: Api) {
        let admin = api.admin().await;
        let (server, policy, grant) = things(&admin).await;
        let viewer = api.client("acme", "vera@example.test", Role::Viewer).await;
        let manager = api.client("acme", "max@example.test", Role::PolicyManager).await;
        let reads = |path: &str| {
            path.ends_with("/check") || path.contains("/policies") && path.ends_with("/test") || path.ends_with("/simulate") || path.ends_with("/compare")
                || path.ends_with("preview-recommended")
                // One's own mail is everybody's own affair.
                || path.ends_with("/notification-preferences")
                || path.contains("/log-filters")
        };
        let for_admins = |path: &str| {
            ["/invites", "/api-tokens", "/admin-events", "/security-events", "/configuration", "/notification-endpoints", "/notification-deliveries", "/join-domains"].iter().any(|part| path.contains(part))
        };
        for (method, path) in every_route(&server, &policy, &grant) {
            let by_viewer = probe(&viewer, &method, &path).await;
            let by_manager = probe(&manager, &method, &path).await;
            let allowed_to_look = method == Method::GET && !for_admins(&path) || reads(&path);
            assert_eq!(by_viewer != StatusCode::FORBIDDEN, allowed_to_look, "viewer {method} {path}: {by_viewer}");
            let managed = ["/policies", "/tools/", "/approvals/", "/approval-exceptions/", "/limits/"].iter().any(|part| path.contains(part))
                || (method == Method::PATCH && path.contains("/grants/"));
            assert_eq!(
                by_manager != StatusCode::FORBIDDEN,
                allowed_to_look || managed,
                "policy manager {method} {path}: {by_manager}"
            );
        }
    }

    async fn a_revoked_or_expired_token_is_nobody(api: Api) {
        let admin = api.admin().await;
        let body = json!({"label": "short", "role": "viewer", "expires_at": "2026-11-30T13:00:00Z"});
        let made = admin.post("/api-tokens", &body).await.must(201).json();
        let mut short = admin.clone();
        short.token = made["token"].as_str().expect("a token").to_owned();
        short.get("/servers").await.must(200);
        api.clock.advance(chrono::TimeDelta::hours(1));
        short.get("/servers").await.must(401);
        let made = admin.post("/api-tokens", &json!({"label": "l", "role": "viewer"})).await.must(201).json();
        short.token = made["token"].as_str().expect("a token").to_owned();
        short.get("/servers").await.must(200);
        admin.delete(&format!("/api-tokens/{}", made["id"].as_str().expect("an id"))).await.must(204);
        short.get("/servers").await.must(401);
    }
}
