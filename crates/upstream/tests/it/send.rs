//! One request: what is sent, what comes back, and whether it may have run.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use secrecy::SecretString;
use sluice_domain::{ServerId, ServerSettings, WorkspaceId};
use sluice_testkit::RawUpstream;
use sluice_upstream::{IdleBody, IdleError, SendError, Target, TargetError};
use sluice_vault::{UpstreamHeaders, Vault, generate_master_key};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fake::{Fake, SECRET, plain, post, private, target};

#[tokio::test]
async fn the_body_goes_unchanged_and_the_headers_are_the_targets() {
    // F-A2.
    let fake = Fake::always(200, "application/json", "{}").await;
    let body = r#"{ "n":1E400, "b":1.0, "id":"007", "ä":"\u00e4" }"#;
    let mut request = post(body);
    for (name, value) in [
        ("authorization", "Bearer slg_client"),
        ("cookie", "a=b"),
        ("host", "gateway.example"),
        ("accept-encoding", "gzip"),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    let response = private().send(&fake.target("/mcp?a=b%20c"), request).await.expect("answers");
    assert_eq!(response.status(), 200);
    let [seen] = &fake.seen()[..] else { panic!("one request") };
    assert_eq!(seen.body, body.as_bytes());
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp?a=b%20c"));
    assert_eq!(seen.header("authorization"), format!("Bearer {SECRET}"));
    assert_eq!(seen.header("host"), fake.address.to_string());
    assert_eq!(seen.header("accept-encoding"), "identity");
    assert_eq!(seen.header("mcp-protocol-version"), "2025-11-25");
    assert_eq!(
        (seen.header("cookie"), seen.headers.get_all("authorization").iter().count()),
        ("", 1)
    );
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    // F-X1p2.
    let elsewhere = Fake::always(200, "application/json", "{}").await;
    let to = format!("http://{}/stolen", elsewhere.address);
    let fake = Fake::start(move |_| {
        let headers = [("location", to.clone())];
        std::future::ready((http::StatusCode::TEMPORARY_REDIRECT, headers).into_response())
    })
    .await;
    let response = private().send(&fake.target("/mcp"), post("{}")).await.expect("answers");
    assert_eq!(response.status(), 307);
    assert_eq!((fake.seen().len(), elsewhere.seen().len()), (1, 0));
}

/// A TCP server that does `script` with each connection.
async fn tcp<F>(
    script: impl Fn(tokio::net::TcpStream) -> F + Send + 'static,
) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(script(stream));
        }
    });
    (port, connections)
}

