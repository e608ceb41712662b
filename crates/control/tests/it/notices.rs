//! Telling people: mail with links that decide once, channels, escalation.

use chrono::TimeDelta;
use secrecy::SecretString;
use sluice_control::{
    Admin, ApprovalsOf, Choice, DeliveriesOf, DeliveryView, EndpointForm, EndpointPatch,
    EventFilter, MadeEndpoint, OpenLink, Page, PolicyManager, Signup,
};
use sluice_domain::{ApprovalStatus, EndpointKind, Notice, Role};
use sluice_store::Db;
use sluice_testkit::{SmtpServer, WebhookSink, on_both};
use sluice_upstream::{Mailer, MailerOptions};

use crate::common::{World, code};
use crate::parking::{Call, Parking, park, parking, uncharge};

pub(crate) fn mailer(server: &SmtpServer) -> Mailer {
    let options = MailerOptions {
        url: SecretString::from(server.url()),
        from: "Sluice <sluice@example.com>".to_owned(),
        hello: "localhost".to_owned(),
        extra_roots: Vec::new(),
    };
    Mailer::new(&options).expect("the settings are good")
}

async fn with_mail(db: Db) -> (World, SmtpServer) {
    let server = SmtpServer::start().await;
    server.leave_out("Subject: Confirm your e-mail address");
    let world = World::with(db, Signup::Open, Some(mailer(&server)), true).await;
    (world, server)
}

/// Tells and sends what there is.
pub(crate) async fn send(world: &World) {
    world.control.tell_news().await.expect("tells");
    world.control.deliver_due().await.expect("sends");
}

/// The part of a link's address that opens it.
fn token(link: &str) -> &str {
    link.rsplit_once("/approve/").expect("a link").1
}

async fn open(world: &World, link: &str) -> OpenLink {
    world.control.open_link(token(link), None, "192.0.2.9").await.expect("opens")
}

pub(crate) async fn webhook(world: &World, admin: &Admin, url: &str) -> MadeEndpoint {
    endpoint(world, admin, EndpointKind::Webhook, url).await
}

pub(crate) async fn endpoint(
    world: &World,
    admin: &Admin,
    kind: EndpointKind,
    url: &str,
) -> MadeEndpoint {
    let form =
        EndpointForm { name: kind.to_string(), kind, url: url.to_owned(), notices: Vec::new() };
    world.control.create_endpoint(admin, form).await.expect("makes it")
}

pub(crate) async fn deliveries(world: &World, admin: &Admin) -> Vec<DeliveryView> {
    let of = DeliveriesOf::default();
    world.control.deliveries(admin, of, Page::first(99)).await.expect("lists").items
}

pub(crate) async fn actions(world: &World, admin: &Admin) -> Vec<String> {
    let all = EventFilter::default();
    let events = world.control.admin_events(admin, &all, Page::first(99)).await.expect("reads");
    events.items.into_iter().map(|event| event.action).collect()
}

pub(crate) async fn scene(world: &World) -> (Admin, Parking) {
    let admin = world.workspace("Acme", "ann@example.test").await;
    let at = parking(world, &admin).await;
    (admin, at)
}

