//! Parked calls: who may decide, once, and what is given back.

use chrono::TimeDelta;
use serde_json::json;
use sluice_control::{
    Admin, ApprovalsOf, Choice, EventFilter, ExceptionState, Page, PolicyForm, PolicyManager,
};
use sluice_domain::{Amount, ApprovalEventKind, ApprovalId, ApprovalStatus, CallId, Role};
use sluice_store::approvals::{self, Taken};
use sluice_testkit::on_both;

use crate::common::{World, code};
use crate::parking::{Call, DOCUMENT, Parking, charged, park, parking};

fn allowing(allow: TimeDelta) -> Choice {
    Choice { allow: Some(allow), ..Choice::approve("") }
}

/// What the proxy does with an approved call, to its end.
async fn run(world: &World, admin: &Admin, id: ApprovalId) {
    let (mut tx, now) = (world.db.begin().await.expect("begins"), world.clock.now());
    let conn = &mut tx.conn();
    let call = CallId::new();
    let taken = approvals::take_for_run(conn, admin.workspace, id, call, "r", now).await;
    assert!(matches!(taken.expect("takes"), Some(Taken::Yours(_))));
    approvals::finish(conn, admin.workspace, id, call, now).await.expect("finishes");
    tx.commit().await.expect("commits");
}

async fn states(world: &World, admin: &Admin, all: bool) -> Vec<ExceptionState> {
    let found = world.control.exceptions(admin, None, all, Page::first(9)).await.expect("lists");
    found.items.into_iter().map(|one| one.state).collect()
}

async fn edit_policy(world: &World, manager: &PolicyManager, at: &Parking, document: &str) {
    let form = PolicyForm { name: None, document: document.to_owned(), note: String::new() };
    world.control.save_policy(manager, at.policy, None, form).await.expect("saves");
}

