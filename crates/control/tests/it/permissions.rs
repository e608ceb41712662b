//! Another workspace's objects do not exist, and roles do what the table says.

use chrono::TimeDelta;
use sluice_control::{
    Admin, Apply, ApprovalsOf, CallsOf, GrantForm, GrantPatch, GrantsOf, Page, PolicyForm,
    PolicyManager, Repeat, ServerPatch, TrialsOf, Viewer,
};
use sluice_domain::{ApprovalId, CallId, Role};
use sluice_testkit::on_both;

use crate::common::{World, code};

const DENY: &str = r#"{"version":"1","default":"deny"}"#;

fn policy(name: &str) -> PolicyForm {
    PolicyForm { name: Some(name.to_owned()), document: DENY.to_owned(), note: String::new() }
}

on_both! {
    async fn another_workspaces_objects_do_not_exist(world: World) {
        let ann = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&ann).await;
        let id = world.control.create_policy(&ann, server, policy("p")).await.expect("saves").policy.id;
        let form = GrantForm { label: "g".to_owned(), policy: Some(id), ..GrantForm::default() };
        let grant = world.control.create_grant(&ann, server, form.clone()).await.expect("makes").grant.id;
        let eve = world.workspace("Evil", "eve@example.test").await;
        let c = &world.control;
        let of = GrantsOf { server: Some(server), ..GrantsOf::default() };
        let made_up = TrialsOf::These(Vec::new());
        let answers = [
            code(c.enter::<Viewer>(&eve.actor, "acme").await),
            code(c.server(&eve, server).await),
            code(c.edit_server(&eve, server, None, ServerPatch::default()).await),
            code(c.delete_server(&eve, server, None).await),
            code(c.refresh(&eve, server).await),
            code(c.tools(&eve, server).await),
            code(c.tool(&eve, server, "read_file").await),
            code(c.accept_tool(&eve, server, "read_file", "").await),
            code(c.policies(&eve, Some(server), Page::first(9)).await),
            code(c.create_policy(&eve, server, policy("q")).await),
            code(c.policy(&eve, id).await),
            code(c.save_policy(&eve, id, None, policy("q")).await),
            code(c.roll_back(&eve, id, None, 1).await),
            code(c.policy_versions(&eve, id, Page::first(9)).await),
            code(c.policy_version(&eve, id, 1).await),
            code(c.delete_policy(&eve, id, None).await),
            code(c.check_document(&eve, server, DENY).await),
            code(c.simulate(&eve, server, DENY, made_up).await),
            code(c.apply_recommended(&eve, server, "read_file", Apply::default()).await),
            code(c.preview_recommended(&eve, server, "read_file", Apply::default()).await),
            code(c.grants(&eve, of, Page::first(9)).await),
            code(c.create_grant(&eve, server, form).await),
            code(c.grant(&eve, grant).await),
            code(c.edit_grant(&eve, grant, None, GrantPatch::default()).await),
            code(c.rotate_grant(&eve, grant, TimeDelta::zero()).await),
            code(c.revoke_grant(&eve, grant).await),
            code(c.call(&eve, CallId::new()).await),
            code(c.approval(&eve, ApprovalId::new()).await),
            code(c.set_role(&eve, ann.actor.user, Role::Viewer).await),
            code(c.remove_member(&eve, ann.actor.user).await),
        ];
        for (index, answer) in answers.iter().enumerate() {
            assert_eq!(answer, "not_found", "answer {index}");
        }
        // A policy of one's own server cannot be attached to a foreign id, and filters stay inside.
        let own = world.connect(&eve, "mine").await.server.id;
        let stolen = GrantForm { label: "g".to_owned(), policy: Some(id), ..GrantForm::default() };
        assert_eq!(code(c.create_grant(&eve, own, stolen).await), "unknown_policy");
        let all = GrantsOf { include_revoked: true, ..GrantsOf::default() };
        assert!(c.grants(&eve, all, Page::first(9)).await.expect("lists").items.is_empty());
        let any = CallsOf { q: Some("%".to_owned()), ..CallsOf::default() };
        assert!(c.calls(&eve, &any, Page::first(9)).await.expect("lists").items.is_empty());
        assert!(c.approvals(&eve, &ApprovalsOf::default(), Page::first(9)).await.expect("lists").items.is_empty());
        assert!(works(&ann, &world).await, "nothing was changed");
    }

    async fn roles_open_what_the_table_says(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        world.manager(&admin).await;
        world.viewer(&admin).await;
        for (email, manager, is_admin) in [
            ("ann@example.test", true, true),
            ("manager@example.test", true, false),
            ("viewer@example.test", false, false),
        ] {
            let login = world.control.log_in(email, crate::common::secret(crate::common::PASSWORD), &crate::common::origin()).await;
            let actor = world.actor(&crate::common::complete(login.expect("logs in"))).await;
            assert!(world.control.enter::<Viewer>(&actor, "acme").await.is_ok(), "{email}");
            assert_eq!(world.control.enter::<PolicyManager>(&actor, "acme").await.is_ok(), manager, "{email}");
            assert_eq!(world.control.enter::<Admin>(&actor, "acme").await.is_ok(), is_admin, "{email}");
        }
        // A role that changed counts at once.
        let members = world.control.members(&admin, Page::first(9)).await.expect("lists").items;
        let viewer = members.iter().find(|member| member.role == Role::Viewer).expect("is there");
        world.control.set_role(&admin, viewer.user_id, Role::PolicyManager).await.expect("raises");
        let login = world.control.log_in(&viewer.email, crate::common::secret(crate::common::PASSWORD), &crate::common::origin()).await;
        let actor = world.actor(&crate::common::complete(login.expect("logs in"))).await;
        assert!(world.control.enter::<PolicyManager>(&actor, "acme").await.is_ok());
    }

    async fn a_repeated_request_gets_the_first_answer(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let c = &world.control;
        let (actor, place) = (&admin.actor, Some(admin.workspace));
        let request: &[&[u8]] = &[b"POST", b"/x", b"{}"];
        let headers = vec![("location".to_owned(), "/x/1".to_owned())];
        assert_eq!(c.idempotency_begin(actor, place, "k", request).await.expect("new"), Repeat::First);
        assert_eq!(code(c.idempotency_begin(actor, place, "k", request).await), "idempotency_in_progress");
        c.idempotency_end(actor, place, "k", Some((201, &headers, b"{\"token\":\"slg_x\"}"))).await.expect("kept");
        let again = c.idempotency_begin(actor, place, "k", request).await.expect("known");
        assert_eq!(again, Repeat::Answered { status: 201, headers: headers.clone(), body: b"{\"token\":\"slg_x\"}".to_vec() });
        let other: &[&[u8]] = &[b"POST", b"/x", b"{\"a\":1}"];
        assert_eq!(code(c.idempotency_begin(actor, place, "k", other).await), "idempotency_mismatch");
        c.idempotency_begin(actor, place, "l", request).await.expect("new");
        c.idempotency_end(actor, place, "l", None).await.expect("given up");
        assert_eq!(c.idempotency_begin(actor, place, "l", other).await.expect("new again"), Repeat::First);
        assert_eq!(code(c.idempotency_begin(actor, place, "", request).await), "bad_idempotency_key");
        world.clock.advance(TimeDelta::hours(25));
        c.sweep().await.expect("sweeps");
        assert_eq!(c.idempotency_begin(actor, place, "k", other).await.expect("forgotten"), Repeat::First);
    }
}

/// Ann's server, policy and grant are as she made them.
async fn works(ann: &Admin, world: &World) -> bool {
    let c = &world.control;
    let servers = c.servers(ann, Page::first(9)).await.expect("lists").items;
    let policies = c.policies(ann, None, Page::first(9)).await.expect("lists").items;
    let grants = c.grants(ann, GrantsOf::default(), Page::first(9)).await.expect("lists").items;
    (servers.len(), policies.len(), grants.len()) == (1, 1, 1)
        && servers[0].revision == 1
        && policies[0].version == 1
        && grants[0].revision == 1
}
