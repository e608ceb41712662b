//! Passkeys: made with the password, the second step or both steps at once, each question answered once.

use chrono::TimeDelta;
use secrecy::SecretString;
use sluice_control::{
    Actor, ControlError, Entry, EventFilter, LoggedIn, Page, PasskeyAnswer, PasskeyQuestion,
    PasskeyRegistration,
};
use sluice_domain::PasskeyId;
use sluice_testkit::{SoftPasskey, on_both};

use crate::common::{PASSWORD, World, code, complete, origin, secret};
use crate::operator::operator;
use crate::second_factor::with_factor;

const EMAIL: &str = "ann@example.test";

async fn question(world: &World, actor: &Actor) -> PasskeyQuestion {
    world.control.begin_passkey(actor, secret(PASSWORD)).await.expect("asks")
}

fn registration(passkey: &SoftPasskey, challenge: &str) -> PasskeyRegistration {
    let (client_data, attestation) = passkey.register(challenge);
    PasskeyRegistration {
        name: "Phone".to_owned(),
        client_data: SoftPasskey::text(&client_data),
        attestation: SoftPasskey::text(&attestation),
    }
}

async fn keep(
    world: &World,
    actor: &Actor,
    passkey: &SoftPasskey,
) -> Result<Vec<SecretString>, ControlError> {
    let asked = question(world, actor).await;
    world.control.finish_passkey(actor, &registration(passkey, &asked.challenge)).await
}

/// Somebody with a passkey; its recovery codes as well.
async fn with_passkey(world: &World) -> (Actor, SoftPasskey, Vec<SecretString>) {
    let actor = world.person(EMAIL).await;
    let mut passkey = SoftPasskey::es256();
    let codes = keep(world, &actor, &passkey).await.expect("kept");
    passkey.counter += 1;
    (actor, passkey, codes)
}

fn answer(passkey: &SoftPasskey, challenge: &str, user: &Actor) -> PasskeyAnswer {
    let made = passkey.sign_in(challenge);
    PasskeyAnswer {
        credential: SoftPasskey::text(&passkey.credential),
        client_data: SoftPasskey::text(&made.client_data),
        authenticator_data: SoftPasskey::text(&made.authenticator_data),
        signature: SoftPasskey::text(&made.signature),
        user: SoftPasskey::text(user.user.uuid().as_bytes()),
    }
}

/// Signs in by the passkey: after `half` of a login, or alone.
async fn sign_in(
    world: &World,
    half: Option<&SecretString>,
    (passkey, user): (&SoftPasskey, &Actor),
) -> Result<LoggedIn, ControlError> {
    let asked = world.control.begin_passkey_login(half, &origin()).await?;
    let answer = answer(passkey, &asked.challenge, user);
    world.control.finish_passkey_login(half, &answer, &origin()).await
}

async fn half(world: &World) -> SecretString {
    match world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password") {
        Entry::Half(half) => half.token,
        Entry::In(_) => panic!("nobody asked for the second step"),
    }
}

