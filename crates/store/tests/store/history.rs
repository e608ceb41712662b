//! What happened to an approval, links to it, exceptions, and lists of what waits.

use serde_json::json;
use sluice_domain::{
    ApprovalEventKind, ApprovalId, ApprovalLinkId, ApprovalStatus, Role, Severity,
};
use sluice_store::approvals::{Exception, InboxKey, NewApproval, NewEvent, Parked, Reach};
use sluice_store::{Conn, Db, approvals, members, tools, workspaces};
use sluice_testkit::on_both;

use crate::approvals::{begin_with_world, by, decide, park, run, take};
use crate::support::{World, approval, kept, later, now, read_tool};

async fn kinds(conn: &mut Conn<'_>, a: &World, id: ApprovalId) -> Vec<ApprovalEventKind> {
    let events = approvals::events(conn, a.workspace, id).await.expect("reads");
    events.into_iter().map(|event| event.kind).collect()
}

async fn excepted(
    conn: &mut Conn<'_>,
    a: &World,
    hash: Option<&str>,
    at: i64,
) -> Option<Exception> {
    let same = approval(a, "d").same_call();
    approvals::use_exception(conn, a.workspace, same, hash, later(at)).await.expect("asks")
}

on_both! {
    async fn every_change_of_state_is_noted_and_told_once(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, id, by(a.user, true)).await;
        take(conn, &a, id).await;
        approvals::put_back(conn, a.workspace, id, run(), later(21)).await.unwrap();
        take(conn, &a, id).await;
        approvals::finish(conn, a.workspace, id, run(), later(22)).await.unwrap();
        let all = [ApprovalEventKind::Asked, ApprovalEventKind::Approved, ApprovalEventKind::Released, ApprovalEventKind::NotRun, ApprovalEventKind::Released, ApprovalEventKind::Ran];
        let mut noted = kinds(conn, &a, id).await;
        noted.sort_unstable();
        let mut expected = all.to_vec();
        expected.sort_unstable();
        assert_eq!(noted, expected);
        let events = approvals::events(conn, a.workspace, id).await.unwrap();
        assert_eq!((events[1].who.as_str(), &events[1].detail["note"]), ("a@example.test", &json!("looked at it")));
        // What concerns the approval's page alone is no news.
        approvals::note(conn, a.workspace, id, NewEvent::of(ApprovalEventKind::Shown).by(a.user), later(23)).await.unwrap();
        let first = approvals::take_news(conn, 4).await.unwrap();
        let rest = approvals::take_news(conn, 100).await.unwrap();
        let told: Vec<_> = first.iter().chain(&rest).map(|event| event.kind).collect();
        assert_eq!((told, first.len()), (all.to_vec(), 4));
        assert_eq!(approvals::take_news(conn, 100).await.unwrap(), []);
    }

    async fn other_ends_are_noted_too(db: Db) {
        let a = begin_with_world(&db).await;
        let (late, lost, denied) = (
            park(&db, &a, &approval(&a, "late")).await.id,
            park(&db, &a, &approval(&a, "lost")).await.id,
            park(&db, &a, &approval(&a, "denied")).await.id,
        );
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, denied, by(a.user, false)).await;
        decide(conn, &a, lost, by(a.user, true)).await;
        take(conn, &a, lost).await;
        approvals::mark_unknown(conn, later(60), later(60)).await.unwrap();
        approvals::expire_due(conn, later(1800), 100).await.unwrap();
        assert_eq!(kinds(conn, &a, late).await, [ApprovalEventKind::Asked, ApprovalEventKind::Expired]);
        assert_eq!(kinds(conn, &a, denied).await, [ApprovalEventKind::Asked, ApprovalEventKind::Denied]);
        assert_eq!(kinds(conn, &a, lost).await, [ApprovalEventKind::Asked, ApprovalEventKind::Approved, ApprovalEventKind::Released, ApprovalEventKind::Unknown]);
    }

    async fn a_history_has_an_end(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        for _ in 0..250 {
            approvals::note(conn, a.workspace, id, NewEvent::of(ApprovalEventKind::NotRun), now()).await.unwrap();
        }
        assert_eq!(kinds(conn, &a, id).await.len(), 200);
    }

    async fn who_looked_is_noted_once_each(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let shown = ApprovalEventKind::Shown;
        assert!(approvals::note_once(conn, a.workspace, id, shown, a.user, now()).await.unwrap());
        assert!(!approvals::note_once(conn, a.workspace, id, shown, a.user, later(9)).await.unwrap());
        let revealed = ApprovalEventKind::Revealed;
        assert!(approvals::note_once(conn, a.workspace, id, revealed, a.user, later(9)).await.unwrap());
    }

    async fn a_link_is_used_once(db: Db) {
        let a = begin_with_world(&db).await;
        let id = park(&db, &a, &approval(&a, "d")).await.id;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let link = approvals::create_link(conn, a.workspace, id, Some(a.user), now()).await.unwrap();
        assert_eq!(approvals::find_link(conn, link.id).await.unwrap(), Some(link.clone()));
        assert_eq!(approvals::find_link(conn, ApprovalLinkId::new()).await.unwrap(), None);
        assert!(approvals::use_link(conn, a.workspace, link.id, later(1)).await.unwrap());
        assert!(!approvals::use_link(conn, a.workspace, link.id, later(2)).await.unwrap());
        let used = approvals::find_link(conn, link.id).await.unwrap().unwrap();
        assert_eq!(used.used_at, Some(kept(later(1))));
        workspaces::delete(conn, a.workspace, now()).await.unwrap();
        assert_eq!(approvals::find_link(conn, link.id).await.unwrap(), None);
    }

    async fn an_exception_is_bound_to_the_call_the_tool_and_its_time(db: Db) {
        let a = begin_with_world(&db).await;
        let new = NewApproval { tool_hash: Some("h"), ..approval(&a, "d") };
        let approved = park(&db, &a, &new).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(excepted(conn, &a, Some("h"), 1).await, None);
        let reach = Reach { by: a.user, expires_at: later(3600), max_uses: 2 };
        let id = approvals::create_exception(conn, a.workspace, &approved, reach, now()).await.unwrap();
        assert_eq!(excepted(conn, &a, Some("other"), 1).await, None, "the tool changed");
        assert_eq!(excepted(conn, &a, None, 1).await, None);
        for other in [
            NewApproval { arguments_digest: "e", ..new },
            NewApproval { tool: "other", ..new },
            NewApproval { rules_digest: "edited", ..new },
        ] {
            let found = approvals::use_exception(conn, a.workspace, other.same_call(), Some("h"), later(1)).await;
            assert_eq!(found.unwrap(), None);
        }
        let used = excepted(conn, &a, Some("h"), 1).await.expect("in force");
        assert_eq!((used.id, used.uses, used.created_by_email.as_str()), (id, 1, "a@example.test"));
        assert_eq!(excepted(conn, &a, Some("h"), 3600).await, None, "its time is over");
        assert!(excepted(conn, &a, Some("h"), 2).await.is_some());
        assert_eq!(excepted(conn, &a, Some("h"), 3).await, None, "used up");
        let all = approvals::list_exceptions(conn, a.workspace, Some(a.grant), None, None, 9).await.unwrap();
        assert_eq!(all.len(), 1);
        let live = approvals::list_exceptions(conn, a.workspace, None, Some(later(4)), None, 9).await.unwrap();
        assert_eq!(live, []);
        assert_eq!(approvals::prune_exceptions(conn, later(3600), 9).await.unwrap(), 0);
        assert_eq!(approvals::prune_exceptions(conn, later(3601), 9).await.unwrap(), 1);
    }

    async fn an_exception_ends_when_taken_back_or_its_maker_may_no_longer(db: Db) {
        let a = begin_with_world(&db).await;
        let approved = park(&db, &a, &approval(&a, "d")).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let bob = crate::approvals::another_member(conn, &a, "bob@example.test").await;
        let reach = Reach { by: bob, expires_at: later(3600), max_uses: 100 };
        let id = approvals::create_exception(conn, a.workspace, &approved, reach, now()).await.unwrap();
        members::set_role(conn, a.workspace, bob, Role::PolicyManager, now()).await.unwrap();
        assert!(excepted(conn, &a, None, 1).await.is_some());
        members::set_role(conn, a.workspace, bob, Role::Viewer, now()).await.unwrap();
        assert_eq!(excepted(conn, &a, None, 2).await, None, "a viewer decides nothing");
        members::set_role(conn, a.workspace, bob, Role::Admin, now()).await.unwrap();
        assert!(approvals::revoke_exception(conn, a.workspace, id, a.user, later(3)).await.unwrap());
        assert!(!approvals::revoke_exception(conn, a.workspace, id, a.user, later(3)).await.unwrap());
        assert_eq!(excepted(conn, &a, None, 4).await, None);
        let seen = approvals::find_exception(conn, a.workspace, id).await.unwrap().unwrap();
        assert_eq!((seen.uses, seen.revoked_at), (1, Some(kept(later(3)))));
    }

    async fn the_inbox_has_the_riskiest_first_and_of_those_the_oldest(db: Db) {
        let a = begin_with_world(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let mut low = read_tool("low", "reads");
        low.severity = Severity::Low;
        let mut critical = read_tool("critical", "pays");
        critical.severity = Severity::Critical;
        tools::replace_read(conn, a.workspace, a.server, &[low, critical], now()).await.unwrap();
        let mut ids = Vec::new();
        for (tool, digest) in [("low", "1"), ("unrated", "2"), ("critical", "3"), ("critical", "4")] {
            let new = NewApproval { tool, ..approval(&a, digest) };
            let Parked::Created(made) = approvals::create_or_join(conn, a.workspace, new, 9, now()).await.unwrap() else { panic!() };
            ids.push(made.id);
        }
        let expected = [ids[2], ids[3], ids[0], ids[1]];
        let all = approvals::inbox(conn, a.workspace, None, 9, now()).await.unwrap();
        assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), expected);
        for (rank, at) in [(0, 0), (0, 1), (3, 2), (4, 3)] {
            let after = InboxKey { rank, id: expected[at] };
            let rest = approvals::inbox(conn, a.workspace, Some(after), 9, now()).await.unwrap();
            assert_eq!(rest.iter().map(|one| one.id).collect::<Vec<_>>(), expected[at + 1..]);
        }
        assert_eq!(approvals::inbox(conn, a.workspace, None, 9, later(1800)).await.unwrap(), []);
        decide(conn, &a, ids[2], by(a.user, false)).await;
        let past = approvals::past(conn, a.workspace, a.grant, "critical", ids[3]).await.unwrap();
        assert_eq!((past.approved, past.denied, past.expired), (0, 1, 0));
    }

    async fn what_nobody_decided_is_escalated_once(db: Db) {
        let a = begin_with_world(&db).await;
        let before = park(&db, &a, &approval(&a, "before")).await;
        assert_eq!(before.escalate_at, None);
        let mut tx = db.begin().await.unwrap();
        workspaces::set_escalate_after(&mut tx.conn(), a.workspace, Some(600)).await.unwrap();
        assert_eq!(workspaces::escalate_after(&mut tx.conn(), a.workspace).await.unwrap(), Some(600));
        tx.commit().await.unwrap();
        let waits = park(&db, &a, &approval(&a, "waits")).await;
        let decided = park(&db, &a, &approval(&a, "decided")).await;
        assert_eq!(waits.escalate_at, Some(kept(later(600))));
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        decide(conn, &a, decided.id, by(a.user, false)).await;
        assert_eq!(approvals::escalate_due(conn, later(599), 9).await.unwrap(), 0);
        assert_eq!(approvals::escalate_due(conn, later(600), 9).await.unwrap(), 1);
        assert_eq!(approvals::escalate_due(conn, later(700), 9).await.unwrap(), 0);
        let now = approvals::find(conn, a.workspace, waits.id).await.unwrap().unwrap();
        assert_eq!((now.status, now.escalated_at), (ApprovalStatus::Pending, Some(kept(later(600)))));
        assert_eq!(kinds(conn, &a, waits.id).await, [ApprovalEventKind::Asked, ApprovalEventKind::Escalated]);
        // What is over is not escalated any more.
        assert_eq!(approvals::escalate_due(conn, later(1800), 9).await.unwrap(), 0);
    }
}
