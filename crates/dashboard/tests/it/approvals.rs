//! Calls that wait for a person: the inbox, deciding, links, and what is let through.

use http::StatusCode;
use sluice_domain::{ApprovalId, ApprovalStatus, CallId, PolicyKind, ReservationId, WorkspaceId};
use sluice_store::approvals::{self, NewApproval, Parked};
use sluice_store::grants::{self, GrantFilter};
use sluice_store::policies::{self, NewVersion};
use sluice_store::workspaces;
use sluice_vault::Place;

use crate::browser::{Browser, MARKUP, Page, piece};
use crate::world::World;

const DOCUMENT: &str =
    r#"{"version":"1","default":"deny","tools":{"delete_file":{"action":"require_approval"}}}"#;
const ARGUMENTS: &str =
    r#"{"path":"/srv/data","api_key":"sk-live-0123456789abcdef","note":"LONG","count":3}"#;

/// A workspace with a grant under a policy whose calls can be parked.
struct Scene {
    world: World,
    browser: Browser,
    workspace: WorkspaceId,
}

async fn scene() -> Scene {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    browser.submit(&format!("{server}/grants/new"), &[("label", "bot")]).await;
    let mut tx = world.db.read().await.expect("reads");
    let found = workspaces::find_by_slug(&mut tx.conn(), "acme").await.expect("reads");
    let workspace = found.expect("is there").id;
    drop(tx);
    let server = server.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
    let first = NewVersion { document: DOCUMENT, author: None, note: "" };
    let mut tx = world.db.begin().await.expect("begins");
    let (conn, kind, now) = (&mut tx.conn(), PolicyKind::Custom, world.clock.now());
    policies::create(conn, workspace, server, "careful", kind, first, now).await.expect("saves");
    tx.commit().await.expect("commits");
    Scene { world, browser, workspace }
}

impl Scene {
    async fn park(&self, tool: &str, digest: &str) -> ApprovalId {
        self.park_with(tool, digest, ARGUMENTS).await
    }

    async fn park_with(&self, tool: &str, digest: &str, arguments: &str) -> ApprovalId {
        let mut tx = self.world.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let of = GrantFilter::default();
        let grant = &grants::list(conn, self.workspace, of, None, 9).await.expect("lists")[0];
        let policy = policies::list(conn, self.workspace, None, None, 9).await.expect("lists");
        let (id, now) = (ApprovalId::new(), self.world.clock.now());
        let place = Place::approval_arguments(self.workspace, id);
        let text = arguments.replace("LONG", &"long ".repeat(100));
        let sealed = self.world.vault.seal(place, text.as_bytes());
        let new = NewApproval {
            id,
            server: grant.server_id,
            grant: grant.id,
            grant_label: &grant.label,
            call: CallId::new(),
            tool,
            tool_hash: None,
            arguments_digest: digest,
            sealed_arguments: &sealed,
            policy: policy[0].id,
            policy_version: 1,
            rule: "/tools/delete_file/approve_if/0",
            rules_digest: "rules",
            session: Some("0123456789abcdef.signature"),
            client_name: Some("claude"),
            reservation: Some(ReservationId::new()),
            demands: Some("[]"),
            approvers: &[],
            quorum: 1,
            self_allowed: true,
            hold_until: now + chrono::TimeDelta::seconds(50),
            expires_at: now + chrono::TimeDelta::minutes(30),
        };
        let parked = approvals::create_or_join(conn, self.workspace, new, 99, now).await;
        assert!(matches!(parked.expect("parks"), Parked::Created(_)));
        tx.commit().await.expect("commits");
        id
    }

    async fn status(&self, id: ApprovalId) -> ApprovalStatus {
        let mut tx = self.world.db.read().await.expect("reads");
        let found = approvals::find(&mut tx.conn(), self.workspace, id).await.expect("reads");
        found.expect("is there").status
    }
}

