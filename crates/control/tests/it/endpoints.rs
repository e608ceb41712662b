//! Endpoints: signed messages, and what becomes of those that nobody takes.

use std::sync::Arc;

use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};
use sluice_control::operator::{Operator, Rewrapped};
use sluice_control::{Choice, DeliveriesOf, EndpointForm, Page, Signup};
use sluice_domain::{DeliveryStatus, EndpointKind};
use sluice_store::Db;
use sluice_testkit::{WebhookSink, on_both};
use sluice_vault::{Vault, WebhookSecret, generate_master_key};

use crate::common::{World, code};
use crate::notices::{actions, deliveries, scene, send, webhook};
use crate::parking::{Call, park};

on_both! {
    async fn a_webhook_is_signed_and_says_what_happened(world: World) {
        let (admin, at) = scene(&world).await;
        let sink = WebhookSink::start().await;
        let made = webhook(&world, &admin, &sink.url("hook?key=1")).await;
        assert!(made.view.shown_url.ends_with("/…") && !made.view.shown_url.contains("key"));
        let first = made.secret.expect("shown once");
        let id = park(&world, &admin, &at, Call::default()).await;
        send(&world).await;
        let rotated = world.control.rotate_endpoint(&admin, made.view.id).await.expect("rotates");
        let second = rotated.secret.expect("shown once");
        assert_ne!(first.expose_secret(), second.expose_secret());
        world.control.decide(&admin, id, &Choice::approve("ok")).await.expect("approves");
        send(&world).await;
        world.clock.advance(TimeDelta::hours(25));
        let test = world.control.test_endpoint(&admin, made.view.id).await.expect("tests");
        assert_eq!((test.status, test.tries[0].status), (DeliveryStatus::Sent, Some(204)));
        let posted = sink.received(3).await;
        let signatures = |at: usize, secret: &SecretString| {
            let (one, secret) = (&posted[at], WebhookSecret::parse(secret.expose_secret()).expect("a secret"));
            let stamp = one.header("webhook-timestamp").parse().expect("seconds");
            let wanted = secret.sign(one.header("webhook-id"), stamp, one.body.as_bytes());
            one.header("webhook-signature").split(' ').any(|given| given == wanted)
        };
        assert_eq!((signatures(0, &first), signatures(0, &second)), (true, false));
        assert_eq!((signatures(1, &first), signatures(1, &second)), (true, true), "both for a day");
        assert_eq!((signatures(2, &first), signatures(2, &second)), (false, true));
        assert_eq!(posted[0].header("webhook-timestamp"), "1796040000");
        assert_eq!(posted[0].header("content-type"), "application/json");
        let (asked, decided) = (posted[0].json(), posted[1].json());
        assert_eq!((asked["type"].as_str(), asked["data"]["id"].as_str()), (Some("approval.asked"), Some(id.to_string().as_str())));
        assert_eq!(asked["data"]["argument_names"], serde_json::json!(["path", "api_key"]));
        assert!(asked["data"]["confirm_url"].as_str().is_some_and(|url| url.contains("/approve/")));
        assert!(!posted[0].body.contains("AAAA"));
        assert_eq!(decided["type"], "approval.decided");
        assert_eq!((decided["data"]["status"].as_str(), decided["data"]["decided_by"].as_str(), decided["data"]["note"].as_str()), (Some("approved"), Some("ann@example.test"), Some("ok")));
        assert_ne!(posted[0].header("webhook-id"), posted[1].header("webhook-id"));
        for action in ["endpoint.create", "endpoint.rotate", "endpoint.test"] {
            assert!(actions(&world, &admin).await.iter().any(|found| found == action), "{action}");
        }
    }

    async fn what_fails_is_sent_again_ever_later_then_given_up_and_sent_anew_by_hand(world: World) {
        let (admin, at) = scene(&world).await;
        let sink = WebhookSink::start().await;
        webhook(&world, &admin, &sink.url("hook")).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        world.control.decide(&admin, id, &Choice::deny("")).await.expect("refuses");
        sink.answer(503, None);
        send(&world).await;
        assert_eq!(sink.posted().len(), 1, "one that fails holds up the other");
        let mut seen = 1;
        let mut waits = Vec::new();
        for _ in 0..40 {
            let now = world.clock.now();
            let next = deliveries(&world, &admin).await.iter().filter_map(|one| one.next_at).min();
            let Some(next) = next else { break };
            world.clock.advance((next - now).max(TimeDelta::zero()));
            world.control.deliver_due().await.expect("tries");
            seen = sink.posted().len();
            waits.push((next - now).num_seconds());
        }
        assert!(waits.iter().any(|wait| *wait >= 12 * 3_600), "it waits ever longer: {waits:?}");
        let all = deliveries(&world, &admin).await;
        assert!(all.iter().all(|one| one.status == DeliveryStatus::Dead), "{all:?}");
        assert_eq!(seen, 20, "ten attempts each");
        let decided = all.iter().find(|one| one.topic == "approval.decided").expect("is there");
        let last = decided.tries.last().expect("tries");
        assert_eq!((last.status, last.error.as_str()), (Some(503), "it answered 503"));
        sink.answer(204, None);
        let before = sink.posted().len();
        let again = world.control.replay(&admin, decided.id).await.expect("anew");
        assert_eq!((again.status, again.attempts), (DeliveryStatus::Waiting, 0));
        assert_eq!(code(world.control.replay(&admin, decided.id).await), "still_waiting");
        world.control.deliver_due().await.expect("sends");
        assert_eq!(world.control.delivery(&admin, decided.id).await.expect("reads").status, DeliveryStatus::Sent);
        let posted = sink.posted();
        assert_eq!((posted.len(), posted[before].header("webhook-id")), (before + 1, decided.id.to_string().as_str()), "under the same id");
        assert!(actions(&world, &admin).await.contains(&"delivery.replay".to_owned()));
    }

    async fn an_endpoint_may_ask_for_time_say_it_is_gone_or_point_elsewhere(world: World) {
        let (admin, at) = scene(&world).await;
        let sink = WebhookSink::start().await;
        let made = webhook(&world, &admin, &sink.url("hook")).await;
        park(&world, &admin, &at, Call::default()).await;
        sink.answer(429, Some(900));
        send(&world).await;
        let waits = deliveries(&world, &admin).await;
        assert_eq!(waits[0].next_at, Some(world.clock.now() + TimeDelta::seconds(900)));
        sink.answer(307, None);
        let test = world.control.test_endpoint(&admin, made.view.id).await.expect("tests");
        assert_eq!((test.status, test.tries[0].error.as_str()), (DeliveryStatus::Dead, "it answered with a redirect, which is not followed"));
        sink.answer(410, None);
        let test = world.control.test_endpoint(&admin, made.view.id).await.expect("tests");
        assert_eq!(test.status, DeliveryStatus::Dead);
        assert!(!world.control.endpoint(&admin, made.view.id).await.expect("reads").enabled);
        assert_eq!(code(world.control.test_endpoint(&admin, made.view.id).await), "endpoint_off");
        assert!(actions(&world, &admin).await.contains(&"endpoint.gone".to_owned()));
        let before = sink.posted().len();
        world.clock.advance(TimeDelta::minutes(16));
        world.control.deliver_due().await.expect("looks");
        assert_eq!(sink.posted().len(), before, "what is off is sent nothing");
    }

    async fn an_endpoint_inside_is_refused_when_saved_and_when_sent_to(db: Db) {
        let open = World::with(db.clone(), Signup::Open, None, true).await;
        let (admin, at) = scene(&open).await;
        let sink = WebhookSink::start().await;
        webhook(&open, &admin, &sink.url("hook")).await;
        // The same installation, closed: what was saved before is checked again when it is sent to.
        let closed = World { control: open.beside(&open.vault, false), ..open };
        let url = |text: &str| EndpointForm { name: "x".to_owned(), kind: EndpointKind::Slack, url: text.to_owned(), notices: Vec::new() };
        for (text, fault) in [("http://127.0.0.1:6379/", "url_private"), ("https://169.254.169.254/", "url_private"), ("http://[::ffff:127.0.0.1]/", "url_private"), ("file:///etc/hosts", "url_scheme"), ("https://u:p@example.com/", "url_userinfo"), ("http://8.8.8.8/hook", "url_scheme")] {
            assert_eq!(code(closed.control.create_endpoint(&admin, url(text)).await), fault, "{text}");
        }
        park(&closed, &admin, &at, Call::default()).await;
        send(&closed).await;
        assert!(sink.posted().is_empty());
        let refused = deliveries(&closed, &admin).await;
        assert_eq!(refused[0].status, DeliveryStatus::Dead);
        assert!(refused[0].tries[0].error.starts_with("the endpoint's address is refused"), "{refused:?}");
    }

    async fn endpoints_and_messages_survive_a_change_of_keys(world: World) {
        let (admin, at) = scene(&world).await;
        let sink = WebhookSink::start().await;
        let secret = webhook(&world, &admin, &sink.url("hook")).await.secret.expect("shown once");
        park(&world, &admin, &at, Call::default()).await;
        world.control.tell_news().await.expect("tells");
        let new = generate_master_key("new");
        let both = SecretString::from(format!("{},{}", new.expose_secret(), world.keys.expose_secret()));
        let both = Arc::new(Vault::from_keys(&both).expect("two keys"));
        let operator = Operator::new(world.db.clone(), both, world.clock.function());
        let moved = operator.rewrap_all().await.expect("moves");
        assert_eq!((moved.endpoints, moved.messages), (1, 1));
        assert_eq!(operator.rewrap_all().await.expect("nothing left"), Rewrapped::default());
        let after = world.beside(&Arc::new(Vault::from_keys(&new).expect("a key")), true);
        after.deliver_due().await.expect("sends");
        let posted = sink.received(1).await;
        let secret = WebhookSecret::parse(secret.expose_secret()).expect("a secret");
        let signed = secret.sign(posted[0].header("webhook-id"), world.clock.now().timestamp(), posted[0].body.as_bytes());
        assert_eq!(posted[0].header("webhook-signature"), signed);
    }

    async fn a_full_endpoint_gets_no_more(world: World) {
        let (admin, at) = scene(&world).await;
        let sink = WebhookSink::start().await;
        let made = webhook(&world, &admin, &sink.url("hook")).await;
        let twice = EndpointForm { name: "WEBHOOK".to_owned(), kind: EndpointKind::Webhook, url: sink.url("x"), notices: Vec::new() };
        assert_eq!(code(world.control.create_endpoint(&admin, twice).await), "name_taken");
        let mut tx = world.db.begin().await.expect("begins");
        for _ in 0..1_000 {
            let new = sluice_store::outbox::NewDelivery { id: sluice_domain::DeliveryId::new(), endpoint: Some(made.view.id), recipient: "", topic: "x", subject: None, sealed_body: b"", give_up_at: world.clock.now() };
            sluice_store::outbox::put(&mut tx.conn(), Some(admin.workspace), new, world.clock.now()).await.expect("puts");
        }
        tx.commit().await.expect("commits");
        park(&world, &admin, &at, Call::default()).await;
        world.control.tell_news().await.expect("tells");
        let of = DeliveriesOf { endpoint: Some(made.view.id), status: None };
        let newest = world.control.deliveries(&admin, of, Page::first(1)).await.expect("lists").items;
        assert_eq!(newest[0].topic, "x");
        world.control.delete_endpoint(&admin, made.view.id).await.expect("removes");
        assert!(deliveries(&world, &admin).await.is_empty(), "what was on its way goes with it");
    }
}
