//! Clients that can open a page for their user are brought to the approver's page; clients that gave
//! up on a call while it waited are not surprised by its run.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use serde_json::Value;
use sluice_domain::ApprovalStatus;
use sluice_proxy::Approvals;
use sluice_testkit::http::{Answer, Opened};
use tokio::time::timeout;

use crate::fake_approvals::FakeApprovals;
use crate::gateway::{Gateway, Grant, Setup, call, code};
use crate::stage::{Received, Stage, Wire};

const POLICY: &str = r#"{"version":"1","default":"allow","tools":{"echo":{
    "approve_if":[{"conditions":[]}],"approval":{"hold":"HOLD"}}}}"#;
const NEWEST: &str = "2026-07-28";

async fn play(received: Received, mut wire: Wire) {
    let json = ("content-type", "application/json");
    match received.rpc().as_str() {
        "initialize" => {
            let result = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
            wire.answer("200 OK", &[json, ("mcp-session-id", "s")], result).await;
        }
        "tools/call" => wire.text(&received.id(), "ran").await,
        _ => wire.answer("202 Accepted", &[], "").await,
    }
}

struct Scene {
    stage: Stage,
    gateway: Gateway,
    approvals: Arc<FakeApprovals>,
    grant: Grant,
}

async fn scene(hold: &str) -> Scene {
    let stage = Stage::start(play).await;
    let approvals = FakeApprovals::new(9);
    let setup =
        Setup { approvals: Some(Arc::clone(&approvals) as Arc<dyn Approvals>), ..Setup::default() };
    let gateway = Gateway::with(setup).await;
    let grant = gateway.grant(&stage.url(), &POLICY.replace("HOLD", hold));
    Scene { stage, gateway, approvals, grant }
}

impl Scene {
    /// A call of the 2026-07-28 era; `more` are members of its parameters.
    async fn modern(&self, capabilities: &str, more: &str) -> Answer {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{NEWEST}","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":1.0}},{more}{meta}}}}}"#
        );
        let headers =
            [("mcp-protocol-version", NEWEST), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
        self.grant.post(&self.gateway, &headers, &body).await
    }

    /// Opens a session whose client declares `capabilities`.
    async fn session(&self, capabilities: &str) -> String {
        let body = crate::gateway::initialize()
            .replace("\"capabilities\":{}", &format!("\"capabilities\":{capabilities}"));
        let answer = self.grant.post(&self.gateway, &[], &body).await;
        answer.header("mcp-session-id").to_owned()
    }

    async fn open(&self, session: &str, body: &str) -> Opened {
        let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
        self.grant.open(&self.gateway, Method::POST, &headers, body).await
    }
}

const OPENS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

/// The message of an event.
fn data(event: &[u8]) -> Value {
    let text = String::from_utf8_lossy(event);
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no data: {text}"))).expect("JSON")
}

