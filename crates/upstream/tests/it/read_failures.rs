//! Every way in which reading tools fails, each with words of its own.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;
use sluice_testkit::RawUpstream;
use sluice_upstream::ReadError;

use crate::fake::{Fake, SECRET, Seen, hello, plain, result, target};
use crate::read::read;

/// What is said of a server that answers every request alike.
async fn said(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> ReadError {
    let fake = Fake::start(move |_| std::future::ready(answer())).await;
    let error = read(&fake.target("/mcp")).await.expect_err("no tools");
    check_words(&error);
    error
}

/// Words for people: one line, no secret, no address of ours, and something to do.
fn check_words(error: &ReadError) {
    let words = format!("{error} {} {error:?}", error.advice());
    assert!(!words.contains(SECRET) && !words.contains("127.0.0.1"), "{words}");
    assert!(!error.to_string().contains('\n') && error.to_string().len() < 400, "{error}");
    assert!(error.advice().len() > 20, "{error:?}");
}

#[tokio::test]
async fn answers_that_are_not_mcp_are_told_apart() {
    let html = "<!doctype html><title>Welcome</title>";
    let table: [(u16, &str, &str, &str); 20] = [
        (401, "application/json", "{}", "upstream_unauthorized"),
        (401, "text/html", html, "upstream_unauthorized"),
        (403, "text/plain", "no", "upstream_forbidden"),
        (404, "text/html", html, "upstream_not_found"),
        (404, "application/json", r#"{"detail":"Not Found"}"#, "upstream_not_found"),
        (405, "text/plain", "", "upstream_wrong_transport"),
        (400, "text/plain", "what?", "upstream_status"),
        (400, "application/json", r#"{"error":"bad"}"#, "upstream_status"),
        (429, "text/plain", "", "upstream_busy"),
        (500, "text/html", html, "upstream_fault"),
        (502, "application/json", "{}", "upstream_fault"),
        (200, "text/html; charset=utf-8", html, "upstream_web_page"),
        (200, "text/plain", "hello", "upstream_not_mcp"),
        (200, "application/json", "{}", "upstream_not_mcp"),
        (200, "application/json", "[1,2]", "upstream_not_mcp"),
        (200, "application/json", "{\"jsonrpc\":\"2.0\",", "upstream_not_mcp"),
        (200, "application/json", r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "upstream_not_mcp"),
        (
            200,
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"result":{"name":"x"}}"#,
            "upstream_not_mcp",
        ),
        (202, "text/plain", "", "upstream_not_mcp"),
        (
            200,
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no\nway"}}"#,
            "upstream_error",
        ),
    ];
    for (status, kind, body, code) in table {
        let error = said(move || plain(status, kind, body)).await;
        assert_eq!(error.code(), code, "{status} {kind} {body}: {error:?}");
    }
}

#[tokio::test]
async fn a_redirect_says_where_to_and_is_not_followed() {
    let thief = Fake::always(200, "application/json", "{}").await;
    let to = "https://elsewhere.example/mcp";
    let error =
        said(move || (http::StatusCode::MOVED_PERMANENTLY, [("location", to)]).into_response())
            .await;
    assert_eq!(error.to_string(), format!("the server redirects to {to}"));
    assert_eq!(error.code(), "upstream_redirects");
    let slash = Fake::start(|_| {
        std::future::ready(
            (http::StatusCode::TEMPORARY_REDIRECT, [("location", "/mcp/")]).into_response(),
        )
    })
    .await;
    let error = read(&slash.target("/mcp?key=q-s3cret")).await.expect_err("redirects");
    assert_eq!(error.to_string(), format!("the server redirects to http://{}/mcp/", slash.address));
    assert!(thief.seen().is_empty());
}

#[tokio::test]
async fn a_coded_answer_is_not_read() {
    let coded = || {
        let mut response = plain(200, "application/json", "\u{1f}gz");
        response.headers_mut().insert("content-encoding", "gzip".parse().expect("ASCII"));
        response
    };
    assert!(matches!(said(coded).await, ReadError::Coded(coding) if coding == "gzip"));
}

#[tokio::test]
async fn a_server_that_is_down_slow_or_breaks_off_is_said_to_be() {
    let closed = {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        listener.local_addr().expect("bound").port()
    };
    let not_http = RawUpstream::start("220 mail.example ESMTP\r\n").await;
    let cut = RawUpstream::start(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
    )
    .await;
    let silent = Fake::start(|_| std::future::pending()).await;
    let stalling = Fake::start(|_| {
        let body = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
        std::future::ready(plain(
            200,
            "application/json",
            Body::from_stream(body.chain(futures_util::stream::pending())),
        ))
    })
    .await;
    for (url, code) in [
        (format!("http://127.0.0.1:{closed}/mcp"), "upstream_down"),
        ("http://sluice.invalid/mcp".to_owned(), "upstream_dns"),
        (format!("https://{}/mcp", silent.address), "upstream_tls"),
        (not_http.url(), "upstream_not_mcp"),
        (cut.url(), "upstream_cut"),
        (format!("http://{}/mcp", silent.address), "upstream_slow"),
        (format!("http://{}/mcp", stalling.address), "upstream_slow"),
        ("http://169.254.169.254/mcp".to_owned(), "upstream_refused"),
    ] {
        let asked = Instant::now();
        let error = read(&target(&url)).await.expect_err(&url);
        assert_eq!(error.code(), code, "{url}: {error:?}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{url}");
        check_words(&error);
    }
}

#[tokio::test]
async fn answers_without_end_are_cut_off() {
    let flood = Bytes::from(vec![b' '; 1024 * 1024]);
    for kind in ["application/json", "text/event-stream"] {
        let flood = flood.clone();
        let error = said(move || {
            let flood = flood.clone();
            let body =
                futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(flood.clone()));
            plain(200, kind, Body::from_stream(body))
        })
        .await;
        assert!(matches!(error, ReadError::TooLarge(16)), "{kind}: {error:?}");
    }
    let chatter = Bytes::from("data: {}\n\n".repeat(100));
    let error = said(move || {
        let chatter = chatter.clone();
        let body =
            futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(chatter.clone()));
        plain(200, "text/event-stream", Body::from_stream(body))
    })
    .await;
    assert!(matches!(error, ReadError::Endless(_)), "{error:?}");
}

