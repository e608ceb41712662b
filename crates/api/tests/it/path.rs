//! The whole path by script: server, tools, rule, grant, log.

use http::Method;
use serde_json::json;
use sluice_testkit::on_both;

use crate::common::Api;

on_both! {
    async fn a_script_goes_the_whole_path(api: Api) {
        let admin = api.admin().await;
        let me = admin.get("/api/v1/me").await.must(200).json();
        assert_eq!(me["user"]["email"], "ann@example.test");
        assert_eq!(me["workspaces"][0]["slug"], "acme");
        assert_eq!(me["workspaces"][0]["role"], "admin");

        let body = json!({"name": "sandbox", "upstream_url": api.upstream.url()});
        let made = admin.post("/servers", &body).await.must(201);
        let server = made.json();
        let id = server["id"].as_str().expect("an id");
        assert_eq!(server["proxy_url"], format!("http://localhost:8080/mcp/{id}"));
        assert_eq!(made.header("location"), format!("/api/v1/workspaces/acme/servers/{id}"));

        let tools = admin.get(&format!("/servers/{id}/tools")).await.must(200).json();
        let python = tools["items"].as_array().expect("items").iter()
            .find(|tool| tool["name"] == "executePython").expect("it is listed");
        assert_eq!((&python["category"], &python["severity"]), (&json!("Execute"), &json!("High")));
        assert!(python["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()));
        assert_eq!(python["status"], "current");
        assert_eq!(python["recommended"]["tools"]["executePython"]["limits"][0]["max"], 10);

        let press = format!("/servers/{id}/tools/executePython/apply-recommended");
        let applied = admin.post(&press, &json!({"rest": "deny"})).await.must(200).json();
        let policy = &applied["policy"];
        assert_eq!(policy["version"], 1);
        assert_eq!(policy["document"]["default"], "deny");
        assert_eq!(policy["document"]["tools"]["executePython"]["limits"][0]["counter"],
            "executepython_rate");
        let again = admin.post(&press, &json!({})).await.must(200).json();
        assert_eq!((&again["policy"]["version"], &again["change"]["changed"]), (&json!(1), &json!(false)));

        let body = json!({"label": "agent", "policy_id": policy["id"]});
        let granted = admin.post(&format!("/servers/{id}/grants"), &body).await.must(201);
        assert_eq!(granted.header("cache-control"), "no-store");
        let granted = granted.json();
        let token = granted["token"].as_str().expect("a token");
        assert!(token.starts_with("slg_"));
        let grants = admin.get(&format!("/servers/{id}/grants")).await.must(200);
        assert!(!grants.text.contains(token), "a token is shown once");
        assert_eq!(grants.json()["items"][0]["last4"], token[token.len() - 4..]);

        let calls = admin.get("/calls?outcome=limited&limit=1000").await.must(200).json();
        assert_eq!(calls, json!({"items": [], "next_cursor": null}));
        let csv = admin.get("/calls.csv").await.must(200);
        assert!(csv.text.starts_with("id,at,server_id"));
        assert_eq!(admin.get("/calls.ndjson").await.must(200).text, "");
    }

    async fn a_policy_is_edited_by_two_and_nothing_is_lost(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let text = r#"{"version": "1", "default": "deny", "tools": {"read_file": {"require": [{"conditions": [{"path": "args.n", "op": "lte", "value": 1.10}]}]}}}"#;
        let body = format!(r#"{{"name": "p", "document": {text}}}"#);
        let json_type = [("content-type", "application/json")];
        let made = admin.call(Method::POST, &format!("/servers/{id}/policies"), &json_type, body).await;
        let made = made.must(201);
        assert!(made.text.contains(text), "the text that was sent is kept: {}", made.text);
        assert_eq!(made.header("etag"), "\"1\"");
        let path = format!("/policies/{}", made.json()["id"].as_str().expect("an id"));
        let next = |n: u8| json!({"document": {"version": "1", "default": "deny", "description": n.to_string()}});

        let missing = admin.change(Method::PUT, &path, None, &next(2)).await.must(428);
        assert_eq!(missing.problem().0, "if_match_required");
        admin.change(Method::PUT, &path, Some("\"1\""), &next(2)).await.must(200);
        let stale = admin.change(Method::PUT, &path, Some("\"1\""), &next(3)).await.must(412);
        assert_eq!(stale.json()["current"]["document"]["description"], "2");
        assert_eq!(stale.json()["current_version"], 2);
        let over = admin.change(Method::PUT, &path, Some("*"), &next(3)).await.must(200);
        assert_eq!(over.header("etag"), "\"3\"");

        let back = admin.post(&format!("{path}/rollback"), &json!({"version": 1})).await.must(200);
        assert!(back.text.contains(text), "version 1 again: {}", back.text);
        assert_eq!(back.json()["version"], 4);
        let versions = admin.get(&format!("{path}/versions?limit=3")).await.must(200).json();
        let numbers: Vec<_> = versions["items"].as_array().expect("items").iter()
            .map(|item| item["version"].clone()).collect();
        assert_eq!(numbers, [4, 3, 2]);
        let cursor = versions["next_cursor"].as_str().expect("more");
        let rest = admin.get(&format!("{path}/versions?limit=3&cursor={cursor}")).await.must(200).json();
        assert_eq!(rest["items"][0]["version"], 1);
        assert!(rest["next_cursor"].is_null());
    }

    async fn a_document_is_checked_and_tried_before_it_is_saved(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let bad = json!({"document": {"version": "1", "default": "denny", "tolls": {}}});
        let path = format!("/servers/{id}/policies/check");
        let checked = admin.post(&path, &bad).await.must(200).json();
        assert_eq!(checked["ok"], false);
        let problems = checked["problems"].as_array().expect("problems");
        assert!(problems.len() >= 2, "all at once: {problems:#?}");
        let body = json!({"name": "p", "document": bad["document"]});
        let refused = admin.post(&format!("/servers/{id}/policies"), &body).await.must(422);
        let errors = refused.json()["errors"].as_array().expect("errors").clone();
        assert!(errors.iter().all(|error| error["pointer"].as_str()
            .is_some_and(|pointer| pointer.starts_with("/document"))), "{errors:#?}");

        let document = json!({"version": "1", "default": "deny", "tools": {"read_file": {}}});
        let calls = json!([{"tool": "read_file", "arguments": {"path": "a"}}, {"tool": "delete_file"}]);
        let body = json!({"document": document, "calls": calls});
        let path = format!("/servers/{id}/policies/simulate");
        let tried = admin.post(&path, &body).await.must(200).json();
        assert_eq!((&tried["allowed"], &tried["refused"]), (&json!(1), &json!(1)), "{tried:#}");
        assert_eq!(tried["items"][1]["code"], "default_deny");
    }

    async fn policy_tests_run_over_rest(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let document = json!({"version": "1", "default": "deny", "tools": {"read_file": {}}});
        let body = json!({"name": "p", "document": document});
        let made = admin.post(&format!("/servers/{id}/policies"), &body).await.must(201).json();
        let path = format!("/policies/{}/test", made["id"].as_str().expect("an id"));
        let cases = json!([
            {"name": "reads", "tool": "read_file", "arguments": {}, "expect": "allow"},
            {"name": "wrong", "tool": "delete_file", "expect": {"outcome": "deny", "code": "no_policy"}},
        ]);
        let report = admin.post(&path, &json!({"cases": cases})).await.must(200).json();
        assert_eq!((&report["passed"], &report["failed"]), (&json!(1), &json!(1)), "{report:#}");
        assert_eq!(report["results"][1]["name"], "wrong");
        let other = json!({"cases": cases, "document": {"version": "1", "default": "deny"}});
        let report = admin.post(&path, &other).await.must(200).json();
        assert_eq!(report["failed"], 2);
        admin.post(&path, &json!({"cases": [{"tool": 1}]})).await.must(422);

        // A document that is not saved, and belongs to no policy yet.
        let path = format!("/servers/{id}/policies/test");
        let unsaved = json!({"cases": cases, "document": {"version": "1", "default": "allow"}});
        let report = admin.post(&path, &unsaved).await.must(200).json();
        assert_eq!((&report["passed"], &report["failed"]), (&json!(1), &json!(1)), "{report:#}");
        let (_, pointer) = admin.post(&path, &json!({"cases": cases})).await.must(422).problem();
        assert_eq!(pointer, "/document");
        let bad = json!({"cases": cases, "document": {"version": "2", "default": "deny"}});
        let (_, pointer) = admin.post(&path, &bad).await.must(422).problem();
        assert_eq!(pointer, "/document/version");
    }

    async fn trials_honour_what_the_server_does_with_arguments_that_do_not_fit(api: Api) {
        let schema = json!({"type": "object", "required": ["path"],
            "properties": {"path": {"type": "string"}}, "additionalProperties": false});
        let tool = json!({"name": "read_file", "description": "Read a file", "inputSchema": schema});
        api.upstream.tools(vec![tool]);
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let server = format!("/servers/{id}");
        let calls = json!([
            {"tool": "read_file", "arguments": {"path": "a"}},
            {"tool": "read_file", "arguments": {"path": 7}},
            {"tool": "read_file"},
        ]);
        let document = json!({"version": "1", "default": "deny", "tools": {"read_file": {}}});
        let body = json!({"document": document, "calls": calls});
        let path = format!("{server}/policies/simulate");
        for (setting, allowed, refused) in [("log", 3, 0), ("deny", 1, 2), ("off", 3, 0)] {
            let change = json!({"validate_arguments": setting});
            admin.change(Method::PATCH, &server, Some("*"), &change).await.must(200);
            let tried = admin.post(&path, &body).await.must(200).json();
            assert_eq!(
                (&tried["allowed"], &tried["refused"]), (&json!(allowed), &json!(refused)),
                "{setting}: {tried:#}"
            );
            if setting == "deny" {
                assert_eq!(tried["items"][1]["code"], "arguments_invalid");
                assert_eq!(tried["items"][1]["rule"], "(schema)");
            }
        }
    }

    async fn versions_are_compared_over_rest(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let deny = json!({"version": "1", "default": "deny"});
        let body = json!({"name": "p", "document": deny});
        let made = admin.post(&format!("/servers/{id}/policies"), &body).await.must(201).json();
        let path = format!("/policies/{}", made["id"].as_str().expect("an id"));
        let next = json!({"document": {"version": "1", "default": "allow"}});
        admin.change(Method::PUT, &path, Some("*"), &next).await.must(200);
        let path = format!("{path}/compare");
        for body in [json!({"before": 1, "after": 2}), json!({"document": deny, "log": {"limit": 5}})] {
            let compared = admin.post(&path, &body).await.must(200).json();
            assert_eq!((&compared["total"], &compared["items"]), (&json!(0), &json!([])), "{compared:#}");
        }
        for (body, place) in [
            (json!({}), "/after"),
            (json!({"after": 1, "document": deny}), "/document"),
            (json!({"document": {"version": "2", "default": "deny"}}), "/document/version"),
        ] {
            let (_, pointer) = admin.post(&path, &body).await.must(422).problem();
            assert!(place.starts_with(&pointer) && !pointer.is_empty(), "{body}: {pointer}");
        }
        admin.post(&path, &json!({"after": 9})).await.must(404);
    }

    async fn a_tag_that_is_sent_is_never_ignored(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let document = json!({"version": "1", "default": "deny"});
        let body = json!({"name": "p", "document": document});
        let made = admin.post(&format!("/servers/{id}/policies"), &body).await.must(201).json();
        let path = format!("/policies/{}", made["id"].as_str().expect("an id"));
        let next = json!({"document": {"version": "1", "default": "allow"}});
        admin.change(Method::PUT, &path, Some("*"), &next).await.must(200);
        let old = Some("\"1\"");
        let back = json!({"version": 1});
        admin.change(Method::POST, &format!("{path}/rollback"), old, &back).await.must(412);
        admin.change(Method::DELETE, &path, old, &json!(null)).await.must(412);
        admin.change(Method::DELETE, &path, Some("\"2\""), &json!(null)).await.must(204);
        let server = format!("/servers/{id}");
        admin.change(Method::DELETE, &server, Some("\"99\""), &json!(null)).await.must(412);
        // What is not there is 404, with or without a tag.
        let gone = format!("/policies/{}", uuid::Uuid::now_v7());
        admin.change(Method::PUT, &gone, None, &json!({"x": 1})).await.must(404);
        let gone = format!("/grants/{}", uuid::Uuid::now_v7());
        admin.change(Method::PATCH, &gone, None, &json!({"x": 1})).await.must(404);
    }

    async fn what_was_made_says_where_it_is(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let policy = json!({"name": "p", "document": {"version": "1", "default": "deny"}});
        let made = [
            admin.post(&format!("/servers/{id}/policies"), &policy).await.must(201),
            admin.post(&format!("/servers/{id}/grants"), &json!({"label": "g"})).await.must(201),
        ];
        for made in made {
            let found = admin.get(made.header("location")).await.must(200);
            assert_eq!((&found.json()["id"], found.header("etag")), (&made.json()["id"], made.header("etag")));
        }
    }

    async fn one_of_several_tags_is_enough_and_a_weak_one_is_none(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let path = format!("/servers/{id}");
        let tag = admin.get(&path).await.must(200).header("etag").to_owned();
        let body = |name: &str| json!({"name": name});
        for stale in [format!("W/{tag}"), "\"x\"".to_owned(), "\"98\", \"99\"".to_owned()] {
            let refused = admin.change(Method::PATCH, &path, Some(&stale), &body("no")).await.must(412);
            assert_eq!(refused.json()["current"]["name"], "sandbox", "{stale}");
        }
        let list = format!("\"99\", W/\"1\", {tag}");
        admin.change(Method::PATCH, &path, Some(&list), &body("yes")).await.must(200);
        admin.change(Method::DELETE, &path, Some(&list), &json!(null)).await.must(412);
        admin.change(Method::PATCH, &path, Some("nonsense"), &body("no")).await.must(412);
    }

    async fn what_an_upstream_address_may_hold_is_for_admins(api: Api) {
        let admin = api.admin().await;
        let url = format!("{}?token=abcSECRETQ", api.upstream.url());
        let body = json!({"name": "s", "upstream_url": url});
        let made = admin.post("/servers", &body).await.must(201).json();
        let path = format!("/servers/{}", made["id"].as_str().expect("an id"));
        assert!(admin.get(&path).await.must(200).text.contains("abcSECRETQ"));
        for role in [sluice_domain::Role::PolicyManager, sluice_domain::Role::Viewer] {
            let email = format!("{role}@example.test");
            let other = api.client("acme", &email, role).await;
            for path in [path.as_str(), "/servers"] {
                let shown = other.get(path).await.must(200);
                assert!(!shown.text.contains("abcSECRETQ"), "{role}: {}", shown.text);
            }
        }
    }

    async fn somebody_is_added_by_a_link_for_their_address(api: Api) {
        let admin = api.admin().await;
        let body = json!({"email": "Ben@Example.test", "role": "viewer"});
        let added = admin.post("/members", &body).await.must(201).json();
        let link = added["link"].as_str().expect("a link");
        assert!(link.starts_with("http://localhost:8080/join/"), "{link}");
        let open = admin.get("/invites").await.must(200).json();
        assert_eq!(open["items"][0]["id"], added["id"]);
        admin.post("/members", &json!({"email": "x", "role": "viewer"})).await.must(422);
        admin.post("/members", &json!({"email": "a@example.test", "role": "king"})).await.must(422);
    }

    async fn an_export_does_not_take_what_it_would_ignore(api: Api) {
        let admin = api.admin().await;
        for query in ["limit=2", "cursor=zz"] {
            for kind in ["csv", "ndjson"] {
                admin.get(&format!("/calls.{kind}?{query}")).await.must(422);
            }
        }
    }

    async fn a_refresh_says_what_changed_or_why_not(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let path = format!("/servers/{id}/refresh");
        api.upstream.tools(vec![sluice_testkit::mcp_server::tool("read_file", "Read two files")]);
        let changes = admin.post(&path, &json!(null)).await.must(200).json();
        assert_eq!(changes["changed"], json!(["read_file"]));
        assert_eq!(changes["removed"].as_array().map(Vec::len), Some(2));
        let html = sluice_testkit::Behaviour::Raw(200, "text/html", "<html>".to_owned());
        api.upstream.instead(Some(html));
        let refused = admin.post(&path, &json!(null)).await.must(502);
        assert!(!refused.problem().0.is_empty());
        let shown = admin.get(&format!("/servers/{id}")).await.must(200).json();
        assert!(shown["tools_error"]["detail"].as_str().is_some_and(|words| !words.is_empty()));
    }

    async fn a_repeat_shows_nothing_that_the_role_of_now_may_not_see(api: Api) {
        let admin = api.admin().await;
        let ben = api.client("acme", "ben@example.test", sluice_domain::Role::Admin).await;
        let id = admin.connect("sandbox").await;
        let path = format!("/servers/{id}/grants");
        let headers = [("content-type", "application/json"), ("idempotency-key", "k-1")];
        let body = json!({"label": "leaver"}).to_string();
        let made = ben.call(Method::POST, &path, &headers, body.clone()).await.must(201).json();
        let token = made["token"].as_str().expect("a token");
        let members = admin.get("/members").await.must(200).json();
        let member = members["items"].as_array().expect("items").iter()
            .find(|one| one["email"] == "ben@example.test").expect("a member");
        let member = format!("/members/{}", member["id"].as_str().expect("an id"));
        admin.change(Method::PATCH, &member, None, &json!({"role": "viewer"})).await.must(204);
        let again = ben.call(Method::POST, &path, &headers, body).await;
        assert!(!again.status.is_success(), "{}", again.status);
        assert!(!again.text.contains(token), "a viewer is not shown a token");
    }

    async fn a_repeated_post_acts_once(api: Api) {
        let admin = api.admin().await;
        let body = json!({"name": "sandbox", "upstream_url": api.upstream.url()}).to_string();
        let headers = [("content-type", "application/json"), ("idempotency-key", "k-1")];
        let first = admin.call(Method::POST, "/servers", &headers, body.clone()).await.must(201);
        let again = admin.call(Method::POST, "/servers", &headers, body).await.must(201);
        assert_eq!(first.json(), again.json());
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert!(!first.header("location").is_empty() && !first.header("etag").is_empty());
        for name in ["location", "etag"] {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
        let other = json!({"name": "other", "upstream_url": api.upstream.url()}).to_string();
        let mismatch = admin.call(Method::POST, "/servers", &headers, other).await.must(409);
        assert_eq!(mismatch.problem().0, "idempotency_mismatch");
        let all = admin.get("/servers").await.must(200).json();
        assert_eq!(all["items"].as_array().map(Vec::len), Some(1));
    }

    async fn upstream_credentials_go_in_and_never_come_out(api: Api) {
        let admin = api.admin().await;
        let auth = json!({"type": "headers", "headers": {"x-api-key": "UP-1234"}});
        let body = json!({"name": "s", "upstream_url": api.upstream.url(), "auth": auth});
        let made = admin.post("/servers", &body).await.must(201);
        assert!(!made.text.contains("UP-1234"));
        let path = format!("/servers/{}", made.json()["id"].as_str().expect("an id"));
        let shown = admin.get(&path).await.must(200);
        assert_eq!(shown.json()["auth"]["headers"]["x-api-key"], "********");
        let masked = json!({"auth": shown.json()["auth"], "name": "renamed"});
        let tag = shown.header("etag").to_owned();
        admin.change(Method::PATCH, &path, Some(&tag), &masked).await.must(200);
        admin.post(&format!("{path}/refresh"), &json!(null)).await.must(200);
        let seen = api.upstream.seen();
        let last = seen.last().expect("it was asked");
        assert_eq!(last.headers.get("x-api-key").map(http::HeaderValue::as_bytes), Some(&b"UP-1234"[..]));
    }
}