on_both! {
    async fn mail_goes_to_who_may_decide_and_its_link_decides_once(db: Db) {
        let (world, mails) = with_mail(db).await;
        let (admin, at) = scene(&world).await;
        world.manager(&admin).await;
        world.viewer(&admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        send(&world).await;
        let got = mails.received(2).await;
        let mut to: Vec<&str> = got.iter().map(|mail| mail.to.as_str()).collect();
        to.sort_unstable();
        assert_eq!(to, ["ann@example.test", "manager@example.test"]);
        let mail = got.iter().find(|mail| mail.to == "manager@example.test").expect("one");
        assert!(mail.raw.contains("Subject: delete_file needs approval (g)"), "{}", mail.raw);
        assert!(!mail.raw.contains("AAAA") && !mail.text().contains("/x"), "no argument values");
        assert!(mail.text().contains("Arguments: path, api_key"), "{}", mail.text());
        let link = mail.link("/approve/").expect("a link");
        assert!(link.starts_with("http://localhost:8080/approve/"), "{link}");

        // Opening shows and decides nothing, however often and by whomever.
        for _ in 0..2 {
            let view = world.control.link_view(&open(&world, &link).await).await.expect("shows");
            assert_eq!((view.email.as_str(), view.used, view.approval.may_decide), ("manager@example.test", false, true));
            assert_eq!(view.approval.status, ApprovalStatus::Pending);
        }
        let opened = open(&world, &link).await;
        let decided = world.control.decide_by_link(&opened, &Choice::approve("from my phone")).await.expect("decides");
        assert_eq!((decided.approval.status, decided.approval.id), (ApprovalStatus::Approved, id));
        let by = world.control.decisions(&admin, id).await.expect("reads");
        assert_eq!((by[0].email.as_str(), by[0].note.as_str()), ("manager@example.test", "from my phone"));
        assert_eq!(code(world.control.decide_by_link(&opened, &Choice::deny("")).await), "already_decided");
        let view = world.control.link_view(&open(&world, &link).await).await.expect("shows");
        assert!(view.used);
        let filter = EventFilter { action: Some("approval.approve".to_owned()), ..EventFilter::default() };
        let events = world.control.admin_events(&admin, &filter, Page::first(9)).await.expect("reads").items;
        assert_eq!((events[0].actor_name.as_str(), events[0].address.as_str()), ("manager@example.test", "192.0.2.9"));
        assert_eq!(events[0].after.as_ref().map(|after| after["way"].as_str()), Some(Some("link")));
    }

    async fn a_links_person_must_still_have_the_right_when_deciding(db: Db) {
        let (world, mails) = with_mail(db).await;
        let (admin, at) = scene(&world).await;
        let manager = world.manager(&admin).await;
        let id = park(&world, &admin, &at, Call { quorum: 2, ..Call::default() }).await;
        send(&world).await;
        let got = mails.received(2).await;
        let link = got.iter().find(|mail| mail.to == "manager@example.test").and_then(|mail| mail.link("/approve/")).expect("a link");
        let opened = open(&world, &link).await;
        // Signed by us or nothing.
        let (id_part, signature) = token(&link).split_once('.').expect("two parts");
        let other = sluice_domain::ApprovalLinkId::new();
        for odd in [format!("{other}.{signature}"), format!("{id_part}.{}", &signature[1..]), id_part.to_owned(), String::new()] {
            assert_eq!(code(world.control.open_link(&odd, None, "").await), "not_found", "{odd}");
        }
        // One of two: the link is used up, though more must approve.
        let first = world.control.decide_by_link(&opened, &Choice::approve("")).await.expect("counts");
        assert_eq!(first.missing, 1);
        assert_eq!(code(world.control.decide_by_link(&opened, &Choice::deny("")).await), "link_used");
        assert_eq!(world.control.approval(&admin, id).await.expect("reads").status, ApprovalStatus::Pending);
        world.control.set_role(&admin, manager.actor.user, Role::Viewer).await.expect("lowers");
        assert_eq!(code(world.control.open_link(token(&link), None, "").await), "role_too_low");
        world.control.remove_member(&admin, manager.actor.user).await.expect("removes");
        assert_eq!(code(world.control.open_link(token(&link), None, "").await), "not_found");
        // With the approval the link is over.
        let ann = got.iter().find(|mail| mail.to == "ann@example.test").and_then(|mail| mail.link("/approve/")).expect("a link");
        let opened = open(&world, &ann).await;
        world.clock.advance(TimeDelta::minutes(31));
        assert_eq!(code(world.control.decide_by_link(&opened, &Choice::approve("")).await), "already_decided");
    }

    async fn only_named_people_with_a_wish_for_mail_get_it_and_never_too_much(db: Db) {
        let (world, mails) = with_mail(db).await;
        let (admin, at) = scene(&world).await;
        let manager = world.manager(&admin).await;
        let named = ["member:manager@example.test".to_owned()];
        park(&world, &admin, &at, Call { approvers: &named, ..Call::default() }).await;
        send(&world).await;
        assert_eq!(mails.mails().iter().map(|mail| mail.to.as_str()).collect::<Vec<_>>(), ["manager@example.test"]);
        // Whoever made the grant is not asked where somebody else must decide.
        world.control.set_wants_mail(&manager, false).await.expect("sets");
        assert!(!world.control.notice_settings(&manager).await.expect("reads").wants_mail);
        let pending = world.control.approvals(&admin, &ApprovalsOf::default(), Page::first(9)).await.expect("lists");
        uncharge(&world, &admin, pending.items[0].id).await;
        let own = park(&world, &admin, &at, Call { digest: "own", self_allowed: false, ..Call::default() }).await;
        send(&world).await;
        assert_eq!(mails.mails().len(), 1);
        uncharge(&world, &admin, own).await;
        for n in 0..35 {
            let digest = n.to_string();
            let id = park(&world, &admin, &at, Call { digest: &digest, ..Call::default() }).await;
            uncharge(&world, &admin, id).await;
            world.control.decide(&admin, id, &Choice::deny("")).await.expect("refuses");
            let again = park(&world, &admin, &at, Call { digest: &format!("{digest}x"), ..Call::default() }).await;
            uncharge(&world, &admin, again).await;
            world.control.tell_news().await.expect("tells");
            world.control.decide(&admin, again, &Choice::deny("")).await.expect("refuses");
        }
        world.control.deliver_due().await.expect("sends");
        assert_eq!(mails.mails().len(), 31, "thirty an hour, and what is decided already is not asked");
    }

    async fn a_channels_link_asks_who_opens_it_to_sign_in(world: World) {
        let (admin, at) = scene(&world).await;
        let manager: PolicyManager = world.manager(&admin).await;
        let viewer = world.viewer(&admin).await;
        let sink = WebhookSink::start().await;
        endpoint(&world, &admin, EndpointKind::Slack, &sink.url("services/T0/B0/secret")).await;
        endpoint(&world, &admin, EndpointKind::Teams, &sink.url("workflows/secret")).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        send(&world).await;
        let posted = sink.received(2).await;
        let slack = posted.iter().find(|one| one.path.starts_with("/services")).expect("slack").json();
        assert_eq!(slack["text"], "delete_file needs approval");
        let button = &slack["blocks"][2]["elements"][0];
        assert_eq!(button["text"]["text"], "Review and decide");
        let link = button["url"].as_str().expect("an address").to_owned();
        let teams = posted.iter().find(|one| one.path.starts_with("/workflows")).expect("teams").json();
        let card = &teams["attachments"][0]["content"];
        assert_eq!((card["type"].as_str(), card["body"][0]["text"].as_str()), (Some("AdaptiveCard"), Some("delete\\_file needs approval")));
        assert_eq!(card["actions"][0]["type"], "Action.OpenUrl");
        assert!(card["actions"][0]["url"].as_str().is_some_and(|url| url.contains("/approve/")));
        assert!(!posted.iter().any(|one| one.body.contains("AAAA")));

        assert_eq!(code(world.control.open_link(token(&link), None, "").await), "sign_in");
        assert_eq!(code(world.control.open_link(token(&link), Some(&viewer.actor), "").await), "role_too_low");
        let stranger = world.person("eve@example.test").await;
        assert_eq!(code(world.control.open_link(token(&link), Some(&stranger), "").await), "not_found");
        let opened = world.control.open_link(token(&link), Some(&manager.actor), "").await.expect("opens");
        world.control.decide_by_link(&opened, &Choice::deny("not today")).await.expect("decides");
        let by = world.control.decisions(&admin, id).await.expect("reads");
        assert_eq!(by[0].email, "manager@example.test");
        send(&world).await;
        let told = sink.received(4).await;
        let slack = told[2..].iter().find(|one| one.path.starts_with("/services")).expect("slack");
        assert_eq!(slack.json()["text"], "manager@example.test denied delete_file");
        assert!(slack.body.contains("Note: not today"), "{}", slack.body);
    }

    async fn what_nobody_decides_is_escalated_to_admins_and_to_another_channel(db: Db) {
        let (world, mails) = with_mail(db).await;
        let (admin, at) = scene(&world).await;
        world.manager(&admin).await;
        let sink = WebhookSink::start().await;
        let made = endpoint(&world, &admin, EndpointKind::Slack, &sink.url("second")).await;
        let only = EndpointPatch { notices: Some(vec![Notice::Escalated]), ..EndpointPatch::default() };
        world.control.edit_endpoint(&admin, made.view.id, Some(1), only).await.expect("edits");
        for (after, fault) in [(TimeDelta::seconds(30), "out_of_range"), (TimeDelta::days(8), "out_of_range")] {
            assert_eq!(code(world.control.set_escalation(&admin, Some(after)).await), fault);
        }
        world.control.set_escalation(&admin, Some(TimeDelta::minutes(10))).await.expect("sets");
        assert_eq!(world.control.notice_settings(&admin).await.expect("reads").escalate_after, Some(TimeDelta::minutes(10)));
        let named = ["member:manager@example.test".to_owned()];
        let id = park(&world, &admin, &at, Call { approvers: &named, ..Call::default() }).await;
        send(&world).await;
        assert_eq!((mails.mails().len(), sink.posted().len()), (1, 0));
        world.clock.advance(TimeDelta::minutes(10));
        send(&world).await;
        send(&world).await;
        let got = mails.mails();
        assert_eq!((got.len(), sink.posted().len()), (3, 1), "once");
        assert!(sink.posted()[0].body.contains("still needs approval"));
        let to_admin = got[1..].iter().find(|mail| mail.to == "ann@example.test").expect("told");
        assert!(to_admin.link("/approve/").is_none(), "who may not decide gets no link that does");
        assert!(to_admin.link(&format!("/w/acme/approvals/{id}")).is_some());
        let again = got[1..].iter().find(|mail| mail.to == "manager@example.test").expect("told");
        assert!(again.link("/approve/").is_some() && again.text().contains("Nobody has decided"));
        assert!(world.control.approval(&admin, id).await.expect("reads").escalated_at.is_some());
        assert!(actions(&world, &admin).await.contains(&"approval.escalate".to_owned()));
    }

    async fn without_mail_nothing_waits_to_be_mailed(world: World) {
        let (admin, at) = scene(&world).await;
        park(&world, &admin, &at, Call::default()).await;
        send(&world).await;
        assert!(!world.control.notice_settings(&admin).await.expect("reads").mail);
        assert!(deliveries(&world, &admin).await.is_empty());
    }
}
