//! Released calls: run once, put back, lost, late.

use std::sync::Arc;

use sluice_domain::{ApprovalStatus, CallId};
use sluice_store::approvals::{Decision, NewApproval, Parked, Taken, Verdict};
use sluice_store::{Db, approvals};
use sluice_testkit::on_both;
use tokio::sync::Barrier;

use crate::approvals::{begin_with_world, by, decide, park, run, take};
use crate::support::{approval, later};

on_both! {
    async fn an_approved_call_runs_once_whoever_asks(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        assert!(matches!(take(&mut tx.conn(), &a, id).await, Taken::No(_)), "nobody decided");
        decide(&mut tx.conn(), &a, id, by(a.user, true)).await;
        tx.commit().await.unwrap();
        let barrier = Arc::new(Barrier::new(8));
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let (db, barrier) = (db.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let mut tx = db.begin().await.unwrap();
                    let taken = take(&mut tx.conn(), &a, id).await;
                    tx.commit().await.unwrap();
                    matches!(taken, Taken::Yours(_))
                })
            })
            .collect();
        let mut runs = 0;
        for taker in takers {
            runs += usize::from(taker.await.unwrap());
        }
        assert_eq!(runs, 1);

        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        // While it runs, the same call joins it.
        let parked =
            approvals::create_or_join(conn, a.workspace, approval(&a, "d"), 100, later(30))
                .await
                .unwrap();
        assert!(
            matches!(&parked, Parked::Joined(running) if running.id == id && running.status == ApprovalStatus::Running),
            "{parked:?}"
        );
        assert!(approvals::finish(conn, a.workspace, id, run(), later(40)).await.unwrap());
        assert!(!approvals::finish(conn, a.workspace, id, run(), later(40)).await.unwrap());
        assert!(!approvals::put_back(conn, a.workspace, id, run(), later(40)).await.unwrap());
        assert!(
            matches!(take(conn, &a, id).await, Taken::No(used) if used.status == ApprovalStatus::Used)
        );
        let verdict = decide(conn, &a, id, by(a.user, true)).await;
        assert!(matches!(verdict, Verdict::TooLate(_)));
        // Used up: the same call asks anew.
        let parked =
            approvals::create_or_join(conn, a.workspace, approval(&a, "d"), 100, later(50))
                .await
                .unwrap();
        assert!(matches!(parked, Parked::Created(_)), "{parked:?}");
    }

    async fn a_release_that_was_refused_can_be_tried_again(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, id, by(a.user, true)).await;
        assert!(matches!(take(conn, &a, id).await, Taken::Yours(_)));
        assert!(approvals::put_back(conn, a.workspace, id, run(), later(20)).await.unwrap());
        assert!(matches!(take(conn, &a, id).await, Taken::Yours(_)));
    }

    async fn what_was_running_when_a_replica_fell_is_unknown_and_never_rerun(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, id, by(a.user, true)).await;
        take(conn, &a, id).await;
        // As long as its replica says that it runs, it is not lost.
        assert_eq!(approvals::mark_unknown(conn, later(20), later(60)).await.unwrap(), []);
        approvals::still_running(conn, a.workspace, id, run(), later(40)).await.unwrap();
        approvals::still_running(conn, a.workspace, id, CallId::new(), later(90)).await.unwrap();
        assert_eq!(approvals::mark_unknown(conn, later(40), later(60)).await.unwrap(), []);
        let lost = approvals::mark_unknown(conn, later(41), later(60)).await.unwrap();
        assert_eq!((lost.len(), lost[0].id, lost[0].status), (1, id, ApprovalStatus::Unknown));
        assert!(matches!(take(conn, &a, id).await, Taken::No(_)));
        assert!(!approvals::put_back(conn, a.workspace, id, run(), later(61)).await.unwrap());
        assert!(!approvals::give_up(conn, a.workspace, id, run(), later(61)).await.unwrap());
        // The same call is told so until the approval's time is over, and only then asks anew.
        let same = approval(&a, "d").same_call();
        let found = approvals::find_live(conn, a.workspace, same, later(1799)).await.unwrap();
        assert_eq!(found.map(|found| found.status), Some(ApprovalStatus::Unknown));
        let anew = NewApproval { expires_at: later(3600), ..approval(&a, "d") };
        let parked =
            approvals::create_or_join(conn, a.workspace, anew, 100, later(1800)).await.unwrap();
        assert!(matches!(parked, Parked::Created(_)), "{parked:?}");
        // Was it only slow, then its end is known after all.
        assert!(!approvals::finish(conn, a.workspace, id, CallId::new(), later(1801)).await.unwrap());
        assert!(approvals::finish(conn, a.workspace, id, run(), later(1801)).await.unwrap());
    }

    async fn only_the_call_that_runs_says_how_it_ended(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, id, by(a.user, true)).await;
        take(conn, &a, id).await;
        let earlier = CallId::new();
        assert!(!approvals::put_back(conn, a.workspace, id, earlier, later(21)).await.unwrap());
        assert!(!approvals::finish(conn, a.workspace, id, earlier, later(21)).await.unwrap());
        assert!(!approvals::give_up(conn, a.workspace, id, earlier, later(21)).await.unwrap());
        assert!(approvals::finish(conn, a.workspace, id, run(), later(22)).await.unwrap());
    }

    async fn what_is_late_is_late(db: Db) {
        let a = begin_with_world(&db).await;
        let pending = park(&db, &a, &approval(&a, "p")).await.id;
        let approved = park(&db, &a, &approval(&a, "a")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, approved, by(a.user, true)).await;
        let end = later(1800);
        // Before anybody swept: the time alone decides.
        let late = Decision { at: end, ..by(a.user, true) };
        let verdict = approvals::decide(conn, a.workspace, pending, late).await.unwrap().unwrap();
        assert!(matches!(verdict, Verdict::TooLate(_)));
        let taken = approvals::take_for_run(conn, a.workspace, approved, CallId::new(), "r", end)
            .await
            .unwrap()
            .unwrap();
        assert!(matches!(taken, Taken::No(_)));
        assert_eq!(approvals::count_pending(conn, a.workspace, None, end).await.unwrap(), 0);
        assert_eq!(
            approvals::find_live(conn, a.workspace, approval(&a, "p").same_call(), end)
                .await
                .unwrap(),
            None
        );
        // Asking anew before the sweep does not lose what must be given back.
        let anew = NewApproval { expires_at: later(3600), ..approval(&a, "p") };
        let parked = approvals::create_or_join(conn, a.workspace, anew, 100, end).await.unwrap();
        assert!(matches!(parked, Parked::Created(_)), "{parked:?}");
        let mut closed = approvals::expire_due(conn, end, 1).await.unwrap();
        closed.extend(approvals::expire_due(conn, end, 9).await.unwrap());
        closed.sort_by_key(|closed| closed.id);
        assert_eq!(closed.iter().map(|c| c.id).collect::<Vec<_>>(), [pending, approved]);
        assert!(closed.iter().all(|c| c.status == ApprovalStatus::Expired
            && c.reservation.is_some()
            && c.demands.is_some()));
        assert_eq!(approvals::expire_due(conn, end, 9).await.unwrap(), []);
    }

    async fn sweepers_at_once_get_each_row_once(db: Db) {
        let a = begin_with_world(&db).await;
        for n in 0..10 {
            park(&db, &a, &approval(&a, &n.to_string())).await;
        }
        let sweep = || {
            let db = db.clone();
            tokio::spawn(async move {
                let mut tx = db.begin().await.unwrap();
                let closed = approvals::expire_due(&mut tx.conn(), later(1800), 100).await.unwrap();
                tx.commit().await.unwrap();
                closed
            })
        };
        let (one, other) = tokio::join!(sweep(), sweep());
        let mut ids: Vec<_> =
            one.unwrap().into_iter().chain(other.unwrap()).map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut tx = db.begin().await.unwrap();
        let rest = approvals::expire_due(&mut tx.conn(), later(1800), 100).await.unwrap();
        assert_eq!(ids.len() + rest.len(), 10);
    }

    async fn arguments_are_wiped_some_time_after(db: Db) {
        let a = begin_with_world(&db).await;
        let (open, closed) = (
            park(&db, &a, &approval(&a, "o")).await.id,
            park(&db, &a, &approval(&a, "c")).await.id,
        );
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, closed, by(a.user, true)).await;
        take(conn, &a, closed).await;
        approvals::finish(conn, a.workspace, closed, run(), later(40)).await.unwrap();
        assert_eq!(approvals::wipe_arguments(conn, later(40)).await.unwrap(), 0);
        assert_eq!(approvals::wipe_arguments(conn, later(41)).await.unwrap(), 1);
        let wiped = approvals::find(conn, a.workspace, closed).await.unwrap().unwrap();
        assert_eq!(wiped.sealed_arguments, None);
        let kept = approvals::find(conn, a.workspace, open).await.unwrap().unwrap();
        assert!(kept.sealed_arguments.is_some());
    }

    async fn a_denied_one_is_wiped_and_forgotten_after_its_expiry(db: Db) {
        let a = begin_with_world(&db).await;
        let denied = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, denied, by(a.user, false)).await;
        assert_eq!(approvals::wipe_arguments(conn, later(1800)).await.unwrap(), 0, "still refuses");
        assert_eq!(approvals::wipe_arguments(conn, later(1801)).await.unwrap(), 1);
        assert_eq!(approvals::prune(conn, later(1801), 9).await.unwrap(), 1);
    }

    async fn closed_approvals_are_forgotten_and_open_ones_are_not(db: Db) {
        let a = begin_with_world(&db).await;
        let open = park(&db, &a, &approval(&a, "o")).await.id;
        let closed = park(&db, &a, &approval(&a, "c")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, closed, by(a.user, false)).await;
        assert_eq!(
            approvals::prune(conn, later(9), 9).await.unwrap(),
            0,
            "still stands in the way"
        );
        approvals::create_or_join(conn, a.workspace, approval(&a, "x"), 9, later(1800))
            .await
            .unwrap();
        assert_eq!(approvals::prune(conn, later(9), 9).await.unwrap(), 1);
        assert_eq!(approvals::find(conn, a.workspace, closed).await.unwrap(), None);
        assert_eq!(approvals::decisions(conn, a.workspace, closed).await.unwrap(), []);
        assert!(approvals::find(conn, a.workspace, open).await.unwrap().is_some());
    }
}
