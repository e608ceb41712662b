//! The edges of the HTTP surface: hosts, unknown paths, probes, metrics, split addresses and roles.

use ::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::redis_server::free_port;
use sluice_testkit::{FakeServer, http};

use crate::world::{World, decision, passed, setup};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

#[tokio::test]
async fn unknown_paths_answer_programs_in_json_and_people_in_html() {
    let sluice = setup().serve().await;
    for path in
        ["/api", "/api/v1/nothing", "/api/v2", "/.well-known/oauth-protected-resource/mcp/x"]
    {
        for headers in [&[][..], &[HTML]] {
            let answer = sluice.send(Method::GET, path, headers, "").await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
            assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
            assert_eq!(answer.json()["code"], "not_found", "{path}");
        }
    }
    let page = sluice.send(Method::GET, "/nothing/here", &[HTML], "").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.header("content-type").starts_with("text/html"), "{}", page.text());
    sluice.stop().await;
}

#[tokio::test]
async fn a_foreign_host_is_misdirected_everywhere_but_at_the_probes() {
    let sluice = setup().serve().await;
    let foreign = [("host", "evil.example.com")];
    for (path, status) in
        [("/", 421), ("/api/v1/me", 421), ("/mcp/x", 421), ("/readyz", 200), ("/healthz", 200)]
    {
        let answer = sluice.send(Method::GET, path, &foreign, "").await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
    }
    for host in ["localhost:1", "127.0.0.1", "[::1]:8080", "LOCALHOST"] {
        let answer = sluice.send(Method::GET, "/api/v1/me", &[("host", host)], "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{host}");
    }
    sluice.stop().await;
}

#[tokio::test]
async fn readiness_names_each_dependency_and_metrics_count_calls() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let connected =
        world.connect("notes", &upstream.url(), json!({"version": "1", "default": "allow"})).await;
    assert!(passed(&connected.agent().call(&world.sluice, "echo", json!({})).await));
    let ready = world.sluice.send(Method::GET, "/readyz", &[], "").await.json();
    assert_eq!(ready["status"], "ready");
    for dependency in ["database", "counters", "call_log", "change_feed"] {
        assert_eq!(ready["checks"][dependency]["status"], "ready", "{ready}");
    }
    let metrics = world.sluice.send(Method::GET, "/metrics", &[], "").await.text();
    let samples = metrics.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for sample in samples {
        assert!(sample.starts_with("sluice_"), "{sample}");
    }
    for gauge in ["log_waiting", "sessions ", "open_requests ", "routes ", "tasks "] {
        assert!(metrics.contains(&format!("\nsluice_{gauge}")), "{gauge}: {metrics}");
    }
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_proxy_address_of_its_own_serves_the_proxy_alone() {
    let upstream = FakeServer::start().await;
    let (proxy, metrics) = (free_port(), free_port());
    let installed = setup()
        .with("SLUICE_PROXY_LISTEN", format!("127.0.0.1:{proxy}"))
        .with("SLUICE_PROXY_PUBLIC_URL", format!("http://127.0.0.1:{proxy}"))
        .with("SLUICE_METRICS_LISTEN", format!("127.0.0.1:{metrics}"));
    let world = World::start(installed).await;
    let body = json!({"name": "notes", "upstream_url": upstream.url()});
    let server = world.create("/servers", body).await;
    let url = server["proxy_url"].as_str().expect("an address");
    let path = url.strip_prefix(&format!("http://127.0.0.1:{proxy}")).expect(url);

    let ask = async |port: u16, method: Method, path: &str| {
        let answer = http::send(([127, 0, 0, 1], port).into(), method, path, &[], "").await;
        answer.expect("it listens").status.as_u16()
    };
    let main = world.sluice.address().port();
    assert_eq!(ask(proxy, Method::POST, path).await, 401);
    assert_eq!(ask(main, Method::POST, path).await, 404);
    assert_eq!(ask(proxy, Method::GET, "/api/v1/me").await, 404);
    assert_eq!(ask(proxy, Method::GET, "/readyz").await, 200);
    assert_eq!(ask(metrics, Method::GET, "/metrics").await, 200);
    assert_eq!(ask(main, Method::GET, "/metrics").await, 404);
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_proxy_role_serves_no_pages_and_a_control_role_no_proxy() {
    for (role, mcp, rest) in [("proxy", 401, 404), ("control", 404, 401)] {
        let sluice = setup().with("SLUICE_ROLE", role).serve().await;
        let agent = sluice.send(Method::POST, "/mcp/x", &[], "{}").await;
        assert_eq!(agent.status.as_u16(), mcp, "{role}");
        let script = sluice.send(Method::GET, "/api/v1/me", &[], "").await;
        assert_eq!(script.status.as_u16(), rest, "{role}");
        sluice.stop().await;
    }
}

/// What a command writes beside a running server is seen within a second.
#[tokio::test]
async fn a_suspended_workspace_is_refused_at_once() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let connected =
        world.connect("notes", &upstream.url(), json!({"version": "1", "default": "allow"})).await;
    let agent = connected.agent();
    assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    let output = world.sluice.setup().output(&["admin", "suspend", &world.workspace]).await;
    assert!(output.status.success(), "{output:?}");
    let since = std::time::Instant::now();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {}}});
    while agent.post(&world.sluice, call.to_string()).await.status == StatusCode::OK {
        assert!(since.elapsed().as_secs_f32() < 1.0, "a suspended workspace is still served");
    }
    let read = format!("/workspaces/{}/servers", world.workspace);
    let seen = world.rest(Method::GET, &read, Value::Null).await;
    assert_ne!(seen.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", seen.text());
    world.sluice.stop().await;
}

/// The operator's limits, set beside a running server.
#[tokio::test]
async fn what_an_operator_allows_a_workspace_holds_within_a_second() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let document = json!({"version": "1", "default": "allow"});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    let set = async |arguments: &[&str]| {
        let all = [&["admin", "set-limits", &world.workspace][..], arguments].concat();
        world.sluice.setup().output(&all).await
    };
    let told = set(&["--servers", "1", "--calls-per-day", "3"]).await;
    let words = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.status.success(), "{told:?}");
    assert!(
        words.contains("servers 1, live grants default, calls a day 3, days of log default."),
        "{words}"
    );
    // It counts from when it is known here: three more at most, and soon none.
    let mut more = 0;
    while passed(&agent.call(&world.sluice, "echo", json!({})).await) {
        more += 1;
        assert!(more < 10_000, "the day never ends");
    }
    let refused = agent.call(&world.sluice, "echo", json!({})).await;
    assert_eq!(decision(&refused)["rule"], "(calls a day)");
    let body = json!({"name": "second", "upstream_url": upstream.url()});
    let path = format!("/workspaces/{}/servers", world.workspace);
    let full = world.rest(Method::POST, &path, body).await;
    assert_eq!(full.json()["code"], "too_many", "{}", full.text());
    let undone = set(&["--calls-per-day", "default"]).await;
    assert!(undone.status.success(), "{undone:?}");
    let wrong = set(&["--grants", "-1"]).await;
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !passed(&agent.call(&world.sluice, "echo", json!({})).await) {
        assert!(std::time::Instant::now() < deadline, "the limit is never lifted");
    }
    world.sluice.stop().await;
}