fn one(id: ApprovalId) -> String {
    format!("/w/acme/approvals/{id}")
}

#[tokio::test]
async fn the_inbox_opens_the_riskiest_and_a_form_decides() {
    let mut scene = scene().await;
    let read = scene.park("read_file", "1").await;
    let delete = scene.park("delete_file", "2").await;
    let page = scene.browser.get("/w/acme/approvals").await;
    let rows: Vec<String> =
        page.links().into_iter().filter(|link| link.contains("?open=")).collect();
    assert_eq!(
        rows,
        [format!("/w/acme/approvals?open={delete}"), format!("/w/acme/approvals?open={read}")]
    );
    assert!(
        page.body.contains(&format!("?open={delete}\" aria-current=\"true\"")),
        "the riskiest is open"
    );
    page.says("Critical").says("/srv/data").says("bot").says("01234567…");
    page.says("The first call of this tool by this grant")
        .says("The call was parked")
        .says("ann@example.test opened it");
    page.says("long long").says("… (500 characters)");
    assert!(!page.body.contains("sk-live-"), "masked");
    let other = scene.browser.get(&rows[1]).await;
    assert!(other.body.contains(&format!("?open={read}\" aria-current=\"true\"")));
    // Nothing is decided by looking.
    assert_eq!(scene.status(delete).await, ApprovalStatus::Pending);
    let action = one(delete);
    let none = scene.browser.submit_to("/w/acme/approvals", &action, &[]).await;
    assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
    let typed = [("decision", "deny"), ("note", "not on a Friday")];
    let done = scene.browser.submit_to("/w/acme/approvals", &action, &typed).await;
    assert_eq!(done.location(), "/w/acme/approvals");
    assert_eq!(scene.status(delete).await, ApprovalStatus::Denied);
    let after = scene.browser.get("/w/acme/approvals").await;
    after.says("Denied delete_file. The agent is told.");
    let page = scene.browser.get(&action).await;
    page.says("ann@example.test denied").says("not on a Friday");
    let late = scene.browser.get(&format!("/w/acme/approvals?open={delete}")).await;
    late.says("Denied");
    let again = scene.park("delete_file", "3").await;
    scene
        .browser
        .get(&one(again))
        .await
        .says("Earlier calls of this tool by this grant: 1 denied.");
}

