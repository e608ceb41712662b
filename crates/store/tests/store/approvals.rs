//! Parked calls: joined, decided once, run once.

use std::sync::Arc;

use sluice_domain::{ApprovalId, ApprovalStatus, CallId, Role, UserId};
use sluice_store::approvals::{
    Approval, ApprovalFilter, Decision, NewApproval, Parked, Taken, Verdict,
};
use sluice_store::{Conn, Db, approvals, members, tools, users};
use sluice_testkit::on_both;
use tokio::sync::Barrier;

use crate::support::{World, approval, kept, later, now, read_tool, waits_or_is_done, world};

pub(crate) async fn begin_with_world(db: &Db) -> World {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    tx.commit().await.expect("commits");
    a
}

pub(crate) async fn park(db: &Db, a: &World, new: &NewApproval<'_>) -> Approval {
    let mut tx = db.begin().await.expect("begins");
    let parked = approvals::create_or_join(&mut tx.conn(), a.workspace, *new, 100, now()).await;
    tx.commit().await.expect("commits");
    match parked.expect("parks") {
        Parked::Created(approval) => approval,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn by(user: UserId, approve: bool) -> Decision {
    Decision {
        user_id: user,
        approve,
        note: "looked at it".to_owned(),
        at: kept(later(10)),
        allow_s: None,
    }
}

pub(crate) async fn decide(
    conn: &mut Conn<'_>,
    a: &World,
    id: ApprovalId,
    by: Decision,
) -> Verdict {
    approvals::decide(conn, a.workspace, id, by).await.expect("decides").expect("is there")
}

/// The call under which [`take`] runs.
pub(crate) fn run() -> CallId {
    CallId::from_uuid(uuid::Uuid::from_u128(7))
}

pub(crate) async fn take(conn: &mut Conn<'_>, a: &World, id: ApprovalId) -> Taken {
    approvals::take_for_run(conn, a.workspace, id, run(), "replica-1", later(20))
        .await
        .expect("takes")
        .expect("is there")
}

pub(crate) async fn another_member(conn: &mut Conn<'_>, a: &World, email: &str) -> UserId {
    let user = users::create(conn, email, "", None, now()).await.expect("a user").id;
    members::add(conn, a.workspace, user, Role::Admin, now()).await.expect("a member");
    user
}

on_both! {
    async fn the_same_call_joins_and_another_one_does_not(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let rated = [read_tool("pay", "pays")];
        tools::replace_read(conn, a.workspace, a.server, &rated, now()).await.unwrap();
        let first = approval(&a, "digest");
        let Parked::Created(made) =
            approvals::create_or_join(conn, a.workspace, first, 100, now()).await.unwrap()
        else {
            panic!()
        };
        assert_eq!((made.id, made.status, made.live), (first.id, ApprovalStatus::Pending, true));
        assert_eq!(
            (made.category, made.severity),
            (Some(rated[0].category), Some(rated[0].severity))
        );
        assert_eq!((made.reservation, made.demands.as_deref()), (first.reservation, Some("[]")));
        let again = NewApproval { id: ApprovalId::new(), policy_version: 9, ..first };
        let joined = approvals::create_or_join(conn, a.workspace, again, 100, now()).await.unwrap();
        assert_eq!(joined, Parked::Joined(made.clone()));
        assert_eq!(
            approvals::find_live(conn, a.workspace, first.same_call(), now()).await.unwrap(),
            Some(made.clone())
        );
        for other in [
            NewApproval { id: ApprovalId::new(), arguments_digest: "other", ..first },
            NewApproval { id: ApprovalId::new(), tool: "other", ..first },
            NewApproval { id: ApprovalId::new(), rules_digest: "other", ..first },
        ] {
            let parked =
                approvals::create_or_join(conn, a.workspace, other, 100, now()).await.unwrap();
            assert!(matches!(parked, Parked::Created(_)), "{parked:?}");
        }
        assert_eq!(
            approvals::count_pending(conn, a.workspace, Some(a.grant), now()).await.unwrap(),
            4
        );
        let filter = ApprovalFilter {
            tool: Some("pay"),
            status: Some(ApprovalStatus::Pending),
            ..ApprovalFilter::default()
        };
        let listed = approvals::list(conn, a.workspace, filter, None, 9).await.unwrap();
        assert_eq!(listed.len(), 3);
        assert_eq!(listed[2], made);
    }

    async fn equal_calls_at_once_become_one_approval(db: Db) {
        let a = begin_with_world(&db).await;
        let barrier = Arc::new(Barrier::new(6));
        let asks: Vec<_> = (0..6)
            .map(|_| {
                let (db, barrier) = (db.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let mut tx = db.begin().await.unwrap();
                    let parked = approvals::create_or_join(
                        &mut tx.conn(),
                        a.workspace,
                        approval(&a, "d"),
                        100,
                        now(),
                    )
                    .await
                    .unwrap();
                    tx.commit().await.unwrap();
                    match parked {
                        Parked::Created(approval) => (true, approval.id),
                        Parked::Joined(approval) => (false, approval.id),
                        Parked::TooMany => panic!("not so many"),
                    }
                })
            })
            .collect();
        let mut came = Vec::new();
        for ask in asks {
            came.push(ask.await.unwrap());
        }
        assert_eq!(came.iter().filter(|(created, _)| *created).count(), 1);
        assert!(came.iter().all(|(_, id)| *id == came[0].1), "{came:?}");
    }

    async fn a_flood_is_bounded_per_grant_also_at_once(db: Db) {
        let a = begin_with_world(&db).await;
        let asks: Vec<_> = (0..8)
            .map(|n| {
                let db = db.clone();
                tokio::spawn(async move {
                    let digest = n.to_string();
                    let mut tx = db.begin().await.unwrap();
                    let parked = approvals::create_or_join(
                        &mut tx.conn(),
                        a.workspace,
                        approval(&a, &digest),
                        3,
                        now(),
                    )
                    .await
                    .unwrap();
                    tx.commit().await.unwrap();
                    matches!(parked, Parked::Created(_))
                })
            })
            .collect();
        let mut created = 0;
        for ask in asks {
            created += usize::from(ask.await.unwrap());
        }
        assert_eq!(created, 3);
    }

    async fn of_two_deciders_at_once_one_wins_and_the_other_learns_who(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let bob = another_member(&mut tx.conn(), &a, "bob@example.test").await;
        tx.commit().await.unwrap();
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        // One is at it and has not committed when the other begins.
        let mut first = db.begin().await.unwrap();
        let verdict = decide(&mut first.conn(), &a, id, by(a.user, true)).await;
        let Verdict::Decided(approved) = verdict else { panic!("{verdict:?}") };
        assert_eq!(
            (approved.status, approved.decided_by),
            (ApprovalStatus::Approved, Some(a.user))
        );
        let second = tokio::spawn({
            let db = db.clone();
            async move {
                let mut tx = db.begin().await.unwrap();
                decide(&mut tx.conn(), &a, id, by(bob, false)).await
            }
        });
        waits_or_is_done(&db, &second).await;
        first.commit().await.unwrap();
        assert_eq!(second.await.unwrap(), Verdict::TooLate(approved));
    }

    async fn four_eyes_need_two_people(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &NewApproval { quorum: 2, ..approval(&a, "d") }).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let bob = another_member(conn, &a, "bob@example.test").await;
        let first = decide(conn, &a, id, by(a.user, true)).await;
        assert!(matches!(first, Verdict::MoreNeeded { missing: 1, .. }), "{first:?}");
        let again = decide(conn, &a, id, by(a.user, true)).await;
        assert!(matches!(again, Verdict::AlreadyYours(_)), "{again:?}");
        assert!(matches!(take(conn, &a, id).await, Taken::No(_)));
        let second = decide(conn, &a, id, by(bob, true)).await;
        assert!(
            matches!(second, Verdict::Decided(ref approval) if approval.status == ApprovalStatus::Approved),
            "{second:?}"
        );
        let decisions = approvals::decisions(conn, a.workspace, id).await.unwrap();
        assert_eq!(decisions.len(), 2);
        assert!(decisions.contains(&by(bob, true)));
    }

    async fn one_refusal_is_enough_even_from_who_approved_before(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &NewApproval { quorum: 2, ..approval(&a, "d") }).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, id, by(a.user, true)).await;
        let Verdict::Decided(refused) = decide(conn, &a, id, by(a.user, false)).await else {
            panic!()
        };
        assert_eq!(
            (refused.status, refused.note.as_deref()),
            (ApprovalStatus::Denied, Some("looked at it"))
        );
        // The same call again finds the refusal, until it expires; then it asks anew.
        let same = approval(&a, "d");
        let parked =
            approvals::create_or_join(conn, a.workspace, same, 100, later(30)).await.unwrap();
        assert_eq!(parked, Parked::Joined(refused));
        let parked =
            approvals::create_or_join(conn, a.workspace, same, 100, later(1800)).await.unwrap();
        assert!(matches!(parked, Parked::Created(_)), "{parked:?}");
        let old = approvals::find(conn, a.workspace, id).await.unwrap().unwrap();
        assert_eq!((old.status, old.live), (ApprovalStatus::Denied, false));
    }
}
