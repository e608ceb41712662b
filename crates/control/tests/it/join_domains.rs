//! Joining by e-mail domain: who may open a workspace to a domain, who may then come in, and as what.

use chrono::TimeDelta;
use secrecy::ExposeSecret as _;
use sluice_control::configuration::{Files, MAIN, Options, Secrets};
use sluice_control::{Admin, EventFilter, MAX_JOIN_DOMAINS, Page, Signup, Viewer};
use sluice_domain::{JoinDomainId, Role, UserId, WorkspaceId};
use sluice_store::{Db, users};
use sluice_testkit::on_both;

use crate::common::{World, code};
use crate::operator::operator;
use crate::providers::{entered, link, sign_in, vouched};

const ANN: &str = "ann@acme.example";

async fn confirm(world: &World, user: UserId) {
    let mut tx = world.db.begin().await.expect("begins");
    users::set_verified(&mut tx.conn(), user, world.control.now()).await.expect("notes");
    tx.commit().await.expect("commits");
}

/// A workspace whose admin's address is confirmed.
async fn acme(world: &World) -> Admin {
    let admin = world.workspace("Acme", ANN).await;
    confirm(world, admin.actor.user).await;
    admin
}

async fn actions(world: &World, admin: &Admin, action: &str) -> Vec<serde_json::Value> {
    let filter = EventFilter { action: Some(action.to_owned()), ..EventFilter::default() };
    let found = world.control.admin_events(admin, &filter, Page::first(9)).await.expect("lists");
    found.items.into_iter().filter_map(|event| event.after.or(event.before)).collect()
}

