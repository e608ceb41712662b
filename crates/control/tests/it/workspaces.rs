//! Workspaces that are deleted, restored, erased and handed over, and what the operator allows them.

use secrecy::ExposeSecret;
use sluice_control::operator::Operator;
use sluice_control::{Admin, EventFilter, GRACE, GrantForm, Page, ServerForm, Viewer};
use sluice_domain::{Role, WorkspaceLimits};
use sluice_store::{routes, workspaces};
use sluice_testkit::columns::rows_of;
use sluice_testkit::on_both;
use sluice_vault::parse_token;

use crate::common::{World, code};
use crate::parking::{Call, park, parking};

fn operator(world: &World) -> Operator {
    Operator::new(world.db.clone(), world.vault.clone(), world.clock.function())
}

on_both! {
    async fn a_deleted_workspace_stops_and_comes_back_as_it_was(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let grant = world.control.create_grant(&admin, server, GrantForm { label: "bot".into(), ..GrantForm::default() }).await.expect("makes");
        let (_, hash) = parse_token(grant.token.expose_secret()).expect("a token");
        for typed in ["", "Acme", "other"] {
            assert_eq!(code(world.control.delete_workspace(&admin, typed).await), "not_confirmed", "{typed}");
        }
        let erased_at = world.control.delete_workspace(&admin, " acme ").await.expect("deletes");
        assert_eq!(erased_at, world.control.now() + GRACE);
        assert_eq!(code(world.control.delete_workspace(&admin, "acme").await), "not_found");
        assert_eq!(code(world.control.enter::<Viewer>(&admin.actor, "acme").await), "not_found");
        assert_eq!(world.control.workspaces(&admin.actor).await.expect("answers"), []);
        let route = async || {
            let mut tx = world.db.read().await.expect("reads");
            routes::find(&mut tx.conn(), hash.as_bytes()).await.expect("answers").expect("a route")
        };
        assert!(route().await.suspended, "its grants stop");
        // Its address is nobody else's meanwhile.
        let other = world.workspace("Acme", "bob@example.test").await;
        assert_eq!(other.slug, "acme-2");

        let closed = world.control.closed_workspaces(&admin.actor).await.expect("answers");
        assert_eq!(closed.iter().map(|one| (one.slug.as_str(), one.erased_at)).collect::<Vec<_>>(), [("acme", erased_at)]);
        assert_eq!(world.control.closed_workspaces(&other.actor).await.expect("answers"), []);
        assert_eq!(code(world.control.restore_workspace(&other.actor, admin.workspace).await), "not_found");
        assert_eq!(world.control.restore_workspace(&admin.actor, admin.workspace).await.expect("restores"), "acme");
        let admin: Admin = world.control.enter(&admin.actor, "acme").await.expect("enters");
        assert_eq!(world.control.server(&admin, server).await.expect("there").id, server);
        assert!(!route().await.suspended);
        let events = world.control.admin_events(&admin, &EventFilter::default(), Page::first(50)).await.expect("answers").items;
        let actions: Vec<_> = events.iter().map(|event| event.action.as_str()).filter(|action| action.starts_with("workspace.")).collect();
        assert_eq!(actions, ["workspace.restore", "workspace.delete", "workspace.create"]);
    }

    async fn after_its_grace_nothing_of_a_workspace_is_left(world: World) {
        let kept = world.workspace("Kept", "bob@example.test").await;
        parking(&world, &kept).await;
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        park(&world, &admin, &at, Call::default()).await;
        world.control.change_slug(&admin, "acme-inc").await.expect("moves");
        let admin: Admin = world.control.enter(&admin.actor, "acme-inc").await.expect("enters");
        world.control.idempotency_begin(&admin.actor, Some(admin.workspace), "k", &[b"x"]).await.expect("new");
        let before = rows_of(&world.db, kept.workspace.uuid()).await;
        assert!(rows_of(&world.db, admin.workspace.uuid()).await.len() > 10, "many tables");
        world.control.delete_workspace(&admin, "acme-inc").await.expect("deletes");
        world.clock.advance(GRACE - chrono::TimeDelta::seconds(1));
        assert_eq!(world.control.erase_closed_workspaces().await.expect("looks"), 0);
        world.clock.advance(chrono::TimeDelta::seconds(1));
        assert_eq!(code(world.control.restore_workspace(&admin.actor, admin.workspace).await), "not_found");
        assert_eq!(world.control.erase_closed_workspaces().await.expect("erases"), 1);
        assert_eq!(rows_of(&world.db, admin.workspace.uuid()).await, [] as [String; 0]);
        assert_eq!(rows_of(&world.db, kept.workspace.uuid()).await, before);
        assert_eq!(world.control.erase_closed_workspaces().await.expect("looks"), 0);
        // The address is free again.
        assert_eq!(world.workspace("Acme", "eve@example.test").await.slug, "acme");
    }

    async fn a_workspace_is_handed_over_in_one_step(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let bob: Viewer = world.member(&admin, "bob@example.test", Role::Viewer).await;
        let bob = bob.actor.clone();
        let stranger = world.person("eve@example.test").await;
        let over = async |to, stay| world.control.hand_over_workspace(&admin, to, stay).await;
        assert_eq!(code(over(admin.actor.user, None).await), "is_self");
        assert_eq!(code(over(stranger.user, None).await), "unknown_member");
        over(bob.user, Some(Role::Viewer)).await.expect("hands over");
        let bobs: Admin = world.control.enter(&bob, "acme").await.expect("an admin now");
        assert_eq!(code(world.control.enter::<Admin>(&admin.actor, "acme").await), "role_too_low");
        let mut tx = world.db.read().await.expect("reads");
        let found = workspaces::find(&mut tx.conn(), admin.workspace).await.expect("answers");
        assert_eq!(found.and_then(|found| found.created_by), Some(bob.user));
        drop(tx);
        world.control.hand_over_workspace(&bobs, admin.actor.user, None).await.expect("hands back");
        assert_eq!(code(world.control.enter::<Viewer>(&bob, "acme").await), "not_found");
        world.control.enter::<Admin>(&admin.actor, "acme").await.expect("an admin again");
    }

    async fn what_the_operator_allows_is_kept_to(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let set = async |limits| operator(&world).set_limits("acme", |_| limits).await;
        let least = WorkspaceLimits { servers: Some(1), grants: Some(1), calls_per_day: Some(7), log_days: None };
        assert_eq!(set(least).await.expect("sets"), least);
        let server = world.server(&admin).await;
        let again = world.control.connect(&admin, ServerForm { name: "second".into(), upstream_url: world.upstream.url(), ..ServerForm::default() }).await;
        assert_eq!(code(again), "too_many");
        let grant = async |label: &str| {
            world.control.create_grant(&admin, server, GrantForm { label: label.into(), ..GrantForm::default() }).await
        };
        grant("one").await.expect("makes");
        assert_eq!(code(grant("two").await), "too_many");
        let card = world.control.workspace_card(&admin).await.expect("answers");
        assert_eq!((card.servers, card.grants, card.calls_per_day), ((1, 1), (1, 1), Some(7)));
        set(WorkspaceLimits::default()).await.expect("sets");
        grant("two").await.expect("makes");
        let events = world.control.admin_events(&admin, &EventFilter::default(), Page::first(50)).await.expect("answers").items;
        assert_eq!(events.iter().filter(|event| event.action == "workspace.set_limits").count(), 2);
        assert_eq!(code(operator(&world).set_limits("nowhere", |limits| limits).await), "not_found");
    }
}
