//! Policies, their versions, trials, and the button.

use serde_json::{Value, json};
use sluice_control::{
    Apply, CallsOf, ControlError, Effect, GrantForm, Page, PolicyForm, RestOf, TrialCall, TrialsOf,
    Undone,
};
use sluice_domain::{CallId, CallRecord, CallTiming, Code, Outcome, PolicyId};
use sluice_policy::Tally;
use sluice_store::calls;
use sluice_testkit::on_both;

use crate::common::{World, code};

const DENY: &str = r#"{"version":"1","default":"deny","tools":{"read_file":{}}}"#;
const ALLOW: &str =
    "{\"version\": \"1\",\n  \"default\": \"allow\", \"description\": \"kept as it is: 1.10 é\"}";

fn form(name: &str, document: &str) -> PolicyForm {
    PolicyForm { name: Some(name.to_owned()), document: document.to_owned(), note: String::new() }
}

fn edit(document: &str) -> PolicyForm {
    PolicyForm { name: None, document: document.to_owned(), note: "why".to_owned() }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

on_both! {
    async fn a_policy_keeps_its_text_and_its_versions(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let made = world.control.create_policy(&admin, server, form("strict", ALLOW)).await.expect("saves");
        assert_eq!((made.policy.version, made.policy.document.as_str()), (1, ALLOW));
        let id = made.policy.id;
        let second = world.control.save_policy(&admin, id, Some(1), edit(DENY)).await.expect("saves");
        assert_eq!((second.policy.version, second.changed), (2, true));
        let same = world.control.save_policy(&admin, id, Some(2), edit(DENY)).await.expect("nothing new");
        assert_eq!((same.policy.version, same.changed), (2, false));
        let back = world.control.roll_back(&admin, id, Some(2), 1).await.expect("rolls back");
        assert_eq!((back.policy.version, back.policy.document.as_str()), (3, ALLOW));
        assert_eq!(code(world.control.roll_back(&admin, id, None, 9).await), "unknown_version");
        let versions = world.control.policy_versions(&admin, id, Page::first(2)).await.expect("lists");
        let numbers: Vec<_> = versions.items.iter().map(|version| version.version).collect();
        assert_eq!((numbers, versions.next), (vec![3, 2], Some(2)));
        assert_eq!(versions.items[0].note, "Rolled back to version 1");
        let renamed = world.control.save_policy(&admin, id, Some(3), form("open", ALLOW)).await.expect("renames");
        assert_eq!((renamed.policy.name.as_str(), renamed.policy.version), ("open", 3));
    }

    async fn a_stale_save_says_what_stands(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let id = world.control.create_policy(&admin, server, form("p", DENY)).await.expect("saves").policy.id;
        world.control.save_policy(&admin, id, Some(1), edit(ALLOW)).await.expect("the first tab");
        let second = world.control.save_policy(&admin, id, Some(1), edit(DENY)).await.expect_err("the second");
        assert!(matches!(second, ControlError::Stale { current: 2 }), "{second:?}");
        assert_eq!(world.control.policy(&admin, id).await.expect("reads").document, ALLOW);
    }

    async fn every_fault_of_a_document_is_told_at_its_place(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let document = "{\"version\":\"1\",\n\"default\":\"dney\",\"tools\":{\"a\":{\"limit\":[]}}}";
        let refused = world.control.create_policy(&admin, server, form("", document)).await.expect_err("refused");
        let pointers: Vec<_> = refused.faults().iter().map(|fault| (fault.pointer.clone(), fault.line)).collect();
        let expected = [("/name", None), ("/document/default", Some(2)), ("/document/tools/a/limit", Some(2))];
        assert_eq!(pointers, expected.map(|(pointer, line)| (pointer.to_owned(), line)));
        for document in ["", "[]", "{", "null", &format!("{{\"a\":\"{}\"}}", "x".repeat(300_000))] {
            let refused = world.control.create_policy(&admin, server, form("p", document)).await;
            assert!(matches!(refused, Err(ControlError::Invalid(_))), "{refused:?}");
        }
        assert!(world.control.policies(&admin, Some(server), Page::first(9)).await.expect("lists").items.is_empty());
        let checked = world.control.check_document(&admin, server, &DENY.replace("read_file", "read_fiel")).await;
        assert!(checked.expect("checks").problems.iter().any(|problem| problem.suggestion.is_some()));
    }

    async fn a_policy_in_use_is_not_deleted(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let id = world.control.create_policy(&admin, server, form("p", DENY)).await.expect("saves").policy.id;
        assert_eq!(code(world.control.create_policy(&admin, server, form("P", DENY)).await), "name_taken");
        let grant = GrantForm { label: "g".to_owned(), policy: Some(id), ..GrantForm::default() };
        let grant = world.control.create_grant(&admin, server, grant).await.expect("makes").grant;
        assert_eq!(code(world.control.delete_policy(&admin, id, None).await), "in_use");
        world.control.revoke_grant(&admin, grant.id).await.expect("revokes");
        assert_eq!(code(world.control.delete_policy(&admin, id, Some(7)).await), "stale");
        world.control.delete_policy(&admin, id, Some(1)).await.expect("deletes");
        assert_eq!(code(world.control.policy(&admin, id).await), "not_found");
        let old = world.control.policy_version(&admin, id, 1).await.expect("the log still shows it");
        assert_eq!(old.document, DENY);
    }

    async fn the_button_makes_one_policy_however_often_it_is_pressed(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let apply = Apply::default();
        let preview = world.control.preview_recommended(&admin, server, "executePython", apply).await.expect("shows");
        assert_eq!((preview.policy, preview.before.as_ref(), preview.changed), (None, None, true));
        let press = || world.control.apply_recommended(&admin, server, "executePython", apply);
        let all = tokio::join!(press(), press(), press(), press());
        let all = [all.0, all.1, all.2, all.3].map(|applied| applied.expect("applies"));
        assert_eq!(all.iter().filter(|applied| applied.created).count(), 1);
        let policies = world.control.policies(&admin, Some(server), Page::first(9)).await.expect("lists").items;
        assert_eq!((policies.len(), policies[0].version), (1, 1));
        assert_eq!(policies[0].document, preview.after);
        let document = json(&policies[0].document);
        assert_eq!(document["default"], "deny");
        assert_eq!(document["tools"]["executePython"]["limits"][0]["counter"], "executepython_rate");

        // Another tool goes into the same policy; the rest on request.
        let read = world.control.apply_recommended(&admin, server, "read_file", apply).await.expect("applies");
        assert_eq!((read.policy.id, read.policy.version, read.created), (policies[0].id, 2, false));
        assert!(!read.preview.changes.is_empty());
        // Going back undoes a press; pressed again, it is as it was.
        let undone = world.control.roll_back(&admin, read.policy.id, Some(2), 1).await.expect("goes back");
        assert_eq!(undone.policy.document, preview.after);
        let again = world.control.apply_recommended(&admin, server, "read_file", apply).await.expect("applies");
        assert_eq!(again.policy.document, read.policy.document);
        let rest = Apply { rest: RestOf::Recommended, ..apply };
        let rest = world.control.apply_recommended(&admin, server, "read_file", rest).await.expect("applies");
        assert_eq!(json(&rest.policy.document)["hide"], json!(["delete_file"]));
        assert_eq!(code(world.control.apply_recommended(&admin, server, "no_such", apply).await), "not_found");
    }

    async fn a_press_is_taken_back_once_however_often_that_is_asked(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let press = async |tool: &'static str| {
            world.control.apply_recommended(&admin, server, tool, Apply::default()).await.expect("applies").policy
        };
        let first = press("executePython").await;
        let second = press("read_file").await;
        assert!(world.control.can_undo(&admin, &second).await.expect("looks"));
        assert_eq!(code(world.control.undo_recommended(&admin, first.id, 1).await), "not_the_last_press");
        let undo = || world.control.undo_recommended(&admin, second.id, 2);
        let all = tokio::join!(undo(), undo(), undo());
        let all = [all.0, all.1, all.2, undo().await].map(|undone| undone.expect("takes it back"));
        assert_eq!(all.iter().filter(|undone| matches!(undone, Undone::Back(_))).count(), 1, "{all:?}");
        assert!(all.iter().all(|undone| matches!(undone, Undone::Back(it) | Undone::Already(it) if it.version == 3)), "{all:?}");
        let policy = world.control.policy(&admin, first.id).await.expect("is there");
        assert_eq!((policy.version, &policy.document), (3, &first.document));
        assert!(!world.control.can_undo(&admin, &policy).await.expect("looks"), "what was undone is no press");
        // What a person saved since is not undone with it.
        let third = press("delete_file").await;
        let edited = world.control.save_policy(&admin, first.id, Some(4), edit(DENY)).await.expect("saves").policy;
        assert_eq!(code(world.control.undo_recommended(&admin, third.id, 4).await), "not_the_last_press");
        assert_eq!(world.control.policy(&admin, first.id).await.expect("is there"), edited);
    }

    async fn a_press_that_made_the_policy_is_taken_back_with_it(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let press = world.control.apply_recommended(&admin, server, "executePython", Apply::default());
        let made = press.await.expect("applies").policy;
        let undo = || world.control.undo_recommended(&admin, made.id, 1);
        let all = tokio::join!(undo(), undo());
        for undone in [all.0, all.1, undo().await] {
            assert_eq!(undone.expect("takes it back"), Undone::Deleted);
        }
        assert_eq!(code(world.control.undo_recommended(&admin, made.id, 2).await), "not_found");
        assert_eq!(code(world.control.undo_recommended(&admin, PolicyId::new(), 1).await), "not_found");
        assert_eq!(world.control.policies(&admin, Some(server), Page::first(9)).await.expect("lists").items, []);
        // One that a grant uses by now stays.
        let press = world.control.apply_recommended(&admin, server, "executePython", Apply::default());
        let made = press.await.expect("applies").policy;
        let grant = GrantForm { label: "bot".to_owned(), policy: Some(made.id), ..GrantForm::default() };
        world.control.create_grant(&admin, server, grant).await.expect("makes it");
        assert_eq!(code(world.control.undo_recommended(&admin, made.id, 1).await), "in_use");
    }

    async fn the_button_can_change_a_policy_that_is_named(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let other = world.connect(&admin, "other").await.server.id;
        let id = world.control.create_policy(&admin, server, form("mine", ALLOW)).await.expect("saves").policy.id;
        let apply = Apply { policy: Some(id), rest: RestOf::Recommended };
        let applied = world.control.apply_recommended(&admin, server, "executePython", apply).await.expect("applies");
        assert_eq!((applied.policy.id, applied.policy.version), (id, 2));
        assert!(applied.policy.document.contains("kept as it is: 1.10 é"));
        let foreign = world.control.apply_recommended(&admin, other, "executePython", apply).await;
        assert_eq!(code(foreign), "unknown_policy");
        // A custom policy by the button's name does not stand in its way.
        world.control.create_policy(&admin, server, form("Recommended rules", DENY)).await.expect("saves");
        let button = world.control.apply_recommended(&admin, server, "read_file", Apply::default()).await;
        assert_eq!(button.expect("applies").policy.name, "Recommended rules 2");
    }

    async fn a_document_is_tried_on_made_up_and_logged_calls(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let document = r#"{"version":"1","default":"deny","tools":{"read_file":{"require":[{"conditions":[{"path":"args.path","op":"starts_with","value":"/safe"}]}]}}}"#;
        let call = |tool: &str, arguments: &str| TrialCall {
            tool: tool.to_owned(),
            arguments: Some(arguments.to_owned()),
            ..TrialCall::default()
        };
        let calls = vec![
            call("read_file", r#"{"path":"/safe/a"}"#),
            call("read_file", r#"{"path":"/etc/passwd"}"#),
            call("delete_file", "{}"),
            call("nobody_knows", "{}"),
        ];
        let trials = world.control.simulate(&admin, server, document, TrialsOf::These(calls)).await.expect("tries");
        let codes: Vec<_> = trials.trials.iter().map(|trial| trial.decision.code).collect();
        assert_eq!(codes, [Code::Allowed, Code::RequireFailed, Code::DefaultDeny, Code::UnknownTool]);
        assert_eq!((trials.allowed, trials.refused), (1, 3));
        let bad = TrialsOf::These(vec![call("read_file", "[1]")]);
        let bad = world.control.simulate(&admin, server, document, bad).await.expect_err("refused");
        assert_eq!(bad.faults()[0].pointer, "/calls/0/arguments");

        let grant = GrantForm { label: "g".to_owned(), ..GrantForm::default() };
        let grant = world.control.create_grant(&admin, server, grant).await.expect("makes").grant;
        let logged = |tool: &str| CallRecord {
            id: CallId::new(),
            workspace: admin.workspace,
            server,
            grant: grant.id,
            grant_label: "g".to_owned(),
            at: world.clock.now(),
            method: "tools/call".to_owned(),
            tool: Some(tool.to_owned()),
            outcome: Outcome::Allowed,
            code: Code::Allowed,
            rule: String::new(),
            message: String::new(),
            policy: None,
            policy_version: None,
            observed: false,
            counter: None,
            retry_after_s: None,
            arguments: Some(r#"{"path":{"$type":"string"}}"#.to_owned()),
            trace: None,
            client_name: None,
            protocol_version: None,
            session: None,
            client_address: None,
            request_bytes: 0,
            response_bytes: 0,
            upstream_status: None,
            timing: CallTiming::default(),
        };
        let mut tx = world.db.begin().await.expect("begins");
        let records = [logged("read_file"), logged("delete_file")];
        calls::insert_batch(&mut tx.conn(), &records).await.expect("inserts");
        tx.commit().await.expect("commits");
        let log = TrialsOf::Log { filter: Box::default(), limit: 100 };
        let trials = world.control.simulate(&admin, server, document, log).await.expect("tries");
        assert_eq!((trials.trials.len(), trials.changed, trials.cannot_tell), (2, 1, 1));
        assert_eq!((trials.allowed, trials.refused, trials.parked), (0, 1, 0));
        let named = |tallies: &[Tally]| tallies.iter().map(|one| (one.name.clone(), one.calls)).collect::<Vec<_>>();
        assert_eq!(named(&trials.rules), [("(default deny)".to_owned(), 1)]);
        assert_eq!(named(&trials.grants), [("g".to_owned(), 1)]);
        let open = r#"{"version":"1","default":"allow"}"#;
        let of = || CallsOf::default();
        let compared = world.control.compare(&admin, server, (open, document), of(), 100).await.expect("compares");
        assert_eq!((compared.total, compared.stricter, compared.looser, compared.cannot_tell), (2, 1, 0, 1));
        assert_eq!((compared.before.allowed, compared.after.refused, compared.after.cannot_tell), (2, 1, 1));
        assert_eq!(named(&compared.rules), [("(default deny)".to_owned(), 1)]);
        assert_eq!((compared.changed[0].call, compared.changed[0].tool.as_str()), (records[1].id, "delete_file"));
        let back = world.control.compare(&admin, server, (document, open), of(), 100).await.expect("compares");
        assert_eq!((back.stricter, back.looser), (0, 1));
        let none = world.control.compare(&admin, server, (document, "{"), of(), 100).await.expect_err("refused");
        assert!(none.faults()[0].pointer.starts_with("/document"));
        let capped = r#"{"version":"1","default":"allow","tools":{"read_file":{"rate_limit":"0/minute"}}}"#;
        let log = TrialsOf::Log { filter: Box::default(), limit: 100 };
        let trials = world.control.simulate(&admin, server, capped, log).await.expect("tries");
        let codes: Vec<_> = trials.trials.iter().map(|trial| trial.decision.code).collect();
        assert_eq!(codes, [Code::Allowed, Code::RateLimited]);
        let filter = CallsOf { q: Some("DELETE_".to_owned()), ..CallsOf::default() };
        let found = world.control.calls(&admin, &filter, Page::first(5)).await.expect("lists").items;
        assert_eq!(found, [records[1].clone()]);
    }

    async fn what_each_policy_does_to_a_tool_is_told(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        world.control.create_policy(&admin, server, form("p", DENY)).await.expect("saves");
        let standings = world.control.standings(&admin, server, &["read_file", "delete_file"]).await.expect("tells");
        let effects: Vec<_> = standings.iter().map(|of_tool| of_tool[0].effect).collect();
        assert_eq!(effects, [Effect::Allowed, Effect::Denied]);
    }
}