#[tokio::test]
async fn a_client_that_opens_pages_is_asked_to_by_the_calls_answer() {
    let mut scene = scene("10m").await;
    let asked = scene.modern(OPENS, "").await.json();
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let id = scene.approvals.kept.lock()[0].approval.id.to_string();
    let request = &result["inputRequests"]["approval"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "url");
    let url = format!("http://localhost:8080/w/acme/approvals/{id}");
    assert_eq!(request["params"]["url"], url);
    let note = &result["_meta"]["dev.sluice/decision"];
    assert_eq!(
        (&note["code"], &note["approval"]["id"]),
        (&"approval_pending".into(), &id.clone().into())
    );
    let record = scene.gateway.record().await;
    assert_eq!((record.outcome.as_str(), record.code.as_str()), ("waiting", "approval_pending"));
    assert_eq!(scene.stage.count(), 0);

    // It comes back with its answer: now it is held, and what it said to us does not go on.
    let state = result["requestState"].as_str().expect("a state").to_owned();
    let again = |action: &str| {
        format!(
            r#""inputResponses":{{"approval":{{"action":"{action}"}}}},"requestState":"{state}","#
        )
    };
    let again_and_again = again("accept");
    let (answer, ()) = tokio::join!(scene.modern(OPENS, &again_and_again), async {
        scene.approvals.held(1).await;
        scene.approvals.decide(0, ApprovalStatus::Approved, None);
    });
    assert!(answer.text().contains("ran"), "{}", answer.text());
    let calls = scene.stage.calls();
    assert_eq!((calls.len(), scene.approvals.count()), (1, 1));
    let sent = calls[0].text();
    assert!(!sent.contains("requestState") && !sent.contains("inputResponses"), "{sent}");
    assert!(sent.contains(r#""arguments":{"n":1.0}"#), "the rest keeps its bytes: {sent}");

    // Used up: it is asked anew, and a user who would not look is not waited for.
    assert_eq!(scene.modern(OPENS, "").await.json()["result"]["resultType"], "input_required");
    let declined = scene.modern(OPENS, &again("decline")).await;
    assert_eq!(code(&declined), "approval_pending");
    assert_eq!((scene.stage.calls().len(), scene.approvals.count()), (1, 2));
}

#[tokio::test]
async fn a_client_that_does_not_say_that_it_opens_pages_is_not_asked() {
    let scene = scene("0s").await;
    for capabilities in ["{}", r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#] {
        let answer = scene.modern(capabilities, "").await;
        assert_eq!(code(&answer), "approval_pending", "{capabilities}");
        assert_eq!(answer.json()["result"]["resultType"], "complete");
        let session = scene.session(capabilities).await;
        let opened = scene.open(&session, &call("5", "echo", "{}")).await;
        assert_eq!(opened.headers["content-type"], "application/json", "{capabilities}");
        assert_eq!(code(&opened.whole().await.expect("whole")), "approval_pending");
    }
    // An older version has no such pages, whatever the client declares.
    let session = scene.session(OPENS).await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-06-18")];
    let answer = scene.grant.post(&scene.gateway, &headers, &call("6", "echo", "{}")).await;
    assert_eq!(
        (answer.header("content-type"), code(&answer).as_str()),
        ("application/json", "approval_pending")
    );
}

/// Only our own state is ours: an upstream's goes to the upstream.
#[tokio::test]
async fn what_a_client_says_to_its_server_is_left_alone() {
    let scene = scene("0s").await;
    let theirs = r#""inputResponses":{"approval":{"action":"accept"}},"requestState":"theirs","#;
    assert_eq!(scene.modern("{}", theirs).await.json()["result"]["resultType"], "complete");
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    assert!(scene.modern("{}", theirs).await.text().contains("ran"));
    let sent = scene.stage.calls()[0].text().to_owned();
    assert!(sent.contains(theirs), "{sent}");
}

#[tokio::test]
async fn a_session_whose_client_opens_pages_is_asked_on_the_calls_stream() {
    let scene = scene("10m").await;
    let session = scene.session(OPENS).await;
    let before = scene.stage.count();
    let mut opened = scene.open(&session, &call("5", "echo", "{}")).await;
    assert_eq!(opened.headers["content-type"], "text/event-stream");
    let ask = data(&opened.piece().await.expect("open").expect("whole"));
    let id = scene.approvals.kept.lock()[0].approval.id.to_string();
    assert_eq!(
        (&ask["method"], &ask["params"]["mode"]),
        (&"elicitation/create".into(), &"url".into())
    );
    assert_eq!(ask["params"]["elicitationId"], id.as_str());
    assert_eq!(ask["params"]["url"], format!("http://localhost:8080/w/acme/approvals/{id}"));

    // The client's answer is to us, once; its server hears nothing of it.
    let answer =
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#, ask["id"]);
    for expected in [202, 400] {
        let told = scene.open(&session, &answer).await;
        assert_eq!(told.status, expected);
    }
    assert_eq!(scene.stage.count(), before);

    // The same call again waits with it, and its user is not asked twice.
    let second = scene.open(&session, &call("6", "echo", "{}")).await;
    scene.approvals.held(2).await;
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    let done = data(&opened.piece().await.expect("open").expect("whole"));
    assert_eq!(done["method"], "notifications/elicitation/complete");
    assert_eq!(done["params"]["elicitationId"], id.as_str());
    let first = opened.whole().await.expect("whole").text();
    assert!(first.contains("ran") && first.contains("\"id\":5"), "{first}");
    let second = second.whole().await.expect("whole").text();
    assert!(second.contains("ran") && second.contains("\"id\":6"), "{second}");
    assert!(!second.contains("elicitation"), "{second}");
    assert_eq!(scene.stage.calls().len(), 1);
}

#[tokio::test]
async fn a_call_whose_client_left_waits_approved_and_unused_for_the_next_one() {
    for told in [false, true] {
        let scene = scene("10m").await;
        let plain = call("7", "echo", "{}");
        let meta = "\"_meta\":{\"progressToken\":1},\"arguments\"";
        let body = if told { plain.replace("\"arguments\"", meta) } else { plain.clone() };
        tokio::select! {
            _ = scene.grant.post(&scene.gateway, &[], &body) => panic!("it is held"),
            () = scene.approvals.held(1) => {}
        }
        let gone = async {
            while scene.gateway.state.sizes().open > 0 {
                // The gateway tells nobody that it noticed.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(30), gone).await.expect("it notices that its client left");
        scene.approvals.decide(0, ApprovalStatus::Approved, None);
        assert_eq!(scene.stage.count(), 0, "{told}");
        assert!(scene.grant.post(&scene.gateway, &[], &plain).await.text().contains("ran"));
        assert_eq!((scene.stage.count(), scene.approvals.count()), (1, 1), "{told}");
    }
}

#[tokio::test]
async fn a_call_that_its_client_gave_up_on_does_not_run_when_it_is_approved() {
    for in_session in [true, false] {
        let scene = scene("10m").await;
        let session = if in_session { scene.session("{}").await } else { String::new() };
        let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
        headers.extend(in_session.then_some(("mcp-session-id", session.as_str())));
        let post = async |body: String| scene.grant.post(&scene.gateway, &headers, &body).await;
        let (answer, ()) = tokio::join!(post(call("7", "echo", "{}")), async {
            scene.approvals.held(1).await;
            // The client's own time is over, and it says so; the request itself stays open.
            scene.gateway.clock.advance(TimeDelta::seconds(1));
            let gave_up =
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
            assert_eq!(post(gave_up.to_owned()).await.status, 202);
            scene.approvals.decide(0, ApprovalStatus::Approved, None);
        });
        assert_eq!(code(&answer), "approval_pending", "{in_session}");
        assert_eq!(scene.stage.calls().len(), 0, "{in_session}");
        // Approved and unused, it waits for the next identical call, whatever its id.
        scene.gateway.clock.advance(TimeDelta::seconds(1));
        assert!(post(call("7", "echo", "{}")).await.text().contains("ran"), "{in_session}");
        assert_eq!(scene.stage.calls().len(), 1);
    }
}
