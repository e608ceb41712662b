//! Everything that can go wrong on the way to a server is told apart where an agent, a script and a person
//! look: in the JSON-RPC error's `data`, in the call log and on the dashboard.

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::{Behaviour, FakeServer};
use tokio::net::TcpListener;

use crate::pages::Pages;
use crate::world::{Agent, World, id, setup};

/// An address where nobody listens, and one that takes a connection and says nothing.
async fn nobody() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

async fn silent() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let holding = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    (address, holding)
}

async fn upstream() -> FakeServer {
    let upstream = FakeServer::start().await;
    upstream
        .on_call("late", Behaviour::Held("never".to_owned()))
        .on_call("cut", Behaviour::Cut)
        .on_call("html", Behaviour::Raw(200, "text/html", "<h1>hello</h1>".to_owned()))
        .on_call("away", Behaviour::Redirect("http://169.254.169.254/".to_owned()))
        .on_call("credential", Behaviour::Raw(401, "text/plain", "no".to_owned()))
        .on_call("large", Behaviour::Raw(200, "application/json", "[".repeat(2 << 20)));
    upstream
}

/// The kinds: a tool to call, its code, whether it may have run, and what a person reads.
const AT_A_SERVER: [(&str, &str, bool, &str); 6] = [
    ("late", "upstream_timeout", true, "did not answer in time; the tool may have run"),
    ("cut", "upstream_cut", true, "answer broke off; the tool may have run"),
    ("html", "upstream_not_mcp", true, "was not MCP"),
    ("away", "upstream_not_mcp", false, "was not MCP"),
    ("credential", "upstream_unauthorized", false, "refused Sluice&#39;s credentials"),
    ("large", "upstream_too_large", true, "over the bound"),
];

async fn is_told(world: &World, pages: &Pages<'_>, agent: &Agent, kind: (&str, &str, bool, &str)) {
    let (tool, code, may_have_run, words) = kind;
    let answer = agent.call(&world.sluice, tool, json!({})).await;
    let data = &answer["error"]["data"];
    assert_eq!(
        (&data["code"], &data["may_have_run"]),
        (&json!(code), &json!(may_have_run)),
        "{tool}: {answer}"
    );
    let row = world.calls(&format!("tool={tool}"), 1).await[0].clone();
    assert_eq!((&row["code"], &row["outcome"]), (&json!(code), &json!("failed")), "{row}");
    assert_eq!(row["id"], data["request_id"]);
    let page = pages.get(&format!("/logs/{}", id(&row))).await;
    let plain = page.replace("&#x27;", "&#39;");
    assert!(page.contains(code) && plain.contains(words), "{tool}: {page}");
}

#[tokio::test]
async fn each_kind_of_failure_is_told_apart_in_the_answer_the_log_and_the_dashboard() {
    let (upstream, (mute, holding)) = (upstream().await, silent().await);
    let world = World::start(setup().with("SLUICE_MAX_UPSTREAM_MESSAGE_BYTES", "1MiB")).await;
    let pages = Pages::of(&world).await;
    // Nothing that answers is given a short time: a machine may be busy.
    let agent =
        world.unread("slow", json!({"upstream_url": upstream.url(), "idle_timeout_s": 1})).await;
    is_told(&world, &pages, &agent, AT_A_SERVER[0]).await;
    let agent = world.unread("odd", json!({"upstream_url": upstream.url()})).await;
    for kind in &AT_A_SERVER[1..] {
        is_told(&world, &pages, &agent, *kind).await;
    }
    let never = [
        (
            "gone",
            format!("http://{}/mcp", nobody().await),
            60,
            "upstream_unreachable",
            "could not be reached; the tool did not run",
        ),
        (
            "plain",
            upstream.url().replace("http://", "https://"),
            60,
            "upstream_tls",
            "No secure connection",
        ),
        (
            "mute",
            format!("https://{mute}/mcp"),
            1,
            "upstream_connect_timeout",
            "took too long; the tool did not run",
        ),
    ];
    for (name, url, seconds, code, words) in never {
        let settings = json!({"upstream_url": url, "connect_timeout_s": seconds});
        let agent = world.unread(name, settings).await;
        is_told(&world, &pages, &agent, (name, code, false, words)).await;
    }
    let calls = AT_A_SERVER.len();
    let reached: usize = AT_A_SERVER.iter().map(|(tool, ..)| upstream.calls_of(tool)).sum();
    assert_eq!(reached, calls, "nothing was tried twice");
    let odd = world.must(Method::GET, "/calls?code=upstream_cut", Value::Null, 200).await;
    assert_eq!(odd["items"].as_array().map(Vec::len), Some(1), "the log is filtered by the code");
    holding.abort();
    world.sluice.stop().await;
}
