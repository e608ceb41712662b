//! Who may come in, and what crosses the gateway with them.

use chrono::TimeDelta;
use http::Method;
use sluice_domain::SecurityKind::{
    BadToken, ExpiredToken, ForeignOrigin, NetworkNotAllowed, RevokedToken, UnknownServer,
    WrongServer,
};
use sluice_testkit::http as client;

use crate::gateway::{ALLOW_ALL, Gateway, call, code};
use crate::stage::{Received, Stage, Wire};

async fn echo(received: Received, mut wire: Wire) {
    let headers = [
        ("content-type", "application/json"),
        ("set-cookie", "a=b"),
        ("www-authenticate", "Bearer"),
        ("server", "s"),
    ];
    wire.answer("200 OK", &headers, &crate::stage::text_result(&received.id(), "done")).await;
}

#[tokio::test]
async fn every_token_that_does_not_open_the_server_gets_the_same_answer() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let good = gateway.grant(&stage.url(), ALLOW_ALL);
    let other = gateway.grant(&stage.url(), ALLOW_ALL);
    let revoked = gateway.grant_with(&stage.url(), ALLOW_ALL, |r| r.grant.revoked = true);
    let suspended = gateway.grant_with(&stage.url(), ALLOW_ALL, |r| r.suspended = true);
    let expired = gateway
        .grant_with(&stage.url(), ALLOW_ALL, |r| r.grant.expires_at = Some(gateway.clock.now()));
    let unknown = sluice_vault::Issued::new(sluice_vault::TokenKind::Grant);
    let unknown = secrecy::ExposeSecret::expose_secret(&unknown.token).to_owned();
    let missing = "/mcp/019a1b2c-0000-7000-8000-000000000000".to_owned();
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    let table = [
        (good.path(), None, BadToken),
        (good.path(), Some(good.token.clone()), BadToken),
        (good.path(), Some(format!("Basic {}", good.token)), BadToken),
        (good.path(), bearer("wrong"), BadToken),
        (good.path(), bearer(&good.token.replace("slg_", "slu_")), BadToken),
        (good.path(), bearer(&unknown), BadToken),
        (good.path(), bearer(&other.token), WrongServer),
        (missing.clone(), bearer(&good.token), WrongServer),
        ("/mcp/nothing".to_owned(), bearer(&good.token), UnknownServer),
        (revoked.path(), bearer(&revoked.token), RevokedToken),
        (suspended.path(), bearer(&suspended.token), RevokedToken),
        (expired.path(), bearer(&expired.token), ExpiredToken),
    ];
    let mut bodies = Vec::new();
    for (at, (path, authorization, kind)) in table.iter().enumerate() {
        for path in [path.clone(), format!("{path}/")] {
            for method in [Method::POST, Method::GET, Method::DELETE] {
                let mut headers = vec![("content-type", "application/json")];
                headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
                let answer =
                    client::send(gateway.address, method, &path, &headers, call("1", "echo", "{}"))
                        .await
                        .expect("an answer");
                assert_eq!(answer.status, 401, "{at} {path}");
                assert_eq!(
                    answer.header("www-authenticate"),
                    r#"Bearer realm="sluice", error="invalid_token""#
                );
                assert_eq!(answer.header("x-request-id").len(), 36);
                bodies.push(answer.body);
                assert_eq!(gateway.security().last(), Some(kind), "{at}");
            }
        }
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(stage.count(), 0);
    let events = gateway.noted.events.lock();
    assert!(
        events.iter().all(|event| !event.detail.contains("slg_") && event.address == "127.0.0.1")
    );
}

#[tokio::test]
async fn a_token_in_the_query_is_not_looked_at() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let path = format!("{}?access_token={}", grant.path(), grant.token);
    let headers = [("content-type", "application/json")];
    let answer =
        client::send(gateway.address, Method::POST, &path, &headers, call("1", "echo", "{}")).await;
    assert_eq!(answer.expect("an answer").status, 401);
    let events = gateway.noted.events.lock();
    assert!(!events[0].detail.contains(&grant.token));
}

#[tokio::test]
async fn a_foreign_origin_is_refused_before_the_token_is_looked_at() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = call("1", "echo", "{}");
    for (token, status) in [(grant.token.as_str(), 403), ("wrong", 403)] {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("origin", "https://evil.example.test"),
            ("content-type", "application/json"),
        ];
        let answer =
            client::send(gateway.address, Method::POST, &grant.path(), &headers, body.clone())
                .await;
        assert_eq!(answer.expect("an answer").status, status);
        assert_eq!(gateway.security().last(), Some(&ForeignOrigin));
    }
    assert_eq!(stage.count(), 0);
    assert_eq!(
        grant.post(&gateway, &[("origin", "http://localhost:6274")], &body).await.status,
        200
    );
    assert_eq!(grant.post(&gateway, &[], &body).await.status, 200);
}

