//! Endpoints, and messages on their way to them: sent once by one, again after a fall, given up.

use serde_json::json;
use sluice_domain::{DeliveryId, DeliveryStatus, EndpointId, EndpointKind, Notice, WorkspaceId};
use sluice_store::endpoints::{EndpointChange, NewEndpoint};
use sluice_store::outbox::{Delivery, DeliveryFilter, NewDelivery};
use sluice_store::{Conn, Db, StoreError, approvals, endpoints, outbox};
use sluice_testkit::on_both;

use crate::approvals::begin_with_world;
use crate::support::{kept, later, now, world};

pub(crate) async fn endpoint(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    name: &str,
) -> EndpointId {
    let id = EndpointId::new();
    let new = NewEndpoint {
        id,
        name,
        kind: EndpointKind::Webhook,
        sealed_url: b"url",
        shown_url: "https://a.example/…",
        sealed_secret: Some(b"secret"),
        notices: &[Notice::Asked, Notice::Decided],
        created_by: None,
    };
    endpoints::create(conn, workspace, new, now()).await.expect("makes it");
    id
}

pub(crate) fn message(endpoint: Option<EndpointId>) -> NewDelivery<'static> {
    NewDelivery {
        id: DeliveryId::new(),
        endpoint,
        recipient: if endpoint.is_some() { "" } else { "Ann@Example.test" },
        topic: "approval.asked",
        subject: None,
        sealed_body: b"body",
        give_up_at: later(1800),
    }
}

async fn find(conn: &mut Conn<'_>, workspace: WorkspaceId, id: DeliveryId) -> Delivery {
    outbox::find(conn, workspace, id).await.expect("reads").expect("is there")
}

