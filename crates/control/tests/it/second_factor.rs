//! The second factor: begun, confirmed, asked for at every way in, never taken twice, taken away.

use std::sync::Arc;

use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};
use sluice_control::operator::Operator;
use sluice_control::{Actor, Control, ControlError, Entry, EventFilter, HalfIn, LoggedIn, Page};
use sluice_domain::{LinkPurpose, Role};
use sluice_store::{Db, second_factor, users};
use sluice_testkit::on_both;
use sluice_vault::{Place, TOTP_PERIOD_S, TotpSecret, Vault, generate_master_key};

use crate::account_links::{mailed, token, with_mail};
use crate::common::{PASSWORD, World, code, complete, origin, secret};
use crate::operator::operator;

const EMAIL: &str = "ann@example.test";

/// What stands in the store, opened as only the server can.
async fn app_under(world: &World, vault: &Vault, actor: &Actor) -> TotpSecret {
    let mut tx = world.db.read().await.expect("reads");
    let factor = second_factor::find(&mut tx.conn(), actor.user).await.expect("answers");
    let sealed = factor.expect("begun").sealed_secret;
    let opened = vault.open(Place::totp_secret(actor.user), &sealed).expect("opens");
    TotpSecret::from_slice(&opened).expect("twenty bytes")
}

async fn app(world: &World, actor: &Actor) -> TotpSecret {
    app_under(world, &world.vault, actor).await
}

/// The code that the app shows so many steps from now.
fn shown(world: &World, app: &TotpSecret, steps: i64) -> SecretString {
    secret(&app.code(world.control.now().timestamp() / TOTP_PERIOD_S + steps))
}

/// Somebody with the factor on, in the next step of the app; the recovery codes as well.
pub(crate) async fn with_factor(world: &World, actor: &Actor) -> (TotpSecret, Vec<SecretString>) {
    world.control.begin_second_factor(actor, secret(PASSWORD)).await.expect("begins");
    let app = app(world, actor).await;
    let codes =
        world.control.confirm_second_factor(actor, &shown(world, &app, 0)).await.expect("confirms");
    world.clock.advance(TimeDelta::seconds(TOTP_PERIOD_S));
    (app, codes)
}

fn half(entry: Entry) -> HalfIn {
    match entry {
        Entry::Half(half) => half,
        Entry::In(_) => panic!("nobody asked for the second factor"),
    }
}

