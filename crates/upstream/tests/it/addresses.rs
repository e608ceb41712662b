//! Where an upstream may be: checked when it is saved, and again at every connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sluice_upstream::{SendError, Upstream, UpstreamOptions, UrlProblem};

use crate::fake::{Fake, plain, post, private, resolving, target};

async fn checked(upstream: &Upstream, url: &str) -> Result<String, &'static str> {
    let checked = upstream.check_url(url).await;
    checked.map(|url| url.to_string()).map_err(|problem| problem.code())
}

#[tokio::test]
async fn addresses_inside_are_refused_when_saved() {
    // F-X1p1.
    let upstream = Upstream::new(UpstreamOptions::default());
    for (url, code) in [
        ("http://169.254.169.254/", "url_private"),
        ("http://127.0.0.1:6379/", "url_private"),
        ("http://[::1]/", "url_private"),
        ("http://[::ffff:127.0.0.1]/", "url_private"),
        ("http://[64:ff9b::7f00:1]/", "url_private"),
        ("http://[fd00::1]/mcp", "url_private"),
        ("http://10.0.0.1/", "url_private"),
        ("http://0.0.0.0/", "url_private"),
        ("http://100.64.0.1/", "url_private"),
        ("http://0x7f000001/", "url_odd_host"),
        ("http://localhost./", "url_odd_host"),
        ("file:///etc/hosts", "url_scheme"),
        ("http://user:pw@stub/", "url_userinfo"),
        ("http://localhost/", "url_private"),
        ("http://sluice.invalid/", "url_unknown_host"),
    ] {
        assert_eq!(checked(&upstream, url).await, Err(code), "{url}");
    }
    assert_eq!(
        checked(&upstream, "https://8.8.8.8/mcp").await.as_deref(),
        Ok("https://8.8.8.8/mcp")
    );
}

#[tokio::test]
async fn every_address_of_a_name_counts() {
    for (addresses, fine) in [
        (&["8.8.8.8"][..], true),
        (&["8.8.8.8", "2606:4700::1111"], true),
        (&["8.8.8.8", "10.0.0.1"], false),
        (&["2606:4700::1111", "::1"], false),
        (&["8.8.8.8", "::ffff:10.0.0.1"], false),
        (&[], false),
    ] {
        let upstream = resolving(addresses);
        let checked = upstream.check_url("https://mcp.example/mcp").await;
        assert_eq!(checked.is_ok(), fine, "{addresses:?}: {checked:?}");
    }
}

#[tokio::test]
async fn the_words_do_not_tell_open_ports_from_closed_ones() {
    let open = Fake::always(200, "text/plain", "hello").await;
    let upstream = Upstream::new(UpstreamOptions::default());
    let mut words = Vec::new();
    for port in [open.address.port(), 1_024] {
        let url = format!("http://127.0.0.1:{port}/");
        let saved = upstream.check_url(&url).await.expect_err("inside");
        let sent = upstream.send(&target(&url), post("{}")).await.expect_err("inside");
        let target = target(&url);
        let read = upstream.read_tools(&target, crate::read::now()).await.expect_err("inside");
        words.push(format!("{saved} {sent} {read}"));
    }
    assert_eq!(words[0], words[1]);
    assert!(open.seen().is_empty());
}

#[tokio::test]
async fn a_name_that_leads_inside_after_the_check_is_refused_at_the_connection() {
    let inside = Fake::always(200, "text/plain", "hello").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let resolve = Arc::new(move |_: &str| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        Ok(vec![if first { "8.8.8.8" } else { "127.0.0.1" }.parse().expect("an address")])
    });
    let upstream =
        Upstream::new(UpstreamOptions { resolve: Some(resolve), ..UpstreamOptions::default() });
    let url = format!("http://rebind.example:{}/mcp", inside.address.port());
    upstream.check_url(&url).await.expect("public when saved");
    let refused = upstream.send(&target(&url), post("{}")).await.expect_err("inside by now");
    assert!(matches!(refused, SendError::Refused("a loopback address")), "{refused:?}");
    assert!(!refused.may_have_run());
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2,
        "asked once for the check, once for the connection"
    );
    assert!(inside.seen().is_empty());
}

#[tokio::test]
async fn a_private_address_beside_a_public_one_is_never_tried() {
    let inside = Fake::always(200, "text/plain", "hello").await;
    let upstream = resolving(&["127.0.0.1", "8.8.8.8"]);
    let url = format!("http://both.example:{}/mcp", inside.address.port());
    let refused = upstream.send(&target(&url), post("{}")).await.expect_err("refused");
    assert!(matches!(refused, SendError::Refused(_)));
    assert!(inside.seen().is_empty());
}

#[tokio::test]
async fn an_operator_may_allow_private_upstreams_but_never_metadata() {
    let inside = Fake::start(|_| std::future::ready(plain(200, "text/plain", "hello"))).await;
    let upstream = private();
    let url = format!("http://127.0.0.1:{}/mcp", inside.address.port());
    upstream.check_url(&url).await.expect("allowed");
    assert!(upstream.send(&target(&url), post("{}")).await.is_ok());
    for url in ["http://169.254.169.254/latest", "http://0.0.0.0/", "http://[fd00:ec2::254]/"] {
        let problem = upstream.check_url(url).await.expect_err(url);
        assert!(matches!(problem, UrlProblem::Private(_)), "{url}: {problem}");
        let refused = upstream.send(&target(url), post("{}")).await.expect_err(url);
        assert!(matches!(refused, SendError::Refused(_)), "{url}: {refused}");
    }
}

#[tokio::test]
async fn another_path_of_a_target_stays_on_its_origin() {
    let target = target("https://mcp.example/sse?key=1");
    for (reference, url) in [
        ("/messages?sessionId=a", "https://mcp.example/messages?sessionId=a"),
        ("messages", "https://mcp.example/messages"),
        ("?b=c", "https://mcp.example/sse?b=c"),
        ("https://mcp.example:443/x#y", "https://mcp.example/x"),
    ] {
        let moved = target.with_path(reference).expect(reference);
        assert_eq!(moved.url.as_str(), url);
        assert_eq!(moved.headers.len(), 1);
    }
    for reference in [
        "http://mcp.example/x",
        "https://evil.example/x",
        "//evil.example/x",
        "https://mcp.example:444/x",
        "\\\\evil.example\\x",
        "https://user@mcp.example/x",
        "https://mcp.example.evil.example/",
        "javascript:alert(1)",
        "https://mcp.example@evil.example/",
    ] {
        assert_eq!(
            target.with_path(reference).map(|t| t.url),
            Err(UrlProblem::OtherOrigin),
            "{reference}"
        );
    }
}
