//! How limits stand, and setting a counter back, on both databases and both kinds of counters.

use std::time::Duration;

use chrono::TimeDelta;
use sluice_control::{
    Admin, ControlError, CounterForm, EventFilter, GrantForm, GrantPatch, LimitView, LimitsOf,
    Page, PolicyForm,
};
use sluice_domain::{Amount, GrantId, PolicyId, ReservationId, Reset, Scope, ServerId};
use sluice_limits::{CounterKey, Counters, Demand, Reason, RedisOptions, session_owner};
use sluice_store::Db;
use sluice_testkit::{RedisServer, TestClock, on_both};

use crate::common::{World, code};

const LIMITED: &str = r#"{"version":"1","default":"deny",
  "all_tools":{"limits":[{"counter":"all","window":"day","max":1000,"scope":"workspace","reset":"calendar"}]},
  "tools":{
    "executePython":{"limits":[
      {"counter":"runs","window":"minute","max":10},
      {"counter":"burst","window":"second","max":3,"scope":"session"},
      {"counter":"money","window":"day","max":100.50,"scope":"server","increment_from":"args.amount"}]},
    "read_file":{"limits":[{"counter":"runs","window":"minute","max":10}]}}}"#;

/// A world on each kind of counters; the Redis lives as long as the value.
struct Worlds([(World, Option<RedisServer>); 2]);

impl Worlds {
    async fn on(db: Db) -> Self {
        let clock = || TestClock::at("2026-11-30T12:00:00Z");
        let (memory, redis) = (clock(), clock());
        let server = RedisServer::start();
        let options = RedisOptions { clock: Some(redis.function()), ..RedisOptions::default() };
        let shared = Counters::redis(&server.url(), options).await.expect("an address");
        let in_process = Counters::in_memory(memory.function());
        Self([
            (World::counting(db.clone(), memory, in_process).await, None),
            (World::counting(db, redis, shared).await, Some(server)),
        ])
    }
}

/// A workspace with a server, a policy and two grants under it.
struct Scene<'w> {
    world: &'w World,
    admin: Admin,
    server: ServerId,
    policy: PolicyId,
    grants: [GrantId; 2],
}

async fn scene(world: &World, at: usize) -> Scene<'_> {
    let admin = world.workspace(&format!("Acme {at}"), &format!("ann{at}@example.test")).await;
    let server = world.server(&admin).await;
    let form =
        PolicyForm { name: Some("main".into()), document: LIMITED.into(), note: String::new() };
    let policy = world.control.create_policy(&admin, server, form).await.expect("saves").policy.id;
    let grant = async |label: &str, policy| {
        let form = GrantForm { label: label.to_owned(), policy, ..GrantForm::default() };
        world.control.create_grant(&admin, server, form).await.expect("makes it").grant.id
    };
    let grants = [grant("one", Some(policy)).await, grant("two", Some(policy)).await];
    grant("bare", None).await;
    Scene { world, admin, server, policy, grants }
}

fn key(counter: &str, window: &str, scope: Scope, owner: impl Into<String>) -> CounterKey {
    let window = window.parse().expect(window);
    CounterKey {
        counter: counter.into(),
        window,
        reset: Reset::Sliding,
        scope,
        owner: owner.into(),
    }
}

impl Scene<'_> {
    async fn charge(&self, key: CounterKey, max: &str, amount: &str) {
        let number = |text: &str| text.parse::<Amount>().expect(text);
        let demand = [Demand { key, max: number(max), amount: number(amount) }];
        let (workspace, id) = (self.admin.workspace, ReservationId::new());
        let told = self.world.counters.reserve(workspace, id, &demand).await;
        assert!(told.expect("available").granted);
    }

    async fn all(&self, of: LimitsOf) -> Vec<LimitView> {
        let page = self.world.control.limits(&self.admin, of, Page::first(1_000)).await;
        page.expect("reads").items
    }
}

fn form(counter: &str, window: &str, scope: &str) -> CounterForm {
    CounterForm {
        counter: counter.into(),
        window: window.into(),
        scope: scope.into(),
        ..CounterForm::default()
    }
}

/// `counter of label/session: used/max, left`.
fn told(rows: &[LimitView]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let label = row.grant.as_ref().map_or("", |(_, label)| label.as_str());
            let session = row.session.as_deref().map_or_else(String::new, |one| format!("/{one}"));
            let reading = row.reading.expect("was read");
            let (used, left) = (reading.used, reading.remaining);
            format!("{} {label}{session}: {used}/{}, {left}", row.counter, row.max)
        })
        .collect()
}