#[tokio::test]
async fn nothing_of_one_side_reaches_the_other_that_is_not_listed() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let sent = [
        ("cookie", "a=b"),
        ("x-api-key", "z"),
        ("x-forwarded-for", "1.2.3.4"),
        ("forwarded", "for=1"),
        ("origin", "http://localhost"),
        ("te", "trailers"),
        ("accept-encoding", "gzip"),
        ("traceparent", "00-1-2-01"),
    ];
    let answer = grant.post(&gateway, &sent, &call("1", "echo", "{}")).await;
    let seen = &stage.log()[0];
    let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["accept", "accept-encoding", "content-length", "content-type", "host", "traceparent"]
    );
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert!(!seen.headers.iter().any(|(_, value)| value.contains(&grant.token)));
    assert_eq!(seen.header("host"), Some(stage.address.to_string().as_str()));
    for name in ["set-cookie", "www-authenticate", "server", "location"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn a_revoked_grant_is_refused_at_once() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let mut grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = call("1", "echo", "{}");
    assert_eq!(grant.post(&gateway, &[], &body).await.status, 200);
    gateway.change(&mut grant, |record| record.grant.revoked = true);
    assert_eq!(grant.post(&gateway, &[], &body).await.status, 401);
    gateway.change(&mut grant, |record| record.grant.revoked = false);
    assert_eq!(grant.post(&gateway, &[], &body).await.status, 200);
}

#[tokio::test]
async fn an_expired_grant_is_refused_without_a_word_from_the_store() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
        record.grant.expires_at = Some(gateway.clock.now() + TimeDelta::seconds(5));
    });
    assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 200);
    gateway.clock.advance(TimeDelta::seconds(5));
    assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 401);
}

#[tokio::test]
async fn with_the_store_down_known_routes_go_on_for_a_bounded_time() {
    use std::sync::atomic::Ordering;
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let stranger = gateway.sibling(&grant);
    assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 200);
    gateway.store.down.store(true, Ordering::Relaxed);
    assert_eq!(stranger.call(&gateway, "1", "echo", "{}").await.status, 503);
    for (seconds, status) in [(2, 200), (590, 200), (20, 503)] {
        gateway.clock.advance(TimeDelta::seconds(seconds));
        assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, status, "{seconds}");
    }
    gateway.store.down.store(false, Ordering::Relaxed);
    gateway.clock.advance(TimeDelta::seconds(2));
    assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 200);
}

#[tokio::test]
async fn while_the_feed_is_alive_the_store_is_not_asked_again() {
    use std::sync::atomic::Ordering;
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for _ in 0..5 {
        gateway.state.feed_alive();
        assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 200);
        gateway.clock.advance(TimeDelta::seconds(60));
    }
    assert_eq!(gateway.store.loads.load(Ordering::Relaxed), 1);
    // Without it, a route is confirmed after a second.
    assert_eq!(grant.call(&gateway, "1", "echo", "{}").await.status, 200);
    assert_eq!(gateway.store.loads.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_grant_bound_to_networks_is_refused_elsewhere() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let here = gateway
        .grant_with(&stage.url(), ALLOW_ALL, |r| r.grant.networks = vec!["127.0.0.0/8".into()]);
    let there = gateway.grant_with(&stage.url(), ALLOW_ALL, |r| {
        r.grant.networks = vec!["10.0.0.0/8".into(), "odd".into()];
    });
    assert_eq!(here.call(&gateway, "1", "echo", "{}").await.status, 200);
    let answer = there.call(&gateway, "1", "echo", "{}").await;
    assert_eq!((answer.status.as_u16(), code(&answer).as_str()), (200, "network_not_allowed"));
    assert_eq!(gateway.security(), [NetworkNotAllowed]);
    assert_eq!(stage.count(), 1);
    assert_eq!(gateway.records().len(), 2);
}

#[tokio::test]
async fn both_spellings_of_the_path_are_served_and_other_methods_are_not() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let bearer = format!("Bearer {}", grant.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for (method, path, status) in [
        (Method::POST, grant.path(), 200),
        (Method::POST, format!("{}/", grant.path()), 200),
        (Method::PUT, grant.path(), 405),
        (Method::PATCH, grant.path(), 405),
        (Method::HEAD, grant.path(), 405),
        (Method::OPTIONS, grant.path(), 405),
        (Method::POST, "/mcp".to_owned(), 404),
        (Method::POST, format!("{}/x", grant.path()), 404),
    ] {
        let answer =
            client::send(gateway.address, method.clone(), &path, &headers, call("1", "echo", "{}"))
                .await;
        assert_eq!(answer.expect("an answer").status, status, "{method} {path}");
    }
}