on_both! {
    async fn an_endpoint_is_changed_rotated_and_removed(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let id = endpoint(conn, a.workspace, "Hooks").await;
        let twice = NewEndpoint { id: EndpointId::new(), name: " hooks", kind: EndpointKind::Slack, sealed_url: b"", shown_url: "", sealed_secret: None, notices: &[], created_by: None };
        assert!(matches!(endpoints::create(conn, a.workspace, twice, now()).await, Err(StoreError::Conflict { .. })));
        let change = EndpointChange { url: Some((b"new", "https://b.example/…")), enabled: Some(false), ..EndpointChange::default() };
        let stale = endpoints::update(conn, a.workspace, id, Some(9), change, later(1)).await;
        assert!(matches!(stale, Err(StoreError::Stale { current: 1 })), "{stale:?}");
        let changed = endpoints::update(conn, a.workspace, id, Some(1), change, later(1)).await.unwrap().unwrap();
        assert_eq!((changed.revision, changed.enabled, changed.sealed_url.as_slice(), changed.name.as_str()), (2, false, &b"new"[..], "Hooks"));
        assert_eq!(changed.notices, [Notice::Asked, Notice::Decided]);
        assert!(endpoints::rotate(conn, a.workspace, id, (b"s2", b"s1"), later(60), now()).await.unwrap());
        let rotated = endpoints::find(conn, a.workspace, id).await.unwrap().unwrap();
        assert_eq!((rotated.sealed_secret.as_deref(), rotated.sealed_previous_secret.as_deref(), rotated.previous_until), (Some(&b"s2"[..]), Some(&b"s1"[..]), Some(kept(later(60)))));
        let other = endpoint(conn, a.workspace, "other").await;
        let taken = EndpointChange { name: Some("OTHER"), ..EndpointChange::default() };
        assert!(matches!(endpoints::update(conn, a.workspace, id, None, taken, now()).await, Err(StoreError::Conflict { .. })));
        assert_eq!(endpoints::count(conn, a.workspace).await.unwrap(), 2);
        let waiting = message(Some(other));
        outbox::put(conn, Some(a.workspace), waiting, now()).await.unwrap();
        assert!(endpoints::delete(conn, a.workspace, other).await.unwrap());
        assert_eq!(outbox::find(conn, a.workspace, waiting.id).await.unwrap(), None, "goes with it");
        assert!(endpoints::reseal(conn, &rotated, b"u3", Some(b"s3"), None).await.unwrap());
    }

    async fn a_message_is_sent_by_one_and_again_when_that_one_falls(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let id = endpoint(&mut tx.conn(), a.workspace, "hooks").await;
        let new = message(Some(id));
        outbox::put(&mut tx.conn(), Some(a.workspace), new, now()).await.unwrap();
        tx.commit().await.unwrap();
        let claims = (0..4).map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                let mut tx = db.begin().await.unwrap();
                let got = outbox::claim_due(&mut tx.conn(), later(60), 9, now()).await.unwrap();
                tx.commit().await.unwrap();
                got
            })
        });
        let mut got = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            got.extend(claim.await.unwrap());
        }
        assert_eq!(got.len(), 1, "one has it");
        let first = got[0].0;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert!(outbox::claim_due(conn, later(90), 9, later(59)).await.unwrap().is_empty());
        // Its sender fell: the claim runs out, another takes it, and the first has no say any more.
        let again = outbox::claim_due(conn, later(120), 9, later(60)).await.unwrap();
        assert_eq!(again.len(), 1);
        assert!(!outbox::sent(conn, first, &json!([]), later(61)).await.unwrap());
        assert!(outbox::again(conn, again[0].0, &json!([{"status": 500}]), later(70)).await.unwrap());
        let waits = find(conn, a.workspace, new.id).await;
        assert_eq!((waits.status, waits.attempts, waits.next_at), (DeliveryStatus::Waiting, 1, kept(later(70))));
        let third = outbox::claim_due(conn, later(130), 9, later(70)).await.unwrap();
        assert!(outbox::put_off(conn, third[0].0, later(80)).await.unwrap());
        let last = outbox::claim_due(conn, later(140), 9, later(80)).await.unwrap();
        assert!(outbox::sent(conn, last[0].0, &json!([{"status": 500}, {"status": 200}]), later(81)).await.unwrap());
        let done = find(conn, a.workspace, new.id).await;
        assert_eq!((done.status, done.attempts, done.done_at, done.tries[1]["status"].as_i64()), (DeliveryStatus::Sent, 2, Some(kept(later(81))), Some(200)));
        assert!(outbox::claim_due(conn, later(200), 9, later(199)).await.unwrap().is_empty());
    }

    async fn what_was_given_up_can_be_sent_anew_and_is_forgotten_in_time(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let id = endpoint(conn, a.workspace, "hooks").await;
        let (new, mail) = (message(Some(id)), message(None));
        outbox::put(conn, Some(a.workspace), new, now()).await.unwrap();
        outbox::put(conn, Some(a.workspace), mail, now()).await.unwrap();
        outbox::put(conn, None, NewDelivery { id: DeliveryId::new(), ..mail }, now()).await.unwrap();
        assert_eq!(outbox::count_waiting(conn, a.workspace, id).await.unwrap(), 1);
        assert_eq!(outbox::count_mail(conn, "ann@example.TEST", later(-1)).await.unwrap(), 1, "what is about an account does not count");
        assert!(!outbox::replay(conn, a.workspace, new.id, later(9), later(5)).await.unwrap(), "it waits");
        for (claim, _) in outbox::claim_due(conn, later(60), 9, now()).await.unwrap() {
            assert!(outbox::dead(conn, claim, &json!([]), later(5)).await.unwrap());
        }
        let dead = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
        assert_eq!(outbox::list(conn, a.workspace, dead, None, 9).await.unwrap().len(), 2);
        let of = DeliveryFilter { endpoint: Some(id), ..DeliveryFilter::default() };
        assert_eq!(outbox::list(conn, a.workspace, of, None, 9).await.unwrap().len(), 1);
        assert!(outbox::replay(conn, a.workspace, new.id, later(900), later(6)).await.unwrap());
        let anew = find(conn, a.workspace, new.id).await;
        assert_eq!((anew.status, anew.attempts, anew.done_at), (DeliveryStatus::Waiting, 0, None));
        assert_eq!(outbox::prune(conn, later(5), 9).await.unwrap(), 0);
        assert_eq!(outbox::prune(conn, later(6), 9).await.unwrap(), 2, "what waits stays");
        assert!(outbox::reseal(conn, new.id, b"body", b"other").await.unwrap());
        assert_eq!(outbox::list_all(conn, None, 9).await.unwrap().len(), 1);
    }

    async fn a_member_may_do_without_mail(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let b = world(conn, "b").await;
        assert_eq!(outbox::wants_mail(conn, a.workspace, a.user).await.unwrap(), Some(true));
        let readers = outbox::mail_readers(conn, a.workspace, 9).await.unwrap();
        assert_eq!(readers.iter().map(|one| one.email.as_str()).collect::<Vec<_>>(), ["a@example.test"]);
        outbox::set_wants_mail(conn, a.workspace, a.user, false).await.unwrap();
        assert_eq!(outbox::mail_readers(conn, a.workspace, 9).await.unwrap(), []);
        assert_eq!(outbox::wants_mail(conn, a.workspace, a.user).await.unwrap(), Some(false));
        assert_eq!(outbox::wants_mail(conn, a.workspace, b.user).await.unwrap(), None);
    }

    async fn endpoints_messages_and_exceptions_of_another_workspace_do_not_exist(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let b = world(conn, "b").await;
        let id = endpoint(conn, a.workspace, "hooks").await;
        let new = message(Some(id));
        outbox::put(conn, Some(a.workspace), new, now()).await.unwrap();
        assert_eq!(endpoints::find(conn, b.workspace, id).await.unwrap(), None);
        assert_eq!(endpoints::list(conn, b.workspace, None, 9).await.unwrap(), []);
        assert_eq!(endpoints::count(conn, b.workspace).await.unwrap(), 0);
        let off = EndpointChange { enabled: Some(false), ..EndpointChange::default() };
        assert_eq!(endpoints::update(conn, b.workspace, id, None, off, now()).await.unwrap(), None);
        assert!(!endpoints::rotate(conn, b.workspace, id, (b"x", b"y"), now(), now()).await.unwrap());
        assert!(!endpoints::delete(conn, b.workspace, id).await.unwrap());
        assert_eq!(outbox::find(conn, b.workspace, new.id).await.unwrap(), None);
        assert_eq!(outbox::list(conn, b.workspace, DeliveryFilter::default(), None, 9).await.unwrap(), []);
        assert_eq!(outbox::count_waiting(conn, b.workspace, id).await.unwrap(), 0);
        assert!(!outbox::replay(conn, b.workspace, new.id, later(9), now()).await.unwrap());
        let made = approvals::create_or_join(conn, a.workspace, crate::support::approval(&a, "d"), 9, now()).await.unwrap();
        let approvals::Parked::Created(parked) = made else { panic!() };
        let reach = approvals::Reach { by: a.user, expires_at: later(60), max_uses: 9 };
        let exception = approvals::create_exception(conn, a.workspace, &parked, reach, now()).await.unwrap();
        assert_eq!(approvals::find_exception(conn, b.workspace, exception).await.unwrap(), None);
        assert_eq!(approvals::list_exceptions(conn, b.workspace, None, None, None, 9).await.unwrap(), []);
        assert!(!approvals::revoke_exception(conn, b.workspace, exception, b.user, now()).await.unwrap());
        let same = crate::support::approval(&a, "d").same_call();
        assert_eq!(approvals::use_exception(conn, b.workspace, same, None, now()).await.unwrap(), None);
        assert_eq!(approvals::events(conn, b.workspace, parked.id).await.unwrap(), []);
        let link = approvals::create_link(conn, a.workspace, parked.id, None, now()).await.unwrap();
        assert!(!approvals::use_link(conn, b.workspace, link.id, now()).await.unwrap());
        // A message cannot point to another workspace's endpoint.
        let strayed = outbox::put(conn, Some(b.workspace), NewDelivery { id: DeliveryId::new(), ..new }, now()).await;
        assert!(matches!(strayed, Err(StoreError::DanglingReference)), "{strayed:?}");
    }
}