on_both! {
    async fn one_decision_wins_and_the_other_learns_who(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let viewer = world.viewer(&admin).await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        let seen = world.control.approval(&viewer, id).await.expect("viewers read");
        assert!(!seen.may_decide);
        let arguments = seen.arguments.expect("are shown");
        assert_eq!(arguments, serde_json::json!({"path": "/x", "api_key": "[redacted]"}));
        let (approve, deny) = (Choice::approve("fine"), Choice::deny("no"));
        let (yes, no) = tokio::join!(
            world.control.decide(&admin, id, &approve),
            world.control.decide(&manager, id, &deny),
        );
        let (won, lost) = if yes.is_ok() { (yes, no) } else { (no, yes) };
        let won = won.expect("one wins").approval;
        let lost = lost.expect_err("the other is too late");
        assert_eq!(lost.code(), "already_decided");
        let who = if won.status == ApprovalStatus::Approved { "ann@" } else { "manager@" };
        assert!(lost.to_string().starts_with(who), "{lost}");
        assert_eq!(world.control.decisions(&viewer, id).await.expect("lists").len(), 1);
        assert_eq!(code(world.control.decide(&admin, ApprovalId::new(), &Choice::approve("")).await), "not_found");
    }

    async fn a_refused_or_expired_call_gives_its_charge_back(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        let refused = park(&world, &admin, &at, Call::default()).await;
        assert_eq!(charged(&world, &admin, &at).await, Amount::ONE);
        let decided = world.control.decide(&admin, refused, &Choice::deny("not today")).await.expect("refuses");
        assert_eq!(decided.approval.status, ApprovalStatus::Denied);
        assert_eq!(charged(&world, &admin, &at).await, Amount::ZERO);
        let late = park(&world, &admin, &at, Call { digest: "e", ..Call::default() }).await;
        assert_eq!(world.control.pending_approvals(&admin).await.expect("counts"), 1);
        world.clock.advance(TimeDelta::minutes(31));
        let pending = ApprovalsOf { status: Some(ApprovalStatus::Pending), ..ApprovalsOf::default() };
        let pending = world.control.approvals(&admin, &pending, Page::first(9)).await.expect("lists");
        assert!(pending.items.is_empty(), "its time is over");
        assert_eq!(code(world.control.decide(&admin, late, &Choice::approve("")).await), "already_decided");
        assert_eq!(world.control.expire_approvals().await.expect("sweeps"), 1);
        assert_eq!(charged(&world, &admin, &at).await, Amount::ZERO);
        let shown = world.control.approval(&admin, late).await.expect("reads");
        assert_eq!(shown.status, ApprovalStatus::Expired);
        world.clock.advance(TimeDelta::days(8));
        world.control.sweep().await.expect("sweeps");
        assert_eq!(world.control.approval(&admin, late).await.expect("reads").arguments, None);
    }

    async fn only_the_named_people_decide(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let at = parking(&world, &admin).await;
        let own = park(&world, &admin, &at, Call { self_allowed: false, ..Call::default() }).await;
        assert!(!world.control.approval(&admin, own).await.expect("reads").may_decide);
        assert!(world.control.approval(&manager, own).await.expect("reads").may_decide);
        let listed = world.control.approvals(&admin, &ApprovalsOf::default(), Page::first(9)).await;
        assert!(listed.expect("lists").items.iter().all(|one| !one.may_decide));
        assert_eq!(code(world.control.decide(&admin, own, &Choice::approve("")).await), "own_grant");
        world.control.decide(&manager, own, &Choice::deny("")).await.expect("somebody else may");
        let admins = ["role:admin".to_owned()];
        let id = park(&world, &admin, &at, Call { digest: "a", approvers: &admins, ..Call::default() }).await;
        assert_eq!(code(world.control.decide(&manager, id, &Choice::approve("")).await), "not_an_approver");
        world.control.decide(&admin, id, &Choice::deny("")).await.expect("an admin may");
        let named = ["member:Manager@example.test".to_owned()];
        let id = park(&world, &admin, &at, Call { digest: "b", approvers: &named, ..Call::default() }).await;
        assert_eq!(code(world.control.decide(&admin, id, &Choice::approve("")).await), "not_an_approver");
        world.control.decide(&manager, id, &Choice::approve("")).await.expect("the named one may");
    }

    async fn two_people_when_two_are_asked_for(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let second: Admin = world.member(&admin, "bob@example.test", Role::Admin).await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call { quorum: 2, ..Call::default() }).await;
        let first = world.control.decide(&admin, id, &Choice::approve("")).await.expect("counts");
        assert_eq!((first.missing, first.approval.status), (1, ApprovalStatus::Pending));
        assert_eq!(code(world.control.decide(&admin, id, &Choice::approve("")).await), "already_yours");
        let done = world.control.decide(&second, id, &Choice::approve("")).await.expect("counts");
        assert_eq!((done.missing, done.approval.status), (0, ApprovalStatus::Approved));
        assert_eq!(charged(&world, &admin, &at).await, Amount::ONE, "kept until its release");
    }

    async fn the_same_call_may_pass_for_an_hour_until_the_rules_change_or_it_is_taken_back(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        for (allow, fault) in [(TimeDelta::seconds(59), "out_of_range"), (TimeDelta::hours(25), "out_of_range")] {
            assert_eq!(code(world.control.decide(&admin, id, &allowing(allow)).await), fault);
        }
        let both = Choice { allow: Some(TimeDelta::hours(1)), ..Choice::deny("") };
        assert_eq!(code(world.control.decide(&admin, id, &both).await), "not_with_deny");
        let decided = world.control.decide(&admin, id, &allowing(TimeDelta::hours(1))).await.expect("approves");
        assert_eq!(decided.excepted_until, Some(world.clock.now() + TimeDelta::hours(1)));
        let listed = world.control.exceptions(&admin, Some(at.grant), false, Page::first(9)).await.expect("lists");
        let [exception] = &listed.items[..] else { panic!("{listed:?}") };
        assert_eq!((exception.state, exception.tool.as_str(), exception.approval, exception.created_by.as_str()), (ExceptionState::InForce, "delete_file", id, "ann@example.test"));
        // An edit elsewhere leaves it; an edit of the tool's rules ends it, and is shown to.
        let elsewhere = DOCUMENT.replace("\"tools\":{", "\"tools\":{\"read_file\":{},");
        edit_policy(&world, &admin, &at, &elsewhere).await;
        assert_eq!(states(&world, &admin, false).await, [ExceptionState::InForce]);
        let here = DOCUMENT.replace("\"action\":\"require_approval\"", "\"approve_if\":[{\"conditions\":[{\"path\":\"args.path\",\"op\":\"exists\"}]}]");
        edit_policy(&world, &admin, &at, &here).await;
        assert_eq!(states(&world, &admin, false).await, [ExceptionState::RulesChanged]);
        edit_policy(&world, &admin, &at, DOCUMENT).await;
        world.control.revoke_exception(&admin, exception.id).await.expect("takes back");
        assert_eq!(code(world.control.revoke_exception(&admin, exception.id).await), "exception_over");
        assert_eq!(states(&world, &admin, false).await, []);
        assert_eq!(states(&world, &admin, true).await, [ExceptionState::Revoked]);
        let events = world.control.admin_events(&admin, &EventFilter::default(), Page::first(99)).await.expect("reads");
        let actions: Vec<&str> = events.items.iter().map(|event| event.action.as_str()).collect();
        assert!(actions.contains(&"approval_exception.revoke"), "{actions:?}");
        let approved = events.items.iter().find(|event| event.action == "approval.approve").expect("is recorded");
        assert!(approved.after.as_ref().is_some_and(|after| after["excepted_until"].is_string()), "{approved:?}");
    }

    async fn an_exception_ends_with_its_time_its_grant_and_its_tool(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        world.control.decide(&admin, id, &allowing(TimeDelta::hours(1))).await.expect("approves");
        world.upstream.tools(vec![sluice_testkit::mcp_server::tool("delete_file", "Deletes other things now")]);
        world.control.refresh(&admin, at.server).await.expect("reads again");
        let seen = world.control.tool(&admin, at.server, "delete_file").await.expect("reads").hash;
        world.control.accept_tool(&admin, at.server, "delete_file", &seen).await.expect("reviews it");
        assert_eq!(states(&world, &admin, false).await, [ExceptionState::ToolChanged]);
        world.control.revoke_grant(&admin, at.grant).await.expect("revokes");
        assert_eq!(states(&world, &admin, false).await, [ExceptionState::GrantRevoked]);
        world.clock.advance(TimeDelta::hours(1));
        assert_eq!(states(&world, &admin, true).await, [ExceptionState::Expired]);
    }

    async fn where_two_must_approve_both_must_want_the_exception(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let second: Admin = world.member(&admin, "bob@example.test", Role::Admin).await;
        let at = parking(&world, &admin).await;
        let hour = allowing(TimeDelta::hours(1));
        let id = park(&world, &admin, &at, Call { quorum: 2, ..Call::default() }).await;
        world.control.decide(&admin, id, &hour).await.expect("counts");
        let done = world.control.decide(&second, id, &Choice::approve("")).await.expect("counts");
        assert_eq!((done.missing, done.excepted_until), (0, None), "one of them did not");
        let id = park(&world, &admin, &at, Call { digest: "e", quorum: 2, ..Call::default() }).await;
        world.control.decide(&admin, id, &hour).await.expect("counts");
        let shorter = allowing(TimeDelta::minutes(10));
        let done = world.control.decide(&second, id, &shorter).await.expect("counts");
        assert_eq!(done.excepted_until, Some(world.clock.now() + TimeDelta::minutes(10)), "the shorter holds");
    }

    async fn all_that_happens_to_a_call_is_in_its_history_and_in_the_audit_log(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let viewer = world.viewer(&admin).await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        world.control.approval_shown(&viewer, id).await.expect("notes");
        world.control.approval_shown(&viewer, id).await.expect("notes");
        world.control.decide(&admin, id, &Choice::approve("looked at it")).await.expect("approves");
        run(&world, &admin, id).await;
        let other = park(&world, &admin, &at, Call { digest: "e", ..Call::default() }).await;
        world.clock.advance(TimeDelta::minutes(31));
        world.control.expire_approvals().await.expect("sweeps");
        assert_eq!(world.control.tell_news().await.expect("tells"), 6);
        assert_eq!(world.control.tell_news().await.expect("tells"), 0, "once");
        let history = world.control.approval_history(&viewer, id).await.expect("reads");
        let kinds: Vec<_> = history.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [ApprovalEventKind::Asked, ApprovalEventKind::Shown, ApprovalEventKind::Approved, ApprovalEventKind::Released, ApprovalEventKind::Ran]);
        assert_eq!((history[1].who.as_str(), history[2].detail["note"].as_str()), ("viewer@example.test", Some("looked at it")));
        let events = world.control.admin_events(&admin, &EventFilter { object_kind: Some("approval".to_owned()), ..EventFilter::default() }, Page::first(99)).await.expect("reads");
        let mut of: Vec<(&str, &str)> = events.items.iter().filter(|e| e.object_id == id.to_string()).map(|e| (e.action.as_str(), e.actor_name.as_str())).collect();
        of.sort_unstable();
        assert_eq!(of, [("approval.approve", "ann@example.test"), ("approval.ask", "sluice"), ("approval.release", "sluice"), ("approval.result", "sluice"), ("approval.show", "viewer@example.test")]);
        let approved = events.items.iter().find(|e| e.action == "approval.approve").expect("is there");
        assert_eq!(approved.after.as_ref().map(|after| &after["note"]), Some(&json!("looked at it")));
        assert!(events.items.iter().any(|e| e.action == "approval.expire" && e.object_id == other.to_string()));
    }

    async fn secrets_are_shown_to_deciders_and_that_is_noted(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let at = parking(&world, &admin).await;
        let admins = ["role:admin".to_owned()];
        let id = park(&world, &admin, &at, Call { approvers: &admins, ..Call::default() }).await;
        assert_eq!(code(world.control.reveal(&manager, id).await), "not_an_approver");
        let shown = world.control.reveal(&admin, id).await.expect("shows");
        assert_eq!(shown, json!({"path": "/x", "api_key": "AAAA"}));
        let history = world.control.approval_history(&admin, id).await.expect("reads");
        assert!(history.iter().any(|event| event.kind == ApprovalEventKind::Revealed && event.who == "ann@example.test"));
        let events = world.control.admin_events(&admin, &EventFilter { action: Some("approval.reveal".to_owned()), ..EventFilter::default() }, Page::first(9)).await.expect("reads");
        assert_eq!(events.items.len(), 1);
        let text = format!("{events:?}");
        assert!(!text.contains("AAAA"), "the log says that, not what");
    }

    async fn the_inbox_goes_on_where_a_page_ended(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        // One charge a grant is what the demand allows, so the counter is given back each time.
        let mut ids = Vec::new();
        for digest in ["1", "2", "3"] {
            let id = park(&world, &admin, &at, Call { digest, ..Call::default() }).await;
            let reserved = world.control.approval(&admin, id).await.expect("reads");
            assert_eq!(reserved.status, ApprovalStatus::Pending);
            crate::parking::uncharge(&world, &admin, id).await;
            ids.push(id);
        }
        let first = world.control.inbox(&admin, Page::first(2)).await.expect("lists");
        assert_eq!(first.items.iter().map(|one| one.id).collect::<Vec<_>>(), ids[..2]);
        let rest = world.control.inbox(&admin, Page { after: first.next, limit: 2 }).await.expect("lists");
        assert_eq!(rest.items.iter().map(|one| one.id).collect::<Vec<_>>(), ids[2..]);
        assert_eq!(charged(&world, &admin, &at).await, Amount::ZERO);
    }
}