/// A server that is fine until its tools are listed.
async fn listing(list: serde_json::Value) -> (ReadError, Vec<String>) {
    let fake = Fake::start(move |seen: Seen| {
        let request = seen.json();
        let mut answer = match seen.what().as_str() {
            "initialize" => result(&request, &hello()),
            "tools/list" => result(&request, &list),
            _ => plain(202, "text/plain", ""),
        };
        answer.headers_mut().insert("mcp-session-id", "s".parse().expect("ASCII"));
        std::future::ready(answer)
    })
    .await;
    let error = read(&fake.target("/mcp")).await.expect_err("no tools");
    check_words(&error);
    (error, fake.whats())
}

#[tokio::test]
async fn a_list_that_is_wrong_is_refused_whole_and_the_session_is_ended() {
    for (list, code) in [
        (json!({"tools": [{"name": "a"}, {"title": "b"}]}), "upstream_invalid_tools"),
        (json!({"tools": [{"name": "a"}, {"name": "a"}]}), "upstream_invalid_tools"),
        (json!({"tools": [], "nextCursor": "again"}), "upstream_too_large"),
        (json!({"tools": {}}), "upstream_not_mcp"),
        (json!({}), "upstream_not_mcp"),
    ] {
        let (error, whats) = listing(list.clone()).await;
        assert_eq!(error.code(), code, "{list}");
        assert_eq!(whats.last().map(String::as_str), Some("DELETE"), "{list}");
    }
}