#[tokio::test]
async fn secrets_show_only_on_demand_and_that_is_told() {
    let mut scene = scene().await;
    let id = scene.park("delete_file", "1").await;
    let page = scene.browser.get(&one(id)).await;
    page.says("[redacted]").says("That you look stands in the log");
    assert!(!page.body.contains("sk-live-"));
    let reveal = format!("{}/reveal", one(id));
    let shown = scene.browser.submit_to(&one(id), &reveal, &[]).await;
    assert_eq!(
        (shown.status, shown.headers["cache-control"].to_str().ok()),
        (StatusCode::OK, Some("no-store"))
    );
    shown.says("sk-live-0123456789abcdef").says("ann@example.test looked at its secrets");
    assert_eq!(scene.browser.get(&reveal).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(!scene.browser.get(&one(id)).await.body.contains("sk-live-"));
    let audit = scene.browser.get("/w/acme/audit").await;
    audit.says("approval.reveal");
    assert!(!audit.body.contains("sk-live-"));
}

#[tokio::test]
async fn several_are_denied_at_once() {
    let mut scene = scene().await;
    let mut ids = Vec::new();
    for digest in ["1", "2", "3"] {
        ids.push(scene.park("delete_file", digest).await);
    }
    let path = "/w/acme/approvals";
    let none = scene.browser.submit_to(path, "/w/acme/approvals/deny", &[]).await;
    scene.browser.get(none.location()).await.says("Choose the calls to deny first.");
    let (first, second) = (ids[0].to_string(), ids[1].to_string());
    let csrf = scene.browser.get(path).await.value("csrf");
    let typed = [
        ("csrf", csrf.as_str()),
        ("why", "a flood"),
        ("id", first.as_str()),
        ("id", second.as_str()),
    ];
    let done = scene.browser.post("/w/acme/approvals/deny", &typed).await;
    scene.browser.get(done.location()).await.says("Denied 2 calls.");
    let statuses =
        [scene.status(ids[0]).await, scene.status(ids[1]).await, scene.status(ids[2]).await];
    assert_eq!(statuses, [ApprovalStatus::Denied, ApprovalStatus::Denied, ApprovalStatus::Pending]);
    scene.browser.get(&one(ids[0])).await.says("a flood");
    let again = scene.browser.post("/w/acme/approvals/deny", &typed).await;
    scene
        .browser
        .get(again.location())
        .await
        .says("Denied 0 calls. 2 are left: Ann@example.test refused this");
}

#[tokio::test]
async fn what_is_let_through_is_seen_and_taken_back() {
    let mut scene = scene().await;
    let id = scene.park("delete_file", "1").await;
    let typed = [("decision", "approve"), ("allow", "1")];
    let done = scene.browser.submit_to("/w/acme/approvals", &one(id), &typed).await;
    scene
        .browser
        .get(done.location())
        .await
        .says("The same call by this grant passes for an hour.");
    let list = "/w/acme/approvals/exceptions";
    let page = scene.browser.get(list).await;
    // Its rules are none of this policy's, so it is shown as what it is.
    page.says("delete_file")
        .says("bot")
        .says("ann@example.test")
        .says("0 of 100")
        .says("Ended: the rules changed");
    let grant =
        page.links().into_iter().find(|link| link.starts_with("/w/acme/grants/")).expect("a link");
    scene.browser.get(&grant).await.says("Passes without asking").says("by ann@example.test");
    let action = scene.browser.get(&grant).await.body;
    let action = action
        .split("action=\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|path| path.ends_with("/revoke") && path.contains("exceptions"))
        .expect("a form")
        .to_owned();
    let done = scene.browser.submit_to(&grant, &action, &[]).await;
    assert_eq!(done.location(), list);
    scene.browser.get(list).await.says("Taken back.").says("Every call is asked about");
    scene.browser.get(&format!("{list}?all=1")).await.says("Taken back");
    let twice = scene.browser.get(&grant).await;
    assert!(!twice.body.contains("Passes without asking"));
}

async fn link_of(scene: &Scene) -> String {
    // What a mail would hold: made as the mail's is, without a mail server.
    scene.world.control.tell_news().await.expect("tells");
    let mut tx = scene.world.db.read().await.expect("reads");
    let all = sluice_store::outbox::list_all(&mut tx.conn(), None, 9).await.expect("reads");
    let one = all.last().expect("a message");
    let place = Place::new(scene.workspace, "outbox", one.id.uuid(), "sealed_body");
    let body = scene.world.vault.open(place, &one.sealed_body).expect("opens");
    let body = String::from_utf8_lossy(&body).into_owned();
    let at = body.find("/approve/").expect("a link");
    body[at..].split(['"', '\\']).next().expect("it ends").to_owned()
}

#[tokio::test]
async fn a_channels_link_opens_a_page_that_decides_after_signing_in() {
    let mut scene = scene().await;
    let sink = sluice_testkit::WebhookSink::start().await;
    let typed =
        [("name", "ops"), ("kind", "slack"), ("url", &sink.url("x")), ("event", "approval.asked")];
    scene
        .browser
        .submit_to("/w/acme/notifications", "/w/acme/notifications/endpoints", &typed)
        .await;
    let id = scene.park_with("delete_file", "1", &ARGUMENTS.replace("/srv/data", MARKUP)).await;
    let link = link_of(&scene).await;
    let mut stranger = scene.world.browser();
    let sent = stranger.get(&link).await;
    assert!(sent.location().starts_with("/login?next=/approve/"), "{}", sent.location());
    stranger.sign_up("eve@example.test").await;
    assert_eq!(stranger.get(&link).await.status, StatusCode::NOT_FOUND);
    let page: Page = scene.browser.get(&link).await;
    page.says("delete_file").says("You decide as ann@example.test").says("[redacted]").says(MARKUP);
    assert!(!page.body.contains("<img") && !page.body.contains("sk-live-"));
    assert_eq!(page.headers["cache-control"], "no-store");
    for _ in 0..2 {
        scene.browser.get(&link).await;
    }
    assert_eq!(scene.status(id).await, ApprovalStatus::Pending, "a GET never decides");
    // Without the form's own token nothing is decided either.
    let forged = scene.browser.post(&link, &[("decision", "approve")]).await;
    assert_eq!(
        (forged.status, scene.status(id).await),
        (StatusCode::FORBIDDEN, ApprovalStatus::Pending)
    );
    let done = scene.browser.submit(&link, &[("decision", "approve"), ("note", "ok")]).await;
    assert_eq!((done.status, scene.status(id).await), (StatusCode::OK, ApprovalStatus::Approved));
    done.says("Approved delete_file. It runs once").says("Approved, not run yet");
    let late = scene.browser.get(&link).await;
    late.says("This call is decided or its time is over.");
    assert!(!late.body.contains("name=\"decision\""));
    let odd = scene.browser.get(&format!("{link}x")).await;
    assert_eq!(odd.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_open_inbox_is_told_at_once_and_let_go_with_its_login() {
    let mut scene = scene().await;
    let live = "/w/acme/approvals/live";
    let (first, mut stream) = scene.browser.first_piece(live).await;
    assert_eq!(first.headers["content-type"], "text/event-stream");
    assert!(
        first.body.contains("event: approvals") && first.body.contains("\"pending\":0"),
        "{}",
        first.body
    );
    let id = scene.park("delete_file", "1").await;
    // What the change feed's reader does.
    scene.world.control.approval_changed(scene.workspace);
    let told = piece(&mut stream).await;
    assert!(told.contains("\"pending\":1") && told.contains(&id.to_string()), "{told}");
    // Another workspace's news is none here, and a stop ends the stream.
    scene.world.control.approval_changed(WorkspaceId::new());
    scene.world.control.end_streams();
    assert_eq!(piece(&mut stream).await, "");
    let (_, mut stream) = scene.browser.first_piece(live).await;
    scene.browser.submit_to("/w/acme/", "/logout", &[]).await;
    scene.world.control.approval_changed(scene.workspace);
    assert_eq!(piece(&mut stream).await, "", "who signed out is told nothing more");
    let gone = scene.browser.get(live).await;
    assert_eq!(gone.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn the_way_of_deciding_is_one_for_pages_and_links() {
    // The same words of control: what was decided meanwhile is told with who.
    let mut scene = scene().await;
    let id = scene.park("delete_file", "1").await;
    let page = scene.browser.get(&one(id)).await;
    assert!(page.body.contains("Approve this call"));
    let mut tx = scene.world.db.read().await.expect("reads");
    let user = sluice_store::users::find_by_email(&mut tx.conn(), "ann@example.test")
        .await
        .expect("reads")
        .expect("is there");
    drop(tx);
    let mut tx = scene.world.db.begin().await.expect("begins");
    let by = approvals::Decision {
        user_id: user.id,
        approve: true,
        note: String::new(),
        at: scene.world.clock.now(),
        allow_s: None,
    };
    approvals::decide(&mut tx.conn(), scene.workspace, id, by).await.expect("decides");
    tx.commit().await.expect("commits");
    let csrf = page.value("csrf");
    let late = scene.browser.post(&one(id), &[("csrf", &csrf), ("decision", "deny")]).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    late.says("Ann@example.test approved this on");
}
