//! The operator's commands, which work from an empty database.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use sluice_control::operator::Operator;
use sluice_control::{Admin, Proof, Viewer};
use sluice_domain::Role;
use sluice_store::servers;
use sluice_testkit::on_both;
use sluice_vault::{UpstreamHeaders, Vault, generate_master_key};

use crate::common::{PASSWORD, World, code, origin, secret};

fn operator(world: &World) -> Operator {
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
        let login = world.control.log_in("ann@example.test", secret(PASSWORD), &origin()).await.expect("in");
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

    async fn keys_are_rotated_without_losing_a_credential(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let (old, new) = (generate_master_key("old"), generate_master_key("new"));
        let headers = UpstreamHeaders(vec![("X-Key".to_owned(), secret("UP-1234"))]);
        let before = Vault::from_keys(&old).expect("a key");
        let sealed = before.seal_headers(admin.workspace, server, &headers);
        let change = servers::ServerChange {
            headers: Some((Some(&sealed), &["X-Key".to_owned()])),
            ..Default::default()
        };
        let mut tx = world.db.begin().await.expect("begins");
        servers::update(&mut tx.conn(), admin.workspace, server, None, change, world.clock.now()).await.expect("saves");
        tx.commit().await.expect("commits");
        let both = SecretString::from(format!("{},{}", new.expose_secret(), old.expose_secret()));
        let both = Arc::new(Vault::from_keys(&both).expect("two keys"));
        let operator = Operator::new(world.db.clone(), both, world.clock.function());
        assert_eq!(operator.rewrap_all().await.expect("rewraps"), 1);
        assert_eq!(operator.rewrap_all().await.expect("nothing left"), 0);
        let mut tx = world.db.read().await.expect("begins");
        let row = servers::find(&mut tx.conn(), admin.workspace, server).await.expect("reads").expect("is there");
        let after = Vault::from_keys(&new).expect("a key");
        let opened = after.open_headers(admin.workspace, server, &row.sealed_headers.expect("sealed")).expect("opens");
        assert_eq!(opened.0[0].1.expose_secret(), "UP-1234");
    }
}
