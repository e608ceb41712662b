//! The operator's commands, which work from an empty database.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use sluice_control::operator::{Operator, Rewrapped};
use sluice_control::{
    Admin, AuthForm, EventFilter, GrantForm, Page, Proof, Repeat, ServerPatch, Viewer,
};
use sluice_domain::Role;
use sluice_testkit::on_both;
use sluice_vault::{Vault, generate_master_key};

use crate::common::{PASSWORD, World, code, complete, origin, secret};
use crate::parking::{Call, park, parking};

pub(crate) fn operator(world: &World) -> Operator {
    Operator::new(world.db.clone(), Arc::clone(&world.vault), world.clock.function())
}

on_both! {
    async fn a_script_starts_from_nothing(world: World) {
        let operator = operator(&world);
        let missing = operator.api_token("ci@example.test", "My Team", Role::Admin, false).await;
        assert_eq!(code(missing), "not_found");
        let made = operator.api_token("ci@example.test", "My Team", Role::Admin, true).await.expect("makes all");
        assert_eq!(made.workspace, "my-team");
        let again = operator.api_token("CI@example.test", "my-team", Role::Viewer, false).await.expect("finds all");
        let actor = world.control.who_by_api_token(made.token.expose_secret(), "").await.expect("answers").expect("known");
        let admin: Admin = world.control.enter(&actor, "my-team").await.expect("an admin");
        world.server(&admin).await;
        let low = world.control.who_by_api_token(again.token.expose_secret(), "").await.expect("answers").expect("known");
        assert_eq!(code(world.control.enter::<Admin>(&low, "my-team").await), "role_too_low");
        world.control.enter::<Viewer>(&low, "my-team").await.expect("a viewer");
        // A token opens its own workspace alone, whatever its maker may.
        operator.api_token("ci@example.test", "Other", Role::Admin, true).await.expect("makes");
        assert_eq!(code(world.control.enter::<Viewer>(&actor, "other").await), "not_found");
        let Proof::ApiToken { id, .. } = low.proof else { panic!("a token") };
        world.control.revoke_api_token(&admin, id).await.expect("revokes");
        assert_eq!(world.control.who_by_api_token(again.token.expose_secret(), "").await.expect("answers"), None);
    }

    async fn a_reset_password_ends_every_login(world: World) {
        let operator = operator(&world);
        operator.create_user("ann@example.test", secret(PASSWORD)).await.expect("makes");
        assert_eq!(code(operator.create_user("ANN@example.test", secret(PASSWORD)).await), "email_taken");
        let login = complete(world.control.log_in("ann@example.test", secret(PASSWORD), &origin()).await.expect("in"));
        operator.reset_password("ann@example.test", secret("another long one")).await.expect("resets");
        assert_eq!(world.control.who(login.token.expose_secret(), "").await.expect("answers"), None);
        world.control.log_in("ann@example.test", secret("another long one"), &origin()).await.expect("in");
        assert_eq!(code(operator.reset_password("nobody@example.test", secret(PASSWORD)).await), "not_found");
    }

    async fn a_suspended_workspace_can_be_read_and_not_changed(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        operator(&world).suspend("acme", true).await.expect("suspends");
        assert_eq!(code(world.control.enter::<Admin>(&admin.actor, "acme").await), "workspace_suspended");
        world.control.enter::<Viewer>(&admin.actor, "acme").await.expect("reads");
        operator(&world).suspend("acme", false).await.expect("resumes");
        world.control.enter::<Admin>(&admin.actor, "acme").await.expect("writes");
        assert_eq!(code(operator(&world).suspend("nowhere", true).await), "not_found");
    }

    async fn keys_are_rotated_without_losing_anything_sealed(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        let approval = park(&world, &admin, &at, Call::default()).await;
        let auth = AuthForm::Headers(vec![("X-Key".to_owned(), secret("UP-1234"))]);
        let patch = ServerPatch { auth: Some(auth), ..ServerPatch::default() };
        world.control.edit_server(&admin, at.server, None, patch).await.expect("edits");
        for place in [Some(admin.workspace), None] {
            world.control.idempotency_begin(&admin.actor, place, "k", &[b"x"]).await.expect("new");
            let answer = Some((201, &Vec::new(), &b"{\"token\":\"slg_x\"}"[..]));
            world.control.idempotency_end(&admin.actor, place, "k", answer).await.expect("kept");
        }
        let new = generate_master_key("new");
        let both = format!("{},{}", new.expose_secret(), world.keys.expose_secret());
        let both = Arc::new(Vault::from_keys(&SecretString::from(both)).expect("two keys"));
        let operator = Operator::new(world.db.clone(), both, world.clock.function());
        let moved = operator.rewrap_all().await.expect("rewraps");
        assert_eq!(moved, Rewrapped { credentials: 1, arguments: 1, answers: 2, ..Rewrapped::default() });
        assert_eq!(operator.rewrap_all().await.expect("nothing left"), Rewrapped::default());
        // The old key is gone: all of it opens with the new one alone.
        let later = world.with_keys(&new);
        let shown = later.approval(&admin, approval).await.expect("there");
        assert!(shown.arguments.is_some_and(|arguments| arguments.to_string().contains("/x")));
        for place in [Some(admin.workspace), None] {
            let again = later.idempotency_begin(&admin.actor, place, "k", &[b"x"]).await.expect("opens");
            assert!(matches!(again, Repeat::Answered { status: 201, .. }));
        }
        later.refresh(&admin, at.server).await.expect("reads with the credential");
        let seen = world.upstream.seen();
        assert_eq!(seen.last().map(|one| one.headers["x-key"].clone()), Some("UP-1234".parse().expect("a value")));
    }

    async fn every_sealed_column_is_rotated(world: World) {
        // What `rewrap_all` goes through; a new column belongs there and here.
        let rotated = [
            "approvals.sealed_arguments",
            "endpoints.sealed_previous_secret",
            "endpoints.sealed_secret",
            "endpoints.sealed_url",
            "outbox.sealed_body",
            "servers.sealed_headers",
            "totp_factors.sealed_secret",
        ];
        let found = sluice_testkit::columns::named(&world.db, "sealed_%").await;
        assert_eq!(found, rotated);
    }

    async fn a_leaked_token_is_found_and_ended_whatever_it_is(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let form = GrantForm { label: "bot".to_owned(), ..GrantForm::default() };
        let grant = world.control.create_grant(&admin, server, form).await.expect("grants");
        let rotated = world.control.rotate_grant(&admin, grant.grant.id, chrono::TimeDelta::days(1)).await.expect("rotates");
        let invited = world.control.invite(&admin, "ben@example.test", Role::Viewer).await.expect("invites");
        let login = complete(world.control.log_in("ann@example.test", secret(PASSWORD), &origin()).await.expect("in"));
        let hands = operator(&world);
        let api = hands.api_token("ann@example.test", "acme", Role::Admin, false).await.expect("makes").token;
        // The token before the rotation leads to the grant as well.
        let found = hands.revoke_token(&grant.token).await.expect("finds");
        assert_eq!((found.kind, found.workspace.as_deref(), found.server.as_deref(), found.name.as_str(), found.revoked_now),
            ("grant", Some("acme"), Some("sandbox"), "bot", true));
        let again = hands.revoke_token(&rotated.token).await.expect("finds");
        assert!(!again.revoked_now, "it was revoked before");
        assert!(world.control.grant(&admin, grant.grant.id).await.expect("there").revoked_at.is_some());
        for (token, kind) in [(&api, "api_token"), (&login.token, "login"), (&invited.token, "invite")] {
            let found = hands.revoke_token(token).await.expect("finds");
            assert_eq!((found.kind, found.revoked_now), (kind, true));
        }
        assert_eq!(world.control.who_by_api_token(api.expose_secret(), "").await.expect("answers"), None);
        assert_eq!(world.control.who(login.token.expose_secret(), "").await.expect("answers"), None);
        assert_eq!(code(world.control.invite_card(&invited.token).await), "not_found");
        let of = EventFilter { action: Some("grant.revoke".to_owned()), ..EventFilter::default() };
        let noted = world.control.admin_events(&admin, &of, Page::first(9)).await.expect("lists").items;
        assert_eq!((noted.len(), noted[0].actor_kind.as_str()), (1, "operator"));
        assert_eq!(code(hands.revoke_token(&secret("slg_short")).await), "bad_token");
        let unknown = sluice_vault::Issued::new(sluice_vault::TokenKind::Grant).token;
        assert_eq!(code(hands.revoke_token(&unknown).await), "not_found");
    }

    async fn a_workspace_is_found_however_its_name_is_spelt(world: World) {
        let hands = operator(&world);
        let slug = async |name: &str| {
            let made = hands.api_token("ci@example.test", name, Role::Admin, true).await;
            made.expect("makes or finds").workspace
        };
        assert_eq!(slug("acme").await, "acme");
        assert_eq!(slug("Acme").await, "acme");
        assert_eq!(slug("My Team").await, "my-team");
        assert_eq!(slug("MY TEAM").await, "my-team");
        // Another name that would have the same address is another workspace, and stays that one.
        assert_eq!(slug("Zurich").await, "zurich");
        assert_eq!(slug("Zürich").await, "zurich-2");
        assert_eq!(slug("zürich").await, "zurich-2");
    }
}