on_both! {
    async fn every_limit_in_use_is_told_with_what_is_used_and_left(db: Db) {
        for (at, (world, _redis)) in Worlds::on(db).await.0.iter().enumerate() {
            let scene = scene(world, at).await;
            let [one, two] = scene.grants;
            for _ in 0..8 {
                scene.charge(key("runs", "minute", Scope::Grant, one.to_string()), "10", "1").await;
            }
            scene.charge(key("money", "day", Scope::Server, scene.server.to_string()), "100.5", "40.25").await;
            let session = session_owner(two, "s-1");
            scene.charge(key("burst", "second", Scope::Session, session), "3", "1").await;
            let daily = CounterKey {
                reset: Reset::Calendar,
                ..key("all", "day", Scope::Workspace, scene.admin.workspace.to_string())
            };
            scene.charge(daily, "1000", "1").await;
            let everything = scene.all(LimitsOf::default()).await;
            assert_eq!(told(&everything), [
                "all : 1/1000, 999",
                "runs one: 8/10, 2", "runs two: 0/10, 10",
                "burst one: 0/3, 3", "burst two: 0/3, 3", "burst two/s-1: 1/3, 2",
                "money : 40.25/100.5, 60.25",
            ]);
            let runs = &everything[1];
            assert_eq!(runs.rules, ["/tools/executePython/limits/0", "/tools/read_file/limits/0"]);
            assert_eq!(runs.sentence, "`executePython` may run 10 times a minute per grant.");
            assert_eq!((runs.percent(), runs.is_near()), (Some(80), true));
            let resets = runs.reading.and_then(|reading| reading.resets_in).expect("it counts");
            assert!(resets > Duration::from_mins(1) && resets <= Duration::from_secs(63));
            assert_eq!(everything[2].reading.and_then(|reading| reading.resets_in), None);

            let nearest = world.control.nearest_limits(&scene.admin, LimitsOf::default()).await;
            let nearest = nearest.expect("reads");
            assert_eq!((nearest.near(), nearest.partial, nearest.fault), (1, false, None));
            let order: Vec<_> = told(&nearest.rows).into_iter().take(4).collect();
            assert_eq!(order, [
                "runs one: 8/10, 2", "money : 40.25/100.5, 60.25", "burst two/s-1: 1/3, 2", "all : 1/1000, 999",
            ]);
            // A grant is held to its own counters, and to those it shares.
            let of = LimitsOf { grant: Some(two), ..LimitsOf::default() };
            assert_eq!(told(&scene.all(of).await), [
                "all : 1/1000, 999", "runs two: 0/10, 10", "burst two: 0/3, 3", "burst two/s-1: 1/3, 2",
                "money : 40.25/100.5, 60.25",
            ]);
        }
    }

    async fn only_policies_that_a_live_grant_has_are_in_use(db: Db) {
        for (at, (world, _redis)) in Worlds::on(db).await.0.iter().enumerate() {
            let scene = scene(world, at).await;
            let [one, two] = scene.grants;
            assert_eq!(scene.all(LimitsOf::default()).await.len(), 6);
            world.control.revoke_grant(&scene.admin, one).await.expect("revokes");
            assert_eq!(scene.all(LimitsOf::default()).await.len(), 4);
            let patch = GrantPatch { expires_at: Some(Some(world.control.now() + TimeDelta::hours(1))), ..GrantPatch::default() };
            world.control.edit_grant(&scene.admin, two, None, patch).await.expect("edits");
            assert_eq!(scene.all(LimitsOf::default()).await.len(), 4);
            world.clock.advance(TimeDelta::hours(1));
            assert_eq!(scene.all(LimitsOf::default()).await, []);
        }
    }

    async fn pages_are_whole_and_stable_whatever_is_counted_meanwhile(db: Db) {
        for (at, (world, _redis)) in Worlds::on(db).await.0.iter().enumerate() {
            let scene = scene(world, at).await;
            let form = PolicyForm { name: Some("other".into()), document: LIMITED.into(), note: String::new() };
            let other = world.control.create_policy(&scene.admin, scene.server, form).await.expect("saves");
            let form = GrantForm { label: "three".into(), policy: Some(other.policy.id), ..GrantForm::default() };
            world.control.create_grant(&scene.admin, scene.server, form).await.expect("makes it");
            let session = session_owner(scene.grants[1], "s");
            scene.charge(key("burst", "second", Scope::Session, session), "3", "1").await;
            let whole: Vec<_> = scene.all(LimitsOf::default()).await.into_iter().map(|row| row.key).collect();
            assert_eq!(whole.len(), 7 + 4);
            for limit in [1, 2, 3, 10, 11] {
                let (mut page, mut found) = (Page::first(limit), Vec::new());
                loop {
                    let told = world.control.limits(&scene.admin, LimitsOf::default(), page).await.expect("reads");
                    assert!(told.items.len() <= usize::try_from(limit).expect("small"));
                    found.extend(told.items.into_iter().map(|row| row.key));
                    scene.charge(key("runs", "minute", Scope::Grant, scene.grants[0].to_string()), "1000", "1").await;
                    let Some(next) = told.next else { break };
                    page = Page { after: Some(next), limit };
                }
                assert_eq!(found, whole, "in pages of {limit}");
            }
        }
    }

    async fn another_workspace_sees_and_resets_nothing(db: Db) {
        for (at, (world, _redis)) in Worlds::on(db).await.0.iter().enumerate() {
            let scene = scene(world, at).await;
            let [one, _] = scene.grants;
            let stranger = world.workspace(&format!("Other {at}"), &format!("bob{at}@example.test")).await;
            let control = &world.control;
            let none = control.limits(&stranger, LimitsOf::default(), Page::first(9)).await;
            assert!(none.expect("reads").items.is_empty());
            for of in [
                LimitsOf { grant: Some(one), ..LimitsOf::default() },
                LimitsOf { server: Some(scene.server), ..LimitsOf::default() },
                LimitsOf { policy: Some(scene.policy), ..LimitsOf::default() },
            ] {
                assert_eq!(code(control.limits(&stranger, of, Page::first(9)).await), "not_found");
                assert_eq!(code(control.nearest_limits(&stranger, of).await), "not_found");
            }
            scene.charge(key("runs", "minute", Scope::Grant, one.to_string()), "10", "1").await;
            scene.charge(key("money", "day", Scope::Server, scene.server.to_string()), "100", "1").await;
            let of_grant = CounterForm { grant: Some(one), ..form("runs", "minute", "grant") };
            let of_server = CounterForm { server: Some(scene.server), ..form("money", "day", "server") };
            for form in [of_grant, of_server] {
                assert_eq!(code(control.reset_counter(&stranger, form).await), "not_found");
            }
            // Their own workspace's counter of that name is another one.
            let form = CounterForm { reset: Some("calendar".into()), ..form("all", "day", "workspace") };
            assert_eq!(control.reset_counter(&stranger, form).await.expect("resets"), Amount::ZERO);
            assert_eq!(told(&scene.all(LimitsOf::default()).await)[1], "runs one: 1/10, 9");
        }
    }

    async fn a_manager_resets_a_counter_and_the_audit_log_says_so(db: Db) {
        for (at, (world, _redis)) in Worlds::on(db).await.0.iter().enumerate() {
            let scene = scene(world, at).await;
            let [one, two] = scene.grants;
            let manager = world.member::<sluice_control::PolicyManager>(
                &scene.admin, &format!("max{at}@example.test"), sluice_domain::Role::PolicyManager).await;
            let session = session_owner(two, "s.1-x");
            scene.charge(key("runs", "minute", Scope::Grant, one.to_string()), "10", "7").await;
            scene.charge(key("money", "day", Scope::Server, scene.server.to_string()), "100.5", "0.75").await;
            scene.charge(key("burst", "second", Scope::Session, session), "3", "2").await;
            for (form, held) in [
                (CounterForm { grant: Some(one), ..form("runs", "60s", "grant") }, "7"),
                (CounterForm { server: Some(scene.server), ..form("money", "day", "server") }, "0.75"),
                (CounterForm { grant: Some(two), session: Some("s.1-x".into()), ..form("burst", "second", "session") }, "2"),
                (CounterForm { grant: Some(one), ..form("runs", "minute", "grant") }, "0"),
            ] {
                let was = world.control.reset_counter(&manager, form).await.expect("resets");
                assert_eq!(was.to_string(), held);
            }
            let left = scene.all(LimitsOf::default()).await;
            assert!(left.iter().all(|row| row.reading.is_some_and(|reading| reading.used == Amount::ZERO)));
            let filter = EventFilter { action: Some("limit.reset".into()), ..EventFilter::default() };
            let events = world.control.admin_events(&scene.admin, &filter, Page::first(9)).await.expect("reads").items;
            assert_eq!(events.len(), 4);
            let first = &events[3];
            assert_eq!(first.actor_name, format!("max{at}@example.test"));
            assert_eq!((first.object_kind.as_str(), first.object_id.as_str(), first.object_name.as_str()), ("counter", one.to_string().as_str(), "runs"));
            let (before, after) = (first.before.as_ref().expect("told"), first.after.as_ref().expect("told"));
            assert_eq!((&before["used"], &after["used"]), (&serde_json::json!(7), &serde_json::json!(0)));
            assert_eq!((&before["window"], &before["scope"]), (&serde_json::json!("60s"), &serde_json::json!("grant")));
        }
    }

    async fn what_is_wrong_with_a_reset_is_told_all_at_once(db: Db) {
        let worlds = Worlds::on(db).await;
        let scene = scene(&worlds.0[0].0, 0).await;
        let refused = async |form| match scene.world.control.reset_counter(&scene.admin, form).await {
            Err(ControlError::Invalid(faults)) => faults.into_iter().map(|fault| fault.pointer).collect::<Vec<_>>(),
            other => panic!("not refused: {other:?}"),
        };
        let odd = CounterForm { reset: Some("never".into()), ..form("No Name", "1w", "planet") };
        assert_eq!(refused(odd).await, ["/counter", "/window", "/reset", "/scope"]);
        assert_eq!(refused(form("c", "day", "grant")).await, ["/grant_id"]);
        assert_eq!(refused(form("c", "day", "server")).await, ["/server_id"]);
        let long = CounterForm { session: Some("x".repeat(201)), grant: Some(scene.grants[0]), ..form("c", "day", "session") };
        assert_eq!(refused(long).await, ["/session"]);
    }

    async fn with_the_counters_away_the_limits_are_told_without_their_counts(db: Db) {
        let mut worlds = Worlds::on(db).await;
        let (world, redis) = &mut worlds.0[1];
        let redis = redis.as_mut().expect("Redis");
        let scene = scene(world, 0).await;
        redis.kill();
        let nearest = world.control.nearest_limits(&scene.admin, LimitsOf::default()).await.expect("reads");
        assert_eq!(nearest.fault, Some(Reason::Unreachable));
        assert_eq!((nearest.rows.len(), nearest.near()), (6, 0));
        assert!(nearest.rows.iter().all(|row| row.reading.is_none() && row.percent().is_none()));
        assert!(!world.control.counters_health().is_well());
        let page = world.control.limits(&scene.admin, LimitsOf::default(), Page::first(9)).await;
        assert_eq!(code(page), "unavailable");
        let form = CounterForm { grant: Some(scene.grants[0]), ..form("runs", "minute", "grant") };
        assert_eq!(code(world.control.reset_counter(&scene.admin, form).await), "unavailable");
        let events = world.control.admin_events(&scene.admin, &EventFilter::default(), Page::first(99)).await.expect("reads");
        assert!(events.items.iter().all(|event| !event.action.starts_with("limit.")), "nothing was reset");
    }

    async fn a_reset_that_fails_after_it_was_written_down_is_written_down_as_failed(db: Db) {
        let worlds = Worlds::on(db).await;
        let (world, redis) = &worlds.0[1];
        let scene = scene(world, 0).await;
        // What is no counter can be read as an empty one, but not be set back.
        let foreign = format!("sluice:{{{}}}:c:g:s60:runs:{}", scene.admin.workspace, scene.grants[0]);
        redis.as_ref().expect("Redis").ask(&["LPUSH", &foreign, "x"]).await;
        let form = CounterForm { grant: Some(scene.grants[0]), ..form("runs", "minute", "grant") };
        assert_eq!(code(world.control.reset_counter(&scene.admin, form).await), "unavailable");
        let events = world.control.admin_events(&scene.admin, &EventFilter::default(), Page::first(2)).await.expect("reads");
        let actions: Vec<_> = events.items.iter().map(|event| event.action.as_str()).collect();
        assert_eq!(actions, ["limit.reset_failed", "limit.reset"]);
    }
}
