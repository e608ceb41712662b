//! Grants: tokens shown once, rotation, revocation, and who may change what.

use chrono::TimeDelta;
use secrecy::ExposeSecret;
use sluice_control::{EventFilter, GrantForm, GrantPatch, GrantsOf, Page, PolicyForm};
use sluice_store::routes;
use sluice_testkit::on_both;
use sluice_vault::{TokenKind, parse_token};

use crate::common::{World, code};

fn form(label: &str) -> GrantForm {
    GrantForm { label: label.to_owned(), ..GrantForm::default() }
}

/// Whether the proxy would find a grant by this token, unrevoked.
async fn works(world: &World, token: &str) -> bool {
    let (kind, hash) = parse_token(token).expect("a token");
    assert_eq!(kind, TokenKind::Grant);
    let mut tx = world.db.read().await.expect("begins");
    let route = routes::find(&mut tx.conn(), hash.as_bytes()).await.expect("reads");
    let now = world.clock.now();
    route.is_some_and(|route| {
        !route.grant.revoked && route.grant.expires_at.is_none_or(|until| until > now)
    })
}

on_both! {
    async fn a_token_is_shown_once_and_stored_as_a_hash(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let made = world.control.create_grant(&admin, server, form("laptop")).await.expect("makes");
        let token = made.token.expose_secret();
        assert!(token.starts_with("slg_") && token.ends_with(&made.grant.last4));
        assert!(works(&world, token).await);
        let listed = world.control.grants(&admin, GrantsOf::default(), Page::first(10)).await.expect("lists");
        let events = world.control.admin_events(&admin, &EventFilter::default(), Page::first(50)).await;
        assert!(!format!("{listed:?} {events:?}").contains(&token[..40]));
        assert_eq!(listed.items, std::slice::from_ref(&made.grant));
        assert_eq!(code(world.control.create_grant(&admin, server, form("LAPTOP")).await), "label_taken");
    }

    async fn rotation_overlaps_and_revocation_is_for_good(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let made = world.control.create_grant(&admin, server, form("laptop")).await.expect("makes");
        let id = made.grant.id;
        let rotated = world.control.rotate_grant(&admin, id, TimeDelta::hours(1)).await.expect("rotates");
        assert!(works(&world, made.token.expose_secret()).await, "the old one overlaps");
        assert!(works(&world, rotated.token.expose_secret()).await);
        world.clock.advance(TimeDelta::hours(2));
        assert!(!works(&world, made.token.expose_secret()).await, "the overlap is over");
        let at_once = world.control.rotate_grant(&admin, id, TimeDelta::zero()).await.expect("rotates");
        assert!(!works(&world, rotated.token.expose_secret()).await);
        let negative = world.control.rotate_grant(&admin, id, TimeDelta::seconds(-1)).await;
        assert_eq!(code(negative), "out_of_range");
        world.control.revoke_grant(&admin, id).await.expect("revokes");
        world.control.revoke_grant(&admin, id).await.expect("twice is no error");
        assert!(!works(&world, at_once.token.expose_secret()).await);
        assert_eq!(code(world.control.rotate_grant(&admin, id, TimeDelta::zero()).await), "revoked");
    }

    async fn a_policy_manager_attaches_policies_and_changes_nothing_else(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let server = world.server(&admin).await;
        let other = world.connect(&admin, "other").await.server.id;
        let document = r#"{"version":"1","default":"deny"}"#;
        let policy = |name: &str| PolicyForm {
            name: Some(name.to_owned()),
            document: document.to_owned(),
            note: String::new(),
        };
        let own = world.control.create_policy(&manager, server, policy("own")).await.expect("may").policy.id;
        let foreign = world.control.create_policy(&manager, other, policy("foreign")).await.expect("may").policy.id;
        let grant = world.control.create_grant(&admin, server, form("laptop")).await.expect("makes").grant;
        let attach = |id| GrantPatch { policy: Some(id), ..GrantPatch::default() };
        let attached = world.control.edit_grant(&manager, grant.id, None, attach(Some(own))).await.expect("may");
        assert_eq!(attached.policy_id, Some(own));
        assert_eq!(code(world.control.edit_grant(&manager, grant.id, None, attach(Some(foreign))).await), "unknown_policy");
        for patch in [
            GrantPatch { label: Some("x".to_owned()), ..GrantPatch::default() },
            GrantPatch { observe: Some(true), ..GrantPatch::default() },
            GrantPatch { expires_at: Some(None), ..GrantPatch::default() },
            GrantPatch { networks: Some(vec![]), ..GrantPatch::default() },
        ] {
            assert_eq!(code(world.control.edit_grant(&manager, grant.id, None, patch).await), "role_too_low");
        }
        let stale = world.control.edit_grant(&admin, grant.id, Some(grant.revision), attach(None)).await;
        assert_eq!(code(stale), "stale");
        let past = Some(Some(world.clock.now() - TimeDelta::seconds(1)));
        let patch = GrantPatch { expires_at: past, ..GrantPatch::default() };
        assert_eq!(code(world.control.edit_grant(&admin, grant.id, None, patch).await), "in_the_past");
    }
}
