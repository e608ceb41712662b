//! The limits page: what is used and left, who is near the edge, setting back, and Redis away.

use http::StatusCode;
use sluice_domain::{Amount, GrantId, ReservationId, Reset, Scope, WorkspaceId};
use sluice_limits::{CounterKey, Counters, Demand, RedisOptions, session_owner};
use sluice_testkit::{RedisServer, TestClock};

use crate::browser::{Browser, plain};
use crate::world::World;

const LIMITED: &str = r#"{"version":"1","default":"deny","tools":{"executePython":{"limits":[
    {"counter":"runs","window":"minute","max":10},
    {"counter":"burst","window":"hour","max":4,"scope":"session"},
    {"counter":"never","window":"hour","max":0,"scope":"workspace"}]}}}"#;

struct Scene {
    world: World,
    browser: Browser,
    workspace: WorkspaceId,
    grant: GrantId,
}

/// A grant `agent` under a policy with limits.
async fn scene(world: World) -> Scene {
    let (mut browser, path) = world.connected().await;
    let new = format!("{path}/policies/new");
    let typed = [("name", "capped"), ("document", LIMITED), ("press", "save")];
    let made = browser.submit(&new, &typed).await;
    let policy = made.location().rsplit('/').next().expect("an id").to_owned();
    let policy = policy.split('?').next().expect("an id");
    let fields = [("label", "agent"), ("policy", policy)];
    let page = browser.submit(&format!("{path}/grants/new"), &fields).await;
    let links = page.links();
    let grant = links.iter().find_map(|link| link.strip_prefix("/w/acme/grants/"));
    let grant = grant.expect("a link to it").parse().expect("an id");
    let mut tx = world.db.read().await.expect("reads");
    let found = sluice_store::workspaces::find_by_slug(&mut tx.conn(), "acme").await;
    let workspace = found.expect("reads").expect("is there").id;
    tx.commit().await.expect("ends");
    Scene { world, browser, workspace, grant }
}

impl Scene {
    async fn charge(&self, counter: &str, window: &str, scope: Scope, owner: String, count: u32) {
        let window = window.parse().expect(window);
        let key =
            CounterKey { counter: counter.into(), window, reset: Reset::Sliding, scope, owner };
        let demand = [Demand { key, max: Amount::whole(10), amount: Amount::whole(count) }];
        let told = self.world.counters.reserve(self.workspace, ReservationId::new(), &demand).await;
        assert!(told.expect("available").granted);
    }
}

#[tokio::test]
async fn who_is_near_the_edge_is_told_on_every_page_that_matters_and_set_back() {
    let mut scene = scene(World::new().await).await;
    let grant = scene.grant.to_string();
    scene.browser.get("/w/acme/limits").await.says("3 counters, none near its edge");
    assert!(!scene.browser.get("/w/acme/").await.body.contains("near its edge"));
    scene.charge("runs", "minute", Scope::Grant, grant.clone(), 9).await;
    let session = session_owner(scene.grant, "0123456789abcdef.signature");
    scene.charge("burst", "hour", Scope::Session, session, 1).await;

    let page = scene.browser.get("/w/acme/limits").await;
    page.says("4 counters, 1 of them is used to 80% or more")
        .says("`executePython` may run 10 times a minute per grant.".replace('`', "").as_str())
        .says("9 of 10")
        .says("in 63 s")
        .says("agent, session 01234567…")
        .says("agent, outside sessions")
        .says("none: the limit is 0")
        .says("the whole workspace");
    assert!(!plain(&page.body).contains("signature"), "a session is shown short");
    let (first, later) = (page.body.find("9 of 10"), page.body.find("1 of 4"));
    assert!(first < later, "the nearest to its edge comes first");
    scene
        .browser
        .get("/w/acme/")
        .await
        .says("1 counter is near its edge: runs of agent has 1 of 10 left.");
    scene.browser.get(&format!("/w/acme/grants/{grant}")).await.says("Its limits").says("9 of 10");

    // It is live: with time, the window empties by itself.
    scene.world.clock.advance(chrono::TimeDelta::seconds(40));
    scene.browser.get("/w/acme/limits").await.says("in 23 s");
    let done = scene.browser.submit_to("/w/acme/limits", "/w/acme/limits/reset", &[]).await;
    assert_eq!(done.location(), "/w/acme/limits");
    let after = scene.browser.get("/w/acme/limits").await;
    after.says("Set runs back to nothing; it held 9.").says("4 counters, none near its edge");
    scene.browser.get("/w/acme/audit").await.says("limit.reset").says("runs");
    // From a grant's page, back to it; from elsewhere, nowhere else.
    scene.charge("runs", "minute", Scope::Grant, grant.clone(), 2).await;
    let page = format!("/w/acme/grants/{grant}");
    let done = scene.browser.submit_to(&page, "/w/acme/limits/reset", &[]).await;
    assert_eq!(done.location(), page);
    scene.charge("runs", "minute", Scope::Grant, grant, 2).await;
    let elsewhere = [("back", "https://evil.example.com/")];
    let done = scene.browser.submit_to("/w/acme/limits", "/w/acme/limits/reset", &elsewhere).await;
    assert_eq!(done.location(), "/w/acme/limits");
}

#[tokio::test]
async fn filters_stand_in_the_address_and_unknown_ones_are_absent() {
    let mut scene = scene(World::new().await).await;
    let grant = scene.grant;
    let page = scene.browser.get(&format!("/w/acme/limits?grant={grant}")).await;
    page.says(&format!("grant: {grant}")).says("3 counters");
    for odd in ["grant=x", "server=x", "policy=01a22c71-f515-7342-80fb-374514665aa4"] {
        let page = scene.browser.get(&format!("/w/acme/limits?{odd}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{odd}");
    }
    let far = scene.browser.get("/w/acme/limits?page=99").await;
    far.says("1–3 of 3");
}

#[tokio::test]
async fn a_workspace_without_limits_is_taught() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    browser.get("/w/acme/limits").await.says("No limit is in use").says("Open the policies");
}

#[tokio::test]
async fn with_redis_away_every_page_says_so_in_words_and_still_opens() {
    let mut redis = RedisServer::start();
    let clock = TestClock::at("2026-11-30T12:00:00Z");
    let options = RedisOptions { clock: Some(clock.function()), ..RedisOptions::default() };
    let counters = Counters::redis(&redis.url(), options).await.expect("an address");
    let mut scene = scene(World::with(clock, counters).await).await;
    let grant = scene.grant.to_string();
    scene.charge("runs", "minute", Scope::Grant, grant.clone(), 9).await;
    scene.browser.get("/w/acme/limits").await.says("9 of 10");
    redis.kill();
    let trouble = "Limits are not being counted: redis cannot be reached";
    for path in ["/w/acme/limits", "/w/acme/", &format!("/w/acme/grants/{grant}")] {
        let page = scene.browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        page.says(trouble).says("unless the limit says on_unavailable: allow");
    }
    let page = scene.browser.get("/w/acme/limits").await;
    page.says("how they stand is not known").says("not known of 10");
}
