//! Accounts, logins, workspaces, members and invitations.

use crate::common::{PASSWORD, World, code, complete, origin, secret};
use chrono::TimeDelta;
use secrecy::ExposeSecret;
use sluice_control::{
    Admin, ControlError, EventFilter, LOGIN_AT_MOST, LOGIN_IDLE, Page, SignUp, Signup, Viewer,
};
use sluice_domain::Role;
use sluice_store::Db;
use sluice_testkit::on_both;

on_both! {
    async fn a_login_ends_on_the_server(world: World) {
        let login = world.sign_up("Ann.B@Example.test").await.expect("signs up");
        let actor = world.actor(&login).await;
        assert_eq!(actor.email, "Ann.B@Example.test");
        world.control.log_out(&actor).await.expect("logs out");
        let again = world.control.who(login.token.expose_secret(), "").await.expect("answers");
        assert_eq!(again, None, "the cookie is worth nothing now");
        let back = world.control.log_in("ann.b@example.TEST ", secret(PASSWORD), &origin()).await;
        assert_eq!(complete(back.expect("the same account")).user, login.user);
    }

    async fn wrong_passwords_and_unknown_addresses_look_the_same(world: World) {
        world.sign_up("ann@example.test").await.expect("signs up");
        let wrong = world.control.log_in("ann@example.test", secret("not her password"), &origin()).await;
        let unknown = world.control.log_in("bob@example.test", secret(PASSWORD), &origin()).await;
        let (wrong, unknown) = (wrong.expect_err("refused"), unknown.expect_err("refused"));
        assert_eq!(wrong.code(), "bad_credentials");
        assert_eq!((wrong.to_string(), wrong.code()), (unknown.to_string(), unknown.code()));
    }

    async fn guessing_is_slowed_down_and_the_right_password_is_not_counted(world: World) {
        world.sign_up("ann@example.test").await.expect("signs up");
        let from = origin();
        let guess = |password: &'static str| {
            world.control.log_in("Ann@example.test", secret(password), &from)
        };
        for _ in 0..15 {
            guess(PASSWORD).await.expect("right");
        }
        for _ in 0..10 {
            assert_eq!(code(guess("wrong password").await), "bad_credentials");
        }
        let refused = guess(PASSWORD).await.expect_err("too many");
        assert!(matches!(refused, ControlError::TooMany { retry_after_s: Some(1..=946), .. }), "{refused:?}");
        world.clock.advance(TimeDelta::minutes(17));
        guess(PASSWORD).await.expect("the window is over");
    }

    async fn logins_run_out(world: World) {
        let login = world.sign_up("ann@example.test").await.expect("signs up");
        let who = || world.control.who(login.token.expose_secret(), "");
        // Used once a week it stays open, but not for ever.
        let mut days = 0;
        while who().await.expect("answers").is_some() {
            world.clock.advance(TimeDelta::days(7));
            days += 7;
            assert!(days < 100, "it never ends");
        }
        assert_eq!(TimeDelta::days(days), LOGIN_AT_MOST + TimeDelta::days(3));
        let login = world.sign_up("bob@example.test").await.expect("signs up");
        world.clock.advance(LOGIN_IDLE);
        let gone = world.control.who(login.token.expose_secret(), "").await.expect("answers");
        assert_eq!(gone, None, "not used for too long");
    }

    async fn a_new_password_ends_the_other_logins(world: World) {
        let first = world.sign_up("ann@example.test").await.expect("signs up");
        let other = complete(world.control.log_in("ann@example.test", secret(PASSWORD), &origin()).await.expect("in"));
        let actor = world.actor(&first).await;
        assert_eq!(world.control.logins(&actor).await.expect("lists").len(), 2);
        let change = |old: &str, new: &str| world.control.change_password(&actor, secret(old), secret(new));
        assert_eq!(code(change("no", "another long password").await), "wrong_password");
        assert_eq!(code(change(PASSWORD, "short").await), "too_short");
        change(PASSWORD, "another long password").await.expect("changes");
        assert_eq!(world.control.who(other.token.expose_secret(), "").await.expect("answers"), None);
        assert!(world.control.who(first.token.expose_secret(), "").await.expect("answers").is_some());
        let old = world.control.log_in("ann@example.test", secret(PASSWORD), &origin()).await;
        assert_eq!(code(old), "bad_credentials");
    }

    async fn what_cannot_be_an_account_is_told_field_by_field(world: World) {
        let form = SignUp {
            email: "no address".to_owned(),
            password: secret("short"),
            name: "a\u{202e}b".to_owned(),
            invite: None,
            next: String::new(),
        };
        let refused = world.control.sign_up(form, &origin()).await.expect_err("refused");
        let faults: Vec<_> = refused.faults().into_iter().map(|f| (f.pointer, f.code.to_string())).collect();
        let expected = [("/email", "bad_email"), ("/name", "invisible_character"), ("/password", "too_short")];
        assert_eq!(faults, expected.map(|(p, c)| (p.to_owned(), c.to_owned())));
    }

    async fn an_address_has_one_account(world: World) {
        let first = world.sign_up("ann@example.test").await.expect("signs up");
        let again = world.sign_up("ANN@example.test").await.expect("the right password logs in");
        assert_eq!(again.user, first.user);
        let form = SignUp {
            email: "ann@example.test".to_owned(),
            password: secret("somebody else's idea"),
            name: String::new(),
            invite: None,
            next: String::new(),
        };
        assert_eq!(code(world.control.sign_up(form, &origin()).await), "email_taken");
    }

    async fn workspaces_get_addresses_of_their_own(world: World) {
        let ann = world.workspace("Acme, Inc.", "ann@example.test").await;
        assert_eq!(ann.slug, "acme-inc");
        let bob = world.workspace("ACME inc", "bob@example.test").await;
        assert_eq!(bob.slug, "acme-inc-2");
        assert_eq!(code(world.control.create_workspace(&ann.actor, " \u{200b} ").await), "invisible_character");
        assert_eq!(code(world.control.create_workspace(&ann.actor, "  ").await), "required");
        let stranger = world.control.enter::<Viewer>(&bob.actor, "acme-inc").await;
        assert_eq!(code(stranger), "not_found");
        world.control.change_slug(&ann, "acme").await.expect("moves");
        let old = world.control.enter::<Viewer>(&ann.actor, "acme-inc").await.expect("still leads there");
        assert_eq!(old.slug, "acme");
        assert_eq!(code(world.control.change_slug(&bob, "acme-inc").await), "slug_taken");
    }

    async fn invitations_ignore_case_and_work_once(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let first = world.control.invite(&admin, "Bob.C@Example.test", Role::Viewer).await.expect("invites");
        let second = world.control.invite(&admin, "bob.c@example.test", Role::PolicyManager).await.expect("again");
        let open = world.control.invites(&admin, Page::first(10)).await.expect("lists").items;
        assert_eq!(open.len(), 1, "the later one replaces the first");
        assert_eq!(code(world.control.invite_card(&first.token).await), "not_found");
        let card = world.control.invite_card(&second.token).await.expect("shows");
        assert_eq!((card.workspace_slug.as_str(), card.role), ("acme", Role::PolicyManager));

        let eve = world.person("eve@example.test").await;
        assert_eq!(code(world.control.accept_invite(&eve, &second.token).await), "invite_for_another");
        let bob = world.person("bob.c@example.test").await;
        assert_eq!(world.control.accept_invite(&bob, &second.token).await.expect("joins"), "acme");
        assert_eq!(code(world.control.accept_invite(&bob, &second.token).await), "not_found");
        assert_eq!(code(world.control.invite(&admin, "BOB.C@example.test", Role::Viewer).await), "already_member");

        let late = world.control.invite(&admin, "late@example.test", Role::Viewer).await.expect("invites");
        world.clock.advance(TimeDelta::days(8));
        assert_eq!(code(world.control.invite_card(&late.token).await), "not_found");
    }

    async fn a_workspace_keeps_an_admin(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let me = admin.actor.user;
        assert_eq!(code(world.control.set_role(&admin, me, Role::Viewer).await), "last_admin");
        assert_eq!(code(world.control.remove_member(&admin, me).await), "last_admin");
        assert_eq!(code(world.control.leave(&admin).await), "last_admin");
        let bob: Admin = world.member(&admin, "bob@example.test", Role::Admin).await;
        world.control.set_role(&bob, me, Role::Viewer).await.expect("bob is left");
        assert_eq!(code(world.control.enter::<Admin>(&admin.actor, "acme").await), "role_too_low");
        world.control.remove_member(&bob, me).await.expect("removes");
        assert_eq!(code(world.control.enter::<Viewer>(&admin.actor, "acme").await), "not_found");
        let actions: Vec<String> = world
            .control
            .admin_events(&bob, &EventFilter::default(), Page::first(10))
            .await
            .expect("lists")
            .items
            .into_iter()
            .map(|event| event.action)
            .collect();
        let expected =
            ["member.remove", "member.set_role", "invite.accept", "invite.create", "workspace.create"];
        assert_eq!(actions, expected);
    }

    async fn signing_up_can_be_by_invitation_only(db: Db) {
        let world = World::with_signup(db.clone(), Signup::Invite).await;
        assert_eq!(code(world.sign_up("ann@example.test").await), "signup_closed");
        let closed = World::with_signup(db, Signup::Closed).await;
        assert_eq!(code(closed.sign_up("ann@example.test").await), "signup_closed");
    }
}