async fn failure(url: &str) -> SendError {
    let mut target = target(url);
    target.idle_timeout = Duration::from_millis(300);
    private().send(&target, post(r#"{"method":"tools/call"}"#)).await.expect_err("no answer")
}

#[tokio::test]
async fn whether_it_may_have_run_is_told_exactly() {
    let (silent, _) = tcp(async |mut stream| {
        let _all = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let (cutting, _) = tcp(async |mut stream| {
        let _some = stream.read(&mut [0; 4_096]).await;
    })
    .await;
    let (half, _) = tcp(async |mut stream| {
        let _some = stream.read(&mut [0; 4_096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").await.expect("written");
    })
    .await;
    let (other, _) = tcp(async |mut stream| {
        let _some = stream.read(&mut [0; 4_096]).await;
        stream.write_all(b"SSH-2.0-OpenSSH_9.7\r\n").await.expect("written");
    })
    .await;
    let closed = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        listener.local_addr().expect("bound").port()
    };
    for (url, expected, may_have_run) in [
        (format!("http://127.0.0.1:{closed}/"), "Connect", false),
        (format!("https://127.0.0.1:{closed}/"), "Connect", false),
        ("http://sluice.invalid/".to_owned(), "Dns", false),
        ("http://127.0.0.1:22/".to_owned(), "Refused", false),
        (format!("https://127.0.0.1:{other}/"), "Tls", false),
        (format!("https://127.0.0.1:{cutting}/"), "Tls", false),
        (format!("https://127.0.0.1:{silent}/"), "TimedOutBeforeSend", false),
        (format!("http://127.0.0.1:{silent}/"), "TimedOutAfterSend", true),
        (format!("http://127.0.0.1:{cutting}/"), "Cut", true),
        (format!("http://127.0.0.1:{half}/"), "Cut", true),
        (format!("http://127.0.0.1:{other}/"), "NotHttp", true),
    ] {
        let failed = failure(&url).await;
        assert!(format!("{failed:?}").starts_with(expected), "{url}: {failed:?}");
        assert_eq!(failed.may_have_run(), may_have_run, "{url}: {failed:?}");
        let words = format!("{failed}");
        assert!(
            !words.contains("127.0.0.1") && !words.contains("invalid") && !words.contains(SECRET),
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_costs_no_call() {
    // The server closes after each answer without saying so; the next call goes over a new connection.
    let (port, connections) = tcp(async |mut stream| {
        let _some = stream.read(&mut [0; 4_096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.expect("written");
    })
    .await;
    let (upstream, target) = (private(), target(&format!("http://127.0.0.1:{port}/")));
    for calls in 1..=5 {
        let response = upstream.send(&target, post("{}")).await.expect("answers");
        response.into_body().collect().await.expect("whole");
        assert_eq!(connections.load(Ordering::Relaxed), calls, "each call was seen once");
        // Lets the client's side notice the end before the next call.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_are_kept_for_a_server_and_dropped_when_it_changes() {
    let fake = Fake::always(200, "application/json", "{}").await;
    let (upstream, mut target) = (private(), fake.target("/mcp"));
    let call = async |target: &Target| {
        let response = upstream.send(target, post("{}")).await.expect("answers");
        response.into_body().collect().await.expect("whole");
        // The connection is back in the pool once its driver has run.
        tokio::time::timeout(Duration::from_secs(1), tokio::task::yield_now()).await.expect("soon");
        fake.seen().last().expect("seen").from.port()
    };
    let first = call(&target).await;
    assert_eq!(call(&target).await, first);
    target.revision += 1;
    let changed = call(&target).await;
    assert_ne!(changed, first);
    let other = Target { server: ServerId::new(), ..target.clone() };
    assert_ne!(call(&other).await, changed, "another server has connections of its own");
}

/// Tells when it is dropped.
struct Ends(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        let _heard = self.0.send(());
    }
}

#[tokio::test]
async fn dropping_an_unfinished_answer_ends_it_at_the_upstream() {
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    let fake = Fake::start(move |_| {
        let ticks = futures_util::stream::unfold(Ends(ended.clone()), async |ends| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b": tick\n\n")), ends))
        });
        std::future::ready(plain(200, "text/event-stream", Body::from_stream(ticks)))
    })
    .await;
    let response = private().send(&fake.target("/mcp"), post("{}")).await.expect("answers");
    let mut body = response.into_body();
    body.frame().await.expect("a frame").expect("whole");
    assert!(end.try_recv().is_err(), "the stream still runs");
    drop(body);
    let heard = tokio::time::timeout(Duration::from_secs(5), end.recv()).await;
    assert_eq!(heard, Ok(Some(())), "the upstream's stream was dropped");
}

#[tokio::test]
async fn a_silent_body_ends_with_an_error_and_a_lively_one_does_not() {
    let fake = Fake::start(|seen| {
        let tick = |n: u64| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, std::io::Error>(Bytes::from(format!(": {n}\n\n")))
        };
        let ticks = futures_util::stream::iter(0..20).then(tick);
        let body = match seen.path.as_str() {
            "/lively" => Body::from_stream(ticks),
            "/cut" => Body::from_stream(
                ticks
                    .take(2)
                    .chain(futures_util::stream::iter([Err(std::io::Error::other("cut"))])),
            ),
            _ => Body::from_stream(ticks.take(2).chain(futures_util::stream::pending())),
        };
        std::future::ready(plain(200, "text/event-stream", body))
    })
    .await;
    let upstream = private();
    let read = async |path: &str| {
        let response = upstream.send(&fake.target(path), post("{}")).await.expect("answers");
        let body = IdleBody::new(response.into_body(), Duration::from_millis(200));
        body.collect().await.map(|whole| whole.to_bytes().len())
    };
    assert_eq!(read("/lively").await.expect("whole"), 10 * 5 + 10 * 6);
    assert!(matches!(read("/silent").await, Err(IdleError::Silent)));
    assert!(matches!(read("/cut").await, Err(IdleError::Cut(_))));
}

#[tokio::test]
async fn a_tunnelled_answer_is_not_asked_for() {
    let raw = RawUpstream::start(RawUpstream::json("{}")).await;
    private().send(&target(&raw.url()), post("{\"a\":1}")).await.expect("answers");
    let request = String::from_utf8(raw.requests()[0].clone()).expect("ASCII");
    assert!(request.starts_with("POST /mcp HTTP/1.1\r\n"), "{request}");
    assert!(!request.to_ascii_lowercase().contains("proxy"), "{request}");
    assert_eq!(raw.bodies(), [b"{\"a\":1}".to_vec()]);
}

#[tokio::test]
async fn a_target_opens_its_credentials_and_never_shows_them() {
    let vault = Vault::from_keys(&generate_master_key("k")).expect("a key");
    let (workspace, server) = (WorkspaceId::new(), ServerId::new());
    let seal = |name: &str, value: &str| {
        let headers =
            UpstreamHeaders(vec![(name.to_owned(), SecretString::from(value.to_owned()))]);
        vault.seal_headers(workspace, server, &headers)
    };
    let build = |url: &str, sealed: &[u8], owner| {
        Target::build(&vault, workspace, owner, url, Some(sealed), &ServerSettings::default(), 7)
    };
    let sealed = seal("X-Api-Key", SECRET);
    let target = build("https://mcp.example/mcp?key=q-s3cret", &sealed, server).expect("builds");
    assert_eq!(target.headers[0].0, "x-api-key");
    let shown = format!("{target:?}");
    assert!(shown.contains("mcp.example") && shown.contains("x-api-key"), "{shown}");
    assert!(!shown.contains(SECRET) && !shown.contains("q-s3cret"), "{shown}");

    let other = build("https://mcp.example/", &sealed, ServerId::new());
    assert!(matches!(other, Err(TargetError::Sealed(_))), "another server's credentials");
    assert!(matches!(build("ftp://mcp.example/", &sealed, server), Err(TargetError::Url(_))));
    for (name, value) in [
        ("host", "x"),
        ("Content-Length", "1"),
        ("a b", "x"),
        ("x-a", "a\r\nb: c"),
        ("transfer-encoding", "chunked"),
    ] {
        let refused = build("https://mcp.example/", &seal(name, value), server);
        assert!(matches!(refused, Err(TargetError::Header(_))), "{name}");
        assert!(Target::header(name, &SecretString::from(value.to_owned())).is_none());
    }
}
