//! Bad input: exact errors, and nothing saved.

use http::Method;
use serde_json::json;
use sluice_testkit::on_both;

use crate::common::Api;

on_both! {
    async fn every_bad_body_is_told_where_and_why(api: Api) {
        let admin = api.admin().await;
        let id = admin.connect("sandbox").await;
        let url = api.upstream.url();
        let long = "x".repeat(500);
        let table = [
            ("/servers", json!({}), 422, "missing_field", "/name"),
            ("/servers", json!({"name": "", "upstream_url": url}), 422, "required", "/name"),
            ("/servers", json!({"name": long, "upstream_url": url}), 422, "too_long", "/name"),
            ("/servers", json!({"name": 1, "upstream_url": url}), 422, "invalid", "/name"),
            ("/servers", json!({"name": "a", "upstream_url": url, "x": 1}), 422, "unknown_field", "/x"),
            ("/servers", json!({"name": "SANDBOX", "upstream_url": url}), 409, "name_taken", "/name"),
            ("/servers", json!({"name": "a", "upstream_url": url, "transport": "x"}), 422, "invalid", "/transport"),
            ("/servers", json!([]), 422, "", ""),
            ("/grants-of", json!({"label": ""}), 422, "required", "/label"),
            ("/grants-of", json!({"label": "a", "policy_id": "x"}), 422, "invalid", "/policy_id"),
            ("/grants-of", json!({"label": "a", "expires_at": "2020-01-01T00:00:00Z"}), 422, "in_past", "/expires_at"),
        ];
        for (path, body, status, code, pointer) in table {
            let path = path.replace("/grants-of", &format!("/servers/{id}/grants"));
            let answer = admin.post(&path, &body).await.must(status);
            let problem = answer.problem();
            if !code.is_empty() && code != "in_past" {
                assert_eq!(problem, (code.to_owned(), pointer.to_owned()), "{path} {body}");
            } else if !pointer.is_empty() {
                assert_eq!(problem.1, pointer, "{path} {body}");
            }
        }
        let servers = admin.get("/servers").await.must(200).json();
        assert_eq!(servers["items"].as_array().map(Vec::len), Some(1), "nothing was saved by halves");
    }

    async fn upstreams_inside_and_odd_addresses_are_refused_at_save(api: Api) {
        let admin = api.admin().await;
        for url in ["file:///etc/hosts", "http://user:pw@example.com/", "ftp://example.com/", "", "nonsense"] {
            let body = json!({"name": "x", "upstream_url": url});
            let refused = admin.post("/servers", &body).await.must(422);
            assert_eq!(refused.problem().1, "/upstream_url", "{url}");
        }
    }

    async fn http_itself_is_answered_with_problems(api: Api) {
        let admin = api.admin().await;
        let json_type = [("content-type", "application/json")];
        let plain = [("content-type", "text/plain")];
        let huge = format!(r#"{{"name": "{}"}}"#, "x".repeat(2 << 20));
        let table = [
            (Method::GET, "/api/v1/nothing", &json_type, String::new(), 404, "not_found"),
            (Method::GET, "/api/nothing", &json_type, String::new(), 404, "not_found"),
            (Method::PUT, "/servers", &json_type, "{}".to_owned(), 405, "method_not_allowed"),
            (Method::POST, "/servers", &plain, "{}".to_owned(), 415, "unsupported_media_type"),
            (Method::POST, "/servers", &json_type, "{".to_owned(), 400, "invalid_json"),
            (Method::POST, "/servers", &json_type, huge, 413, "too_large"),
            (Method::GET, "/servers/NOT-A-UUID", &json_type, String::new(), 404, "not_found"),
            (Method::GET, "/calls?limit=0", &json_type, String::new(), 422, "out_of_range"),
            (Method::GET, "/calls?limit=x", &json_type, String::new(), 422, "invalid_query"),
            (Method::GET, "/calls?include_public=1", &json_type, String::new(), 422, "unknown_field"),
            (Method::GET, "/calls?cursor=!!", &json_type, String::new(), 422, "invalid_cursor"),
        ];
        for (method, path, headers, body, status, code) in table {
            let answer = admin.call(method, path, headers, body).await.must(status);
            assert_eq!(answer.problem().0, code, "{path}");
            assert_eq!(answer.header("x-request-id").len(), 36, "{path}");
        }
    }
}