on_both! {
    async fn people_of_a_domain_join_once_their_address_is_confirmed(world: World) {
        let admin = acme(&world).await;
        let bob = world.person("Bob@ACME.example").await;
        let eve = world.person("eve@sub.acme.example").await;
        confirm(&world, eve.user).await;
        let none = world.control.join_by_domain(&bob, admin.workspace).await;
        assert_eq!(code(none), "not_found");
        world.control.add_join_domain(&admin, " ACME.example ", Role::Viewer).await.expect("adds");
        // An address that anybody may have typed opens nothing, nor does one of another domain.
        assert_eq!(world.control.joinable(&bob).await.expect("lists"), []);
        assert_eq!(code(world.control.join_by_domain(&bob, admin.workspace).await), "not_found");
        assert_eq!(world.control.joinable(&eve).await.expect("lists"), []);
        assert_eq!(code(world.control.join_by_domain(&eve, admin.workspace).await), "not_found");
        assert_eq!(code(world.control.join_by_domain(&eve, WorkspaceId::new()).await), "not_found");
        confirm(&world, bob.user).await;
        let open = world.control.joinable(&bob).await.expect("lists");
        assert_eq!((open.len(), open[0].name.as_str(), open[0].role), (1, "Acme", Role::Viewer));
        assert_eq!(world.control.join_by_domain(&bob, admin.workspace).await.expect("joins"), "acme");
        let access: Viewer = world.control.enter(&bob, "acme").await.expect("enters");
        assert_eq!(access.role, Role::Viewer);
        assert_eq!(actions(&world, &admin, "member.join").await, [serde_json::json!({"role": "viewer", "domain": "acme.example"})]);
        // Once in, there is nothing to join; a role that was given since stays.
        assert_eq!(world.control.joinable(&bob).await.expect("lists"), []);
        world.control.set_role(&admin, bob.user, Role::Admin).await.expect("promotes");
        assert_eq!(code(world.control.join_by_domain(&bob, admin.workspace).await), "not_found");
        assert_eq!(world.control.enter::<Viewer>(&bob, "acme").await.expect("enters").role, Role::Admin);
    }

    async fn a_domain_is_taken_from_an_admin_whose_confirmed_address_is_of_it(world: World) {
        let admin = world.workspace("Acme", ANN).await;
        let add = async |domain: &str, role| world.control.add_join_domain(&admin, domain, role).await;
        assert_eq!(code(add("acme.example", Role::Viewer).await), "unconfirmed_address");
        confirm(&world, admin.actor.user).await;
        for (domain, role, refused) in [
            ("other.example", Role::Viewer, "not_your_domain"),
            ("sub.acme.example", Role::Viewer, "not_your_domain"),
            ("example", Role::Viewer, "bad_domain"),
            ("gmail.com", Role::Viewer, "public_domain"),
            ("acme.example", Role::Admin, "role_too_high"),
        ] {
            assert_eq!(code(add(domain, role).await), refused, "{domain}");
        }
        let made = add("acme.example", Role::PolicyManager).await.expect("adds");
        assert_eq!(code(add("Acme.example", Role::Viewer).await), "domain_taken");
        let bob = world.person("bob@acme.example").await;
        confirm(&world, bob.user).await;
        world.control.join_by_domain(&bob, admin.workspace).await.expect("joins");
        assert_eq!(world.control.enter::<Viewer>(&bob, "acme").await.expect("enters").role, Role::PolicyManager);
        // Taken away it lets nobody in; who came stays.
        world.control.remove_join_domain(&admin, made.id).await.expect("removes");
        assert_eq!(code(world.control.remove_join_domain(&admin, made.id).await), "not_found");
        let cy = world.person("cy@acme.example").await;
        confirm(&world, cy.user).await;
        assert_eq!(code(world.control.join_by_domain(&cy, admin.workspace).await), "not_found");
        world.control.enter::<Viewer>(&bob, "acme").await.expect("stays");
        let what = serde_json::json!({"domain": "acme.example", "role": "policy_manager"});
        assert_eq!(actions(&world, &admin, "join_domain.add").await, std::slice::from_ref(&what));
        assert_eq!(actions(&world, &admin, "join_domain.remove").await, [what]);
    }

    async fn another_workspaces_domain_is_out_of_reach(world: World) {
        let admin = acme(&world).await;
        let made = world.control.add_join_domain(&admin, "acme.example", Role::Viewer).await.expect("adds");
        let other = world.workspace("Other", "olga@acme.example").await;
        assert_eq!(code(world.control.remove_join_domain(&other, made.id).await), "not_found");
        assert_eq!(code(world.control.remove_join_domain(&admin, JoinDomainId::new()).await), "not_found");
        assert_eq!(world.control.join_domains(&other).await.expect("lists"), []);
        // A company may have several workspaces.
        confirm(&world, other.actor.user).await;
        world.control.add_join_domain(&other, "acme.example", Role::Viewer).await.expect("adds");
        let bob = world.person("bob@acme.example").await;
        confirm(&world, bob.user).await;
        let names: Vec<_> = world.control.joinable(&bob).await.expect("lists").into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["Acme", "Other"]);
        // Neither a suspended one nor a deleted one.
        operator(&world).suspend("acme", true).await.expect("suspends");
        world.control.delete_workspace(&other, "other").await.expect("deletes");
        for gone in [admin.workspace, other.workspace] {
            assert_eq!(code(world.control.join_by_domain(&bob, gone).await), "not_found");
        }
        assert_eq!(world.control.joinable(&bob).await.expect("lists"), []);
        // Erased, its domains are gone with it.
        world.clock.advance(TimeDelta::days(15));
        assert_eq!(world.control.erase_closed_workspaces().await.expect("erases"), 1);
        let mut tx = world.db.read().await.expect("reads");
        let left = sluice_store::join_domains::list(&mut tx.conn(), other.workspace).await.expect("lists");
        assert_eq!(left, []);
    }

    async fn there_are_so_many_domains_and_a_token_needs_the_same_proof(world: World) {
        let admin = acme(&world).await;
        let api = operator(&world).api_token(ANN, "acme", Role::Admin, false).await.expect("makes");
        let token = world.control.who_by_api_token(api.token.expose_secret(), "").await.expect("answers").expect("known");
        let by_token: Admin = world.control.enter(&token, "acme").await.expect("enters");
        assert_eq!(code(world.control.add_join_domain(&by_token, "other.example", Role::Viewer).await), "not_your_domain");
        world.control.add_join_domain(&by_token, "acme.example", Role::Viewer).await.expect("its maker's domain");
        assert_eq!(code(world.control.join_by_domain(&token, admin.workspace).await), "login_needed");
        let hands = operator(&world).enter("acme").await.expect("enters");
        for n in 1..MAX_JOIN_DOMAINS {
            world.control.add_join_domain(&hands, &format!("d{n}.example"), Role::Viewer).await.expect("the operator proves nothing");
        }
        assert_eq!(code(world.control.add_join_domain(&hands, "more.example", Role::Viewer).await), "too_many");
    }

    async fn who_would_be_shut_out_by_the_provider_does_not_join(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let admin = world.workspace("Acme", "ann@example.test").await;
        confirm(&world, admin.actor.user).await;
        world.control.add_join_domain(&admin, "example.test", Role::Viewer).await.expect("adds");
        link(&world, &issuer, &admin.actor).await.expect("links");
        let login = entered(sign_in(&world, &issuer).await);
        let actor = world.actor(&login).await;
        let admin: Admin = world.control.enter(&actor, "acme").await.expect("enters");
        world.control.require_provider(&admin, Some("acme")).await.expect("asks for it");
        let bob = world.person("bob@example.test").await;
        confirm(&world, bob.user).await;
        assert_eq!(code(world.control.join_by_domain(&bob, admin.workspace).await), "provider_required");
    }

    async fn files_say_who_may_join(world: World) {
        let admin = acme(&world).await;
        let file = |domains: &str| {
            Files::from([(MAIN.to_owned(), format!("sluice: 1\nworkspace:\n  name: Acme\n{domains}"))])
        };
        let options = Options { remember: true, ..Options::default() };
        let apply = async |files: &Files| {
            let plan = world.control.plan_configuration(&admin, files, &Secrets::default(), &options).await?;
            let fields: Vec<_> = plan.changes().flat_map(|one| one.fields.iter().map(|field| field.field.clone())).collect();
            world.control.apply_configuration(&admin, plan, &mut |_| Ok(())).await.map_err(|halted| halted.error)?;
            Ok::<_, sluice_control::ControlError>(fields)
        };
        let kept = async || {
            let all = world.control.join_domains(&admin).await.expect("lists");
            all.into_iter().map(|one| (one.domain, one.role)).collect::<Vec<_>>()
        };
        let acme_domain = "acme.example".to_owned();
        let with = file("  join_domains:\n    - domain: ACME.example\n");
        assert_eq!(apply(&with).await.expect("applies"), ["join_domains"]);
        assert_eq!(kept().await, [(acme_domain.clone(), Role::Viewer)]);
        assert!(apply(&with).await.expect("nothing to do").is_empty());
        let managers = file("  join_domains:\n    - domain: acme.example\n      role: policy_manager\n");
        apply(&managers).await.expect("applies");
        assert_eq!(kept().await, [(acme_domain.clone(), Role::PolicyManager)]);
        // What is written down is applied again unchanged; what says nothing of domains leaves them.
        let written = world.control.export_configuration(&admin).await.expect("exports");
        assert!(written[MAIN].contains("  join_domains:\n    - domain: acme.example\n      role: policy_manager\n"), "{}", written[MAIN]);
        assert!(apply(&written).await.expect("nothing to do").is_empty());
        assert!(apply(&file("")).await.expect("nothing to do").is_empty());
        assert_eq!(kept().await.len(), 1);
        apply(&managers).await.expect("takes them over again");
        // What cannot be is told with its place before anything is written.
        for (domains, refused) in [
            ("  join_domains:\n    - domain: gmail.com\n", "public_domain"),
            ("  join_domains:\n    - domain: other.example\n", "not_your_domain"),
            ("  join_domains:\n    - domain: acme.example\n      role: admin\n", "role_too_high"),
            ("  join_domains:\n    - domain: acme.example\n      role: boss\n", "unknown_role"),
            ("  join_domains:\n    - domain: acme.example\n    - domain: Acme.example\n", "duplicate"),
        ] {
            let error = apply(&file(domains)).await.expect_err(domains);
            let fault = &error.faults()[0];
            assert_eq!((fault.code.as_str(), fault.line.is_some()), (refused, true), "{domains}");
        }
        // Changed by hand it is not overwritten in silence.
        let by_hand = world.control.join_domains(&admin).await.expect("lists")[0].id;
        world.control.remove_join_domain(&admin, by_hand).await.expect("removes");
        assert_eq!(code(apply(&managers).await), "drift");
        assert_eq!(kept().await, []);
    }
}