async fn first_step(control: &Control) -> HalfIn {
    half(control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the right password"))
}

async fn finish(
    world: &World,
    half: &HalfIn,
    code: &SecretString,
) -> Result<LoggedIn, ControlError> {
    world.control.finish_login(&half.token, code, &origin()).await
}

on_both! {
    async fn a_factor_asks_for_nothing_until_a_code_confirms_it(world: World) {
        let login = world.sign_up(EMAIL).await.expect("signs up");
        let actor = world.actor(&login).await;
        let other = complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("in"));
        let wrong = world.control.begin_second_factor(&actor, secret("not my password")).await;
        assert_eq!(code(wrong), "wrong_password");
        let begun = world.control.begin_second_factor(&actor, secret(PASSWORD)).await.expect("begins");
        let first = app(&world, &actor).await;
        assert_eq!(begun.secret.expose_secret(), first.base32().expose_secret());
        let uri = format!(
            "otpauth://totp/Sluice%20localhost:ann%40example%2Etest?secret={}&issuer=Sluice%20localhost&algorithm=SHA1&digits=6&period=30",
            first.base32().expose_secret()
        );
        assert_eq!(begun.uri.expose_secret(), uri);
        assert!(!format!("{begun:?}").contains(first.base32().expose_secret()));
        complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("in"));
        // Begun anew the older secret is worth nothing; shown again it is the same.
        world.control.begin_second_factor(&actor, secret(PASSWORD)).await.expect("begins anew");
        let again = app(&world, &actor).await;
        let shown_again = world.control.begun_second_factor(&actor).await.expect("shows");
        assert_eq!(shown_again.secret.expose_secret(), again.base32().expose_secret());
        let old = world.control.confirm_second_factor(&actor, &shown(&world, &first, 0)).await;
        assert_eq!(code(old), "bad_code");
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").since, None);
        let codes = world.control.confirm_second_factor(&actor, &shown(&world, &again, 0)).await.expect("confirms");
        assert_eq!(codes.len(), 10);
        let view = world.control.second_factor(&actor).await.expect("answers");
        assert_eq!((view.since, view.codes_left, view.has_password), (Some(world.control.now()), 10, true));
        // The logins that were made without it end; the secret is shown no more.
        assert_eq!(world.control.who(other.token.expose_secret(), "").await.expect("answers"), None);
        assert!(world.control.who(login.token.expose_secret(), "").await.expect("answers").is_some());
        assert_eq!(code(world.control.begun_second_factor(&actor).await), "second_factor_on");
        assert_eq!(code(world.control.begin_second_factor(&actor, secret(PASSWORD)).await), "second_factor_on");
        assert_eq!(code(world.control.confirm_second_factor(&actor, &shown(&world, &again, 1)).await), "second_factor_on");
    }

    async fn a_set_up_is_confirmed_within_its_hour(world: World) {
        let actor = world.person(EMAIL).await;
        assert_eq!(code(world.control.confirm_second_factor(&actor, &secret("123456")).await), "second_factor_off");
        world.control.begin_second_factor(&actor, secret(PASSWORD)).await.expect("begins");
        let app = app(&world, &actor).await;
        world.clock.advance(TimeDelta::hours(1));
        assert_eq!(code(world.control.confirm_second_factor(&actor, &shown(&world, &app, 0)).await), "set_up_over");
    }

    async fn half_a_login_opens_nothing_and_the_code_completes_it_once(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, _) = with_factor(&world, &actor).await;
        let half = first_step(&world.control).await;
        assert_eq!(world.control.who(half.token.expose_secret(), "").await.expect("answers"), None);
        assert_eq!(code(finish(&world, &half, &secret("000000x")).await), "bad_code");
        let session = secret("sls_nothing");
        assert_eq!(code(world.control.finish_login(&session, &shown(&world, &app, 0), &origin()).await), "login_over");
        let typed = shown(&world, &app, 0);
        let typed = secret(&format!(" {} {} ", &typed.expose_secret()[..3], &typed.expose_secret()[3..]));
        let login = finish(&world, &half, &typed).await.expect("the right code");
        assert_eq!(world.actor(&login).await.email, EMAIL);
        let again = finish(&world, &half, &shown(&world, &app, 1)).await;
        assert_eq!(code(again), "login_over", "a half is used up");
        // Its ten minutes are short, and a new password ends it.
        let late = first_step(&world.control).await;
        let replaced = first_step(&world.control).await;
        world.control.change_password(&actor, secret(PASSWORD), secret("another long password")).await.expect("changes");
        assert_eq!(code(finish(&world, &replaced, &shown(&world, &app, 1)).await), "login_over");
        world.clock.advance(TimeDelta::minutes(10));
        assert_eq!(code(finish(&world, &late, &shown(&world, &app, 0)).await), "login_over");
    }

    async fn a_half_login_runs_out_and_is_forgotten(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, _) = with_factor(&world, &actor).await;
        let half = first_step(&world.control).await;
        world.clock.advance(TimeDelta::minutes(10));
        assert_eq!(code(finish(&world, &half, &shown(&world, &app, 0)).await), "login_over");
        assert_eq!(world.control.sweep().await.expect("sweeps").logins, 1);
    }

    async fn no_code_is_taken_twice_nor_one_of_an_earlier_step(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, _) = with_factor(&world, &actor).await;
        let used = shown(&world, &app, -1);
        let one = first_step(&world.control).await;
        assert_eq!(code(finish(&world, &one, &used).await), "bad_code", "it confirmed the set-up");
        // One step ahead is taken; what is behind it is then not.
        let (early, present) = (shown(&world, &app, 1), shown(&world, &app, 0));
        finish(&world, &one, &early).await.expect("clocks may be apart");
        let two = first_step(&world.control).await;
        for replay in [&early, &present, &shown(&world, &app, 2), &shown(&world, &app, -2)] {
            assert_eq!(code(finish(&world, &two, replay).await), "bad_code");
        }
        world.clock.advance(TimeDelta::seconds(2 * TOTP_PERIOD_S));
        finish(&world, &two, &shown(&world, &app, 0)).await.expect("a new step");
    }

    async fn two_at_once_with_one_code_are_one_login(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, _) = with_factor(&world, &actor).await;
        let (one, two) = (first_step(&world.control).await, first_step(&world.control).await);
        let typed = shown(&world, &app, 0);
        let (first, second) = tokio::join!(finish(&world, &one, &typed), finish(&world, &two, &typed));
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    }

    async fn recovery_codes_stand_in_each_once(db: Db) {
        let (world, mails) = with_mail(db).await;
        let actor = world.person(EMAIL).await;
        token(&world, &mails, 1).await;
        let (app, codes) = with_factor(&world, &actor).await;
        let told = mailed(&world, &mails, 2).await;
        assert!(told[1].raw.contains("Subject: Two-step sign-in of your Sluice account was changed"));
        let half = first_step(&world.control).await;
        let lower = secret(&codes[3].expose_secret().to_lowercase());
        finish(&world, &half, &lower).await.expect("a recovery code");
        let told = mailed(&world, &mails, 3).await;
        assert!(told[2].text().contains("codes that are left: 9"), "{}", told[2].text());
        let again = first_step(&world.control).await;
        assert_eq!(code(finish(&world, &again, &codes[3]).await), "bad_code");
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 9);
        // New ones need a code and end the older ones.
        assert_eq!(code(world.control.renew_recovery_codes(&actor, &secret("1")).await), "bad_code");
        let new = world.control.renew_recovery_codes(&actor, &shown(&world, &app, 0)).await.expect("renews");
        assert_eq!(code(finish(&world, &again, &codes[4]).await), "bad_code");
        finish(&world, &again, &new[0]).await.expect("a new one");
        // Another person's codes are nothing here.
        let bob = world.person("bob@example.test").await;
        let (_, of_bob) = with_factor(&world, &bob).await;
        let half = first_step(&world.control).await;
        assert_eq!(code(finish(&world, &half, &of_bob[0]).await), "bad_code");
    }

    async fn guessing_codes_is_slowed_down(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, codes) = with_factor(&world, &actor).await;
        for _ in 0..5 {
            let half = first_step(&world.control).await;
            for _ in 0..2 {
                assert_eq!(code(finish(&world, &half, &secret("abcdef")).await), "bad_code");
            }
        }
        let half = first_step(&world.control).await;
        for right in [&shown(&world, &app, 0), &codes[0]] {
            assert_eq!(code(finish(&world, &half, right).await), "too_many_attempts");
            assert_eq!(code(world.control.end_second_factor(&actor, right).await), "too_many_attempts");
            assert_eq!(code(world.control.renew_recovery_codes(&actor, right).await), "too_many_attempts");
        }
        world.clock.advance(TimeDelta::minutes(17));
        let half = first_step(&world.control).await;
        finish(&world, &half, &shown(&world, &app, 0)).await.expect("the window is over");
    }

    async fn a_mailed_link_asks_for_the_factor_as_well(db: Db) {
        let (world, mails) = with_mail(db).await;
        let actor = world.person(EMAIL).await;
        token(&world, &mails, 1).await;
        let (app, _) = with_factor(&world, &actor).await;
        mailed(&world, &mails, 2).await;
        world.control.ask_link(EMAIL, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let link = token(&world, &mails, 3).await;
        let entry = world.control.log_in_by_link(&secret(&link), &origin()).await.expect("the first step");
        let by_link = half(entry);
        world.control.ask_link(EMAIL, LinkPurpose::Reset, &origin()).await.expect("asks");
        let link = token(&world, &mails, 4).await;
        let entry = world.control.reset_by_link(&secret(&link), secret("another long one"), &origin()).await;
        let by_reset = half(entry.expect("sets the password"));
        let ended = finish(&world, &by_link, &shown(&world, &app, 0)).await;
        assert_eq!(code(ended), "login_over", "the new password ended it");
        finish(&world, &by_reset, &shown(&world, &app, 0)).await.expect("the second step");
    }

    async fn the_form_for_new_accounts_is_the_same_door(world: World) {
        let actor = world.person(EMAIL).await;
        with_factor(&world, &actor).await;
        let form = sluice_control::SignUp {
            email: EMAIL.to_owned(),
            password: secret(PASSWORD),
            name: String::new(),
            invite: None,
            next: String::new(),
        };
        match world.control.sign_up(form, &origin()).await.expect("the first step") {
            sluice_control::SignedUp::In(entry) => drop(half(entry)),
            sluice_control::SignedUp::Mailed => panic!("no mail is sent"),
        }
    }

    async fn it_is_turned_off_with_a_code_alone_and_every_change_is_on_record(world: World) {
        let admin = world.workspace("Acme", EMAIL).await;
        let actor = admin.actor.clone();
        let (app, codes) = with_factor(&world, &actor).await;
        for wrong in ["", "123", PASSWORD] {
            assert_eq!(code(world.control.end_second_factor(&actor, &secret(wrong)).await), "bad_code");
        }
        let half = first_step(&world.control).await;
        finish(&world, &half, &codes[1]).await.expect("a recovery code");
        world.control.renew_recovery_codes(&actor, &codes[2]).await.expect("renews");
        world.control.end_second_factor(&actor, &shown(&world, &app, 0)).await.expect("turns it off");
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 0);
        complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password alone"));
        assert_eq!(code(world.control.end_second_factor(&actor, &shown(&world, &app, 1)).await), "second_factor_off");
        let filter = EventFilter { object_kind: Some("user".to_owned()), ..EventFilter::default() };
        let events = world.control.admin_events(&admin, &filter, Page::first(9)).await.expect("lists");
        let actions: Vec<_> = events.items.iter().map(|event| event.action.as_str()).collect();
        let expected = ["user.second_factor_off", "user.recovery_codes", "user.recovery_code_used", "user.second_factor_on"];
        assert_eq!(actions, expected);
        assert!(events.items.iter().all(|event| event.actor_name == EMAIL && event.address == "192.0.2.1"));
        // An API token touches nobody's account.
        let api = operator(&world).api_token(EMAIL, "acme", Role::Admin, false).await.expect("makes");
        let token = world.control.who_by_api_token(api.token.expose_secret(), "").await.expect("answers").expect("known");
        assert_eq!(code(world.control.second_factor(&token).await), "login_needed");
        assert_eq!(code(world.control.begin_second_factor(&token, secret(PASSWORD)).await), "login_needed");
    }

    async fn without_a_password_a_young_login_begins_it(world: World) {
        let login = world.sign_up(EMAIL).await.expect("signs up");
        let actor = world.actor(&login).await;
        let mut tx = world.db.begin().await.expect("begins");
        users::set_password(&mut tx.conn(), actor.user, None).await.expect("takes it away");
        tx.commit().await.expect("commits");
        world.control.begin_second_factor(&actor, secret("")).await.expect("just signed in");
        world.clock.advance(TimeDelta::minutes(15));
        assert_eq!(code(world.control.begin_second_factor(&actor, secret("")).await), "login_too_old");
    }

    async fn the_operator_takes_it_away(world: World) {
        let login = world.sign_up(EMAIL).await.expect("signs up");
        let actor = world.actor(&login).await;
        let hands = operator(&world);
        assert_eq!(code(hands.reset_second_factor("nobody@example.test").await), "not_found");
        assert_eq!(code(hands.reset_second_factor(EMAIL).await), "not_found");
        let (app, _) = with_factor(&world, &actor).await;
        let half = first_step(&world.control).await;
        hands.reset_second_factor("ANN@example.test").await.expect("takes it");
        assert_eq!(world.control.who(login.token.expose_secret(), "").await.expect("answers"), None);
        assert_eq!(code(finish(&world, &half, &shown(&world, &app, 0)).await), "login_over");
        complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password alone"));
        // A half login that leaked is ended like any token.
        let login = world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("in");
        let actor = world.actor(&complete(login)).await;
        let (app, _) = with_factor(&world, &actor).await;
        let half = first_step(&world.control).await;
        let found = hands.revoke_token(&half.token).await.expect("finds");
        assert_eq!((found.kind, found.name.as_str(), found.revoked_now), ("login", EMAIL, true));
        assert_eq!(code(finish(&world, &half, &shown(&world, &app, 0)).await), "login_over");
    }

    async fn the_secret_is_sealed_and_moves_to_new_keys(world: World) {
        let actor = world.person(EMAIL).await;
        let (app, _) = with_factor(&world, &actor).await;
        let mut tx = world.db.read().await.expect("reads");
        let sealed = second_factor::find(&mut tx.conn(), actor.user).await.expect("answers").expect("on").sealed_secret;
        tx.commit().await.expect("ends");
        assert!(!sealed.windows(20).any(|bytes| bytes == app.as_bytes()));
        let other = sluice_domain::UserId::new();
        assert!(world.vault.open(Place::totp_secret(other), &sealed).is_err(), "bound to its row");
        let new = generate_master_key("new");
        let both = format!("{},{}", new.expose_secret(), world.keys.expose_secret());
        let both = Arc::new(Vault::from_keys(&SecretString::from(both)).expect("two keys"));
        let hands = Operator::new(world.db.clone(), both, world.clock.function());
        assert_eq!(hands.rewrap_all().await.expect("rewraps").second_factors, 1);
        assert_eq!(hands.rewrap_all().await.expect("again").second_factors, 0);
        let vault = Vault::from_keys(&new).expect("a key");
        assert_eq!(app_under(&world, &vault, &actor).await.as_bytes(), app.as_bytes());
    }
}