on_both! {
    async fn a_passkey_is_the_second_step_and_both_steps_at_once(world: World) {
        let actor = world.person(EMAIL).await;
        let other = complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("in"));
        assert_eq!(code(world.control.begin_passkey(&actor, secret("not hers")).await), "wrong_password");
        let asked = question(&world, &actor).await;
        assert_eq!((asked.site.as_str(), asked.verify, asked.credentials.len()), ("localhost", false, 0));
        let mut passkey = SoftPasskey::es256();
        let codes = world.control.finish_passkey(&actor, &registration(&passkey, &asked.challenge)).await.expect("kept");
        assert_eq!(codes.len(), 10, "it is the first factor");
        let logins = world.control.logins(&actor).await.expect("lists");
        assert!(logins.len() == 1 && logins[0].id != other.session, "those made without it ended");
        let seen = world.control.passkeys(&actor).await.expect("lists");
        assert_eq!((seen.len(), seen[0].name.as_str(), seen[0].last_used_at), (1, "Phone", None));
        // From now on the password is half of it.
        passkey.counter = 2;
        passkey.flags = 1;
        let token = half(&world).await;
        let login = sign_in(&world, Some(&token), (&passkey, &actor)).await.expect("touched");
        assert_eq!(world.actor(&login).await.email, EMAIL);
        passkey.counter = 3;
        assert_eq!(code(sign_in(&world, Some(&token), (&passkey, &actor)).await), "login_over", "a half is used up");
        // Alone it must have checked who touched it.
        assert_eq!(code(sign_in(&world, None, (&passkey, &actor)).await), "bad_passkey");
        passkey.flags = 0b101;
        let login = sign_in(&world, None, (&passkey, &actor)).await.expect("both steps at once");
        assert_eq!(world.actor(&login).await.email, EMAIL);
        let seen = world.control.passkeys(&actor).await.expect("lists");
        assert_eq!(seen[0].last_used_at, Some(world.control.now()));
        // A recovery code stands in for it.
        let token = half(&world).await;
        world.control.finish_login(&token, &codes[0], &origin()).await.expect("a recovery code");
    }

    async fn a_question_is_answered_once_in_time_and_by_whom_it_was_asked(world: World) {
        let (ann, mut passkey, _) = with_passkey(&world).await;
        let control = &world.control;
        let finish = async |half: Option<&SecretString>, answer: &PasskeyAnswer| {
            control.finish_passkey_login(half, answer, &origin()).await
        };
        let asked = control.begin_passkey_login(None, &origin()).await.expect("asks");
        let right = answer(&passkey, &asked.challenge, &ann);
        finish(None, &right).await.expect("the first time");
        passkey.counter += 1;
        assert_eq!(code(finish(None, &right).await), "bad_passkey", "the same bytes");
        let again = answer(&passkey, &asked.challenge, &ann);
        assert_eq!(code(finish(None, &again).await), "bad_passkey", "the same question");
        // A wrong answer uses it up as well.
        let asked = control.begin_passkey_login(None, &origin()).await.expect("asks");
        let wrong = answer(&SoftPasskey::es256(), &asked.challenge, &ann);
        assert_eq!(code(finish(None, &wrong).await), "bad_passkey");
        let right = answer(&passkey, &asked.challenge, &ann);
        assert_eq!(code(finish(None, &right).await), "bad_passkey");
        // Neither one's question is the other's.
        let token = half(&world).await;
        let alone = control.begin_passkey_login(None, &origin()).await.expect("asks");
        let second = control.begin_passkey_login(Some(&token), &origin()).await.expect("asks");
        assert_eq!(second.credentials, [SoftPasskey::text(&passkey.credential)]);
        assert_eq!(code(finish(Some(&token), &answer(&passkey, &alone.challenge, &ann)).await), "bad_passkey");
        assert_eq!(code(finish(None, &answer(&passkey, &second.challenge, &ann)).await), "bad_passkey");
        let register = question(&world, &ann).await;
        assert_eq!(code(finish(None, &answer(&passkey, &register.challenge, &ann)).await), "bad_passkey");
        let late = control.begin_passkey_login(None, &origin()).await.expect("asks");
        world.clock.advance(TimeDelta::minutes(5));
        assert_eq!(code(finish(None, &answer(&passkey, &late.challenge, &ann)).await), "bad_passkey");
        assert_eq!(control.sweep().await.expect("sweeps").logins, 4, "questions that nobody answered");
    }

    async fn another_persons_passkey_opens_nothing_here(world: World) {
        let (ann, passkey, _) = with_passkey(&world).await;
        let bob = world.person("bob@example.test").await;
        let mut of_bob = SoftPasskey::eddsa();
        keep(&world, &bob, &of_bob).await.expect("kept");
        of_bob.counter = 2;
        let token = half(&world).await;
        assert_eq!(code(sign_in(&world, Some(&token), (&of_bob, &bob)).await), "bad_passkey");
        // Who the authenticator names and whose passkey it is must be the same.
        assert_eq!(code(sign_in(&world, None, (&passkey, &bob)).await), "bad_passkey");
        // An unknown passkey is answered as a wrong signature is.
        let unknown = sign_in(&world, None, (&SoftPasskey::es256(), &ann)).await.expect_err("refused");
        let mut bent = SoftPasskey::es256();
        bent.credential.clone_from(&passkey.credential);
        let wrong = sign_in(&world, None, (&bent, &ann)).await.expect_err("refused");
        assert_eq!((unknown.code(), unknown.to_string()), (wrong.code(), wrong.to_string()));
        // Nor is one registered that somebody has.
        let asked = question(&world, &bob).await;
        let taken = world.control.finish_passkey(&bob, &registration(&passkey, &asked.challenge)).await;
        assert_eq!(code(taken), "passkey_taken");
        // A question to register is the person's who was asked.
        let asked = question(&world, &ann).await;
        let stolen = world.control.finish_passkey(&bob, &registration(&SoftPasskey::es256(), &asked.challenge)).await;
        assert_eq!(code(stolen), "bad_passkey");
    }

    async fn a_copied_passkey_is_refused_and_noted(world: World) {
        let (ann, mut passkey, _) = with_passkey(&world).await;
        passkey.counter = 9;
        sign_in(&world, None, (&passkey, &ann)).await.expect("counts up");
        for counter in [9, 8, 0] {
            passkey.counter = counter;
            assert_eq!(code(sign_in(&world, None, (&passkey, &ann)).await), "bad_passkey", "{counter}");
        }
        passkey.counter = 10;
        sign_in(&world, None, (&passkey, &ann)).await.expect("goes on");
    }

    async fn what_was_made_elsewhere_is_not_kept(world: World) {
        let actor = world.person(EMAIL).await;
        let mut elsewhere = SoftPasskey::es256();
        elsewhere.origin = "https://evil.example".to_owned();
        assert_eq!(code(keep(&world, &actor, &elsewhere).await), "bad_passkey");
        let asked = question(&world, &actor).await;
        for odd in ["", "!!", "AAAA"] {
            let odd = PasskeyRegistration { attestation: odd.to_owned(), ..registration(&SoftPasskey::es256(), &asked.challenge) };
            assert_eq!(code(world.control.finish_passkey(&actor, &odd).await), "bad_passkey");
        }
        assert_eq!(world.control.passkeys(&actor).await.expect("lists"), []);
        complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password alone"));
    }

    async fn it_is_taken_away_with_the_password_and_every_change_is_on_record(world: World) {
        let admin = world.workspace("Acme", EMAIL).await;
        let actor = admin.actor.clone();
        let (one, two) = (SoftPasskey::es256(), SoftPasskey::eddsa());
        keep(&world, &actor, &one).await.expect("kept");
        assert!(keep(&world, &actor, &two).await.expect("kept").is_empty(), "codes are there already");
        let all = world.control.passkeys(&actor).await.expect("lists");
        let bob = world.person("bob@example.test").await;
        assert_eq!(code(world.control.remove_passkey(&bob, all[0].id, secret(PASSWORD)).await), "not_found");
        assert_eq!(code(world.control.remove_passkey(&actor, PasskeyId::new(), secret(PASSWORD)).await), "not_found");
        assert_eq!(code(world.control.remove_passkey(&actor, all[0].id, secret("not hers")).await), "wrong_password");
        world.control.remove_passkey(&actor, all[0].id, secret(PASSWORD)).await.expect("removes");
        assert_eq!(code(sign_in(&world, None, (&one, &actor)).await), "bad_passkey");
        half(&world).await;
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 10);
        world.control.remove_passkey(&actor, all[1].id, secret(PASSWORD)).await.expect("removes");
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 0);
        complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password alone"));
        for (action, times) in [("user.passkey_add", 2), ("user.passkey_remove", 2)] {
            let filter = EventFilter { action: Some(action.to_owned()), ..EventFilter::default() };
            let found = world.control.admin_events(&admin, &filter, Page::first(9)).await.expect("lists");
            assert_eq!(found.items.len(), times, "{action}");
        }
    }

    async fn beside_an_app_each_stands_for_itself(world: World) {
        let (actor, mut passkey, codes) = with_passkey(&world).await;
        let (_, newer) = with_factor(&world, &actor).await;
        let token = half(&world).await;
        let old = world.control.finish_login(&token, &codes[0], &origin()).await;
        assert_eq!(code(old), "bad_code", "the app's recovery codes took their place");
        sign_in(&world, Some(&token), (&passkey, &actor)).await.expect("the passkey");
        // Without the app, the passkey and its recovery codes stay.
        world.control.end_second_factor(&actor, &newer[0]).await.expect("turns it off");
        passkey.counter += 1;
        let token = half(&world).await;
        sign_in(&world, Some(&token), (&passkey, &actor)).await.expect("the passkey");
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 9);
        assert_eq!(code(world.control.end_second_factor(&actor, &newer[1]).await), "second_factor_off");
        world.control.renew_recovery_codes(&actor, &newer[1]).await.expect("renews");
    }

    async fn the_operator_takes_passkeys_away_as_well(world: World) {
        let (actor, passkey, _) = with_passkey(&world).await;
        operator(&world).reset_second_factor(EMAIL).await.expect("resets");
        assert_eq!(world.control.logins(&actor).await.expect("lists"), []);
        assert_eq!(code(sign_in(&world, None, (&passkey, &actor)).await), "bad_passkey");
        let login = complete(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await.expect("the password alone"));
        let actor = world.actor(&login).await;
        assert_eq!(world.control.second_factor(&actor).await.expect("answers").codes_left, 0);
        assert_eq!(code(operator(&world).reset_second_factor(EMAIL).await), "not_found");
    }
}
