//! Event streams: every byte as it came, at once, and ended with their grant.

use std::time::Duration;

use http::Method;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::gateway::{ALLOW_ALL, Gateway, call};
use crate::stage::{Received, Stage, Wire};

const SOON: Duration = Duration::from_secs(5);

fn text(piece: Option<Result<bytes::Bytes, hyper::Error>>) -> String {
    String::from_utf8(piece.expect("not over").expect("not broken").to_vec()).expect("UTF-8")
}

#[tokio::test]
async fn bytes_pass_as_they_came() {
    let streams = [
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"héllo 世界 😀\"}}\n\n",
        ": c\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\r\n",
        "event: message\rdata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\r",
        "retry: 1234\n: comment\nid: e1\ndata: \n\n: keepalive\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata:\"result\":{}}\n\n",
        "\u{feff}data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    ];
    for stream in streams {
        for size in [1, 5, 10_000] {
            let stage = Stage::start(move |_, mut wire: Wire| async move {
                wire.events().await;
                for piece in stream.as_bytes().chunks(size) {
                    wire.raw(piece).await;
                    tokio::task::yield_now().await;
                }
            })
            .await;
            let mut gateway = Gateway::start().await;
            let grant = gateway.grant(&stage.url(), ALLOW_ALL);
            let answer = grant.call(&gateway, "1", "echo", "{}").await;
            assert_eq!(answer.text(), stream, "{size}");
            let record = gateway.record().await;
            assert_eq!(
                (record.code.as_str(), record.response_bytes),
                ("allowed", i64::try_from(stream.len()).expect("small"))
            );
        }
    }
}

#[tokio::test]
async fn events_are_not_held_back() {
    let (step, steps) = mpsc::channel::<()>(1);
    let steps = std::sync::Arc::new(tokio::sync::Mutex::new(steps));
    let stage = Stage::start(move |_, mut wire: Wire| {
        let steps = std::sync::Arc::clone(&steps);
        async move {
            wire.events().await;
            for n in 1..=3 {
                wire.raw(format!("data: {{\"method\":\"notifications/progress\",\"params\":{{\"progress\":{n}}}}}\n\n")).await;
                steps.lock().await.recv().await;
            }
            wire.raw("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let mut opened = grant.open(&gateway, Method::POST, &[], &call("1", "echo", "{}")).await;
    for n in 1..=3 {
        let piece = timeout(SOON, opened.piece()).await.expect("at once");
        assert!(text(piece).contains(&format!("\"progress\":{n}")));
        step.send(()).await.expect("the stage waits");
    }
    assert!(text(timeout(SOON, opened.piece()).await.expect("at once")).contains("result"));
    assert!(timeout(SOON, opened.piece()).await.expect("at once").is_none());
}

/// A server that says when its peer has gone.
async fn watched() -> (Stage, mpsc::Receiver<String>) {
    let (gone, told) = mpsc::channel(10);
    let stage = Stage::start(move |received: Received, mut wire: Wire| {
        let gone = gone.clone();
        async move {
            if received.method == "GET" || received.tool() == "other" {
                wire.events().await;
                wire.raw(": hello\n\n").await;
            }
            wire.gone().await;
            gone.send(received.method).await.ok();
        }
    })
    .await;
    (stage, told)
}

#[tokio::test]
async fn when_the_client_leaves_the_upstream_is_let_go() {
    let (stage, mut told) = watched().await;
    let mut gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for (method, tool) in [(Method::POST, "echo"), (Method::POST, "other"), (Method::GET, "")] {
        let before = stage.count();
        let body = call("1", tool, "{}");
        {
            let opening = grant.open(&gateway, method.clone(), &[], &body);
            tokio::pin!(opening);
            tokio::select! {
                mut opened = &mut opening => {
                    assert_eq!(text(opened.piece().await), ": hello\n\n");
                }
                () = async { stage.arrived(before + 1).await; if tool != "echo" { std::future::pending::<()>().await } } => {}
            }
        }
        assert_eq!(
            timeout(SOON, told.recv()).await.expect("it is let go"),
            Some(method.to_string())
        );
        if method == Method::POST {
            let record = gateway.record().await;
            assert_eq!((record.outcome.as_str(), record.code.as_str()), ("failed", "cancelled"));
        }
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_grant_is_revoked() {
    let (stage, mut told) = watched().await;
    let gateway = Gateway::start().await;
    let mut grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let mut get = grant.open(&gateway, Method::GET, &[], "").await;
    let mut post = grant.open(&gateway, Method::POST, &[], &call("1", "other", "{}")).await;
    assert_eq!(text(get.piece().await), ": hello\n\n");
    assert_eq!(text(post.piece().await), ": hello\n\n");
    // A change that does not take the grant away lets them go on.
    gateway.change(&mut grant, |record| record.grant.label = "renamed".to_owned());
    assert!(timeout(Duration::from_millis(100), get.piece()).await.is_err());
    gateway.change(&mut grant, |record| record.grant.revoked = true);
    assert!(timeout(SOON, get.piece()).await.expect("within a second").is_none());
    assert!(timeout(SOON, post.piece()).await.expect("within a second").is_none());
    for _ in 0..2 {
        assert!(timeout(SOON, told.recv()).await.expect("it is let go").is_some());
    }
}

#[tokio::test]
async fn at_a_stop_idle_streams_end_and_calls_go_on() {
    let (stage, _told) = watched().await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let mut get = grant.open(&gateway, Method::GET, &[], "").await;
    let mut post = grant.open(&gateway, Method::POST, &[], &call("1", "other", "{}")).await;
    assert_eq!(text(get.piece().await), ": hello\n\n");
    assert_eq!(text(post.piece().await), ": hello\n\n");
    gateway.state.stop();
    assert!(timeout(SOON, get.piece()).await.expect("at once").is_none());
    assert!(timeout(Duration::from_millis(100), post.piece()).await.is_err());
}

#[tokio::test]
async fn a_stream_that_can_be_resumed_is_not_ended_by_an_error() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        if received.method == "GET" {
            assert_eq!(received.header("last-event-id"), Some("e1"));
            wire.events().await;
            wire.raw("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"echo\"},{\"name\":\"purge\"}]}}\n\n").await;
        } else {
            wire.events().await;
            wire.raw("id: e1\nretry: 10\ndata:\n\n").await;
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let grant =
        gateway.grant(&stage.url(), r#"{"version":"1","default":"allow","hide":["purge"]}"#);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(grant.post(&gateway, &[], list).await.text(), "id: e1\nretry: 10\ndata:\n\n");
    let resumed = grant
        .open(&gateway, Method::GET, &[("last-event-id", "e1")], "")
        .await
        .whole()
        .await
        .expect("whole");
    // The list is filtered on this way too.
    assert_eq!(
        resumed.text(),
        "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"echo\"}]}}\n\n"
    );
}

#[tokio::test]
async fn answers_that_are_no_stream_pass_on_get() {
    let stage = Stage::start(|_, mut wire: Wire| async move {
        wire.answer(
            "405 Method Not Allowed",
            &[("allow", "POST"), ("content-type", "text/plain")],
            "no",
        )
        .await;
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let answer = grant.open(&gateway, Method::GET, &[], "").await.whole().await.expect("whole");
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow"), answer.text().as_str()),
        (405, "POST", "no")
    );
}

#[tokio::test]
async fn a_call_in_flight_ends_with_its_grant() {
    let (stage, mut told) = watched().await;
    let mut gateway = Gateway::start().await;
    let mut grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = call("1", "echo", "{}");
    let calling = grant.clone();
    let answer = {
        let waiting = calling.post(&gateway, &[], &body);
        tokio::pin!(waiting);
        tokio::select! {
            _ = &mut waiting => unreachable!("it is not answered"),
            () = stage.arrived(1) => {}
        }
        gateway.change(&mut grant, |record| record.grant.revoked = true);
        timeout(SOON, waiting).await.expect("within a second")
    };
    assert_eq!(answer.status, 401);
    assert!(timeout(SOON, told.recv()).await.expect("the server is let go").is_some());
    let record = gateway.record().await;
    assert_eq!((record.outcome.as_str(), record.code.as_str()), ("failed", "cancelled"));
    assert!(record.message.contains("revoked"), "{}", record.message);
}
