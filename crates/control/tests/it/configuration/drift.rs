//! What somebody changed by hand, and what no file names any more.

use sluice_control::configuration::{Action, Drift, MAIN, Options};
use sluice_control::{GrantForm, GrantPatch, PolicyForm, ServerPatch, SettingsPatch};
use sluice_domain::OnDrift;
use sluice_testkit::on_both;

use super::{
    DENY, apply, did, files, files as files_of, grant_labelled, options, plan, sample,
    server_named, token,
};
use crate::common::World;

fn told(plan: &sluice_control::configuration::Plan) -> Vec<(String, Drift)> {
    plan.changes().filter_map(|one| Some((one.title(), one.drift?))).collect()
}

on_both! {
    async fn what_was_changed_by_hand_is_refused_unless_told(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        let settings = SettingsPatch { on_drift: Some(OnDrift::AllowAndFlag), ..SettingsPatch::default() };
        let patch = ServerPatch { name: Some("renamed".to_owned()), settings, ..ServerPatch::default() };
        world.control.edit_server(&admin, server, None, patch).await.expect("edits");
        let grant = grant_labelled(&world, &admin, "ci").await.expect("there");
        let patch = GrantPatch { observe: Some(true), ..GrantPatch::default() };
        world.control.edit_grant(&admin, grant, None, patch).await.expect("edits");
        let drifted = plan(&world, &admin, &files, &options()).await;
        let by_hand = Drift::ChangedByHand;
        assert_eq!(told(&drifted), [("server sandbox".to_owned(), by_hand), ("grant sandbox / ci".to_owned(), by_hand)]);
        let refusal = drifted.refusal().expect("refused");
        assert_eq!(refusal.code(), "drift");
        assert!(refusal.to_string().contains("grant sandbox / ci"), "{refusal}");
        let stopped = world.control.apply_configuration(&admin, drifted, &mut |_| Ok(())).await;
        assert_eq!(stopped.expect_err("refused").error.code(), "drift");
        assert_eq!(server_named(&world, &admin, "renamed").await, Some(server), "nothing was changed");
        apply(&world, &admin, &files, &Options { overwrite: true, ..options() }).await;
        assert_eq!(server_named(&world, &admin, "sandbox").await, Some(server), "it is the same server");
        assert!(plan(&world, &admin, &files, &options()).await.is_empty());
    }

    async fn what_is_like_the_file_is_taken_over_and_what_is_different_is_not(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let server = world.server(&admin).await;
        let mut files = sample(&world);
        let plain = files[MAIN].replace("    headers:\n      Authorization: Bearer ${env:TOKEN}\n", "")
            .replace("    settings:\n      on_drift: deny\n", "");
        files.insert(MAIN.to_owned(), plain.clone());
        assert!(told(&plan(&world, &admin, &files, &options()).await).is_empty());
        apply(&world, &admin, &files, &options()).await;
        files.insert(MAIN.to_owned(), plain.replace("    policies:", "    settings:\n      on_drift: deny\n    policies:"));
        assert!(plan(&world, &admin, &files, &options()).await.refusal().is_none(), "it was taken over");
        // Another installation, where nothing was taken over yet.
        let other = world.workspace("Acme", "eve@example.test").await;
        world.connect(&other, "sandbox").await;
        let strange = plan(&world, &other, &files, &options()).await;
        assert_eq!(told(&strange), [("server sandbox".to_owned(), Drift::NeverApplied)]);
        let import = Options { take_tokens: true, ..Options::default() };
        let strange = plan(&world, &other, &files, &import).await;
        assert_eq!(told(&strange), [("server sandbox".to_owned(), Drift::Exists)]);
        assert_eq!(strange.refusal().expect("refused").code(), "drift");
        apply(&world, &other, &files, &Options { overwrite: true, ..import }).await;
        assert!(world.control.server(&admin, server).await.is_ok(), "each workspace its own");
    }

    async fn what_was_deleted_by_hand_does_not_come_back_in_silence(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let grant = grant_labelled(&world, &admin, "ci").await.expect("there");
        world.control.revoke_grant(&admin, grant).await.expect("revokes");
        let drifted = plan(&world, &admin, &files, &options()).await;
        assert_eq!(told(&drifted), [("grant sandbox / ci".to_owned(), Drift::DeletedByHand)]);
        assert_eq!(drifted.refusal().expect("refused").code(), "drift");
        let made = apply(&world, &admin, &files, &Options { overwrite: true, ..options() }).await;
        assert_ne!(made[0].grant_id, grant);
        assert!(plan(&world, &admin, &files, &options()).await.is_empty());
    }

    async fn what_no_file_names_any_more_is_listed_and_goes_only_when_told(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        apply(&world, &admin, &sample(&world), &options()).await;
        let empty = files("sluice: 1\n");
        let listed = plan(&world, &admin, &empty, &options()).await;
        assert!(listed.is_empty());
        assert_eq!(did(&listed, Action::Orphan).len(), 3, "{:?}", did(&listed, Action::Orphan));
        apply(&world, &admin, &empty, &options()).await;
        assert!(server_named(&world, &admin, "sandbox").await.is_some());
        let prune = Options { prune: true, ..options() };
        let gone = plan(&world, &admin, &empty, &prune).await;
        assert_eq!(did(&gone, Action::Delete), ["grant sandbox / ci", "policy sandbox / read only", "server sandbox"]);
        apply(&world, &admin, &empty, &prune).await;
        assert_eq!(server_named(&world, &admin, "sandbox").await, None);
        let after = plan(&world, &admin, &empty, &prune).await;
        assert_eq!(after.changes().count(), 0);
        // What was deleted so may come again.
        assert!(told(&plan(&world, &admin, &sample(&world), &options()).await).is_empty());
    }

    async fn pruning_touches_nothing_that_nobody_applied(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let mut files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        let policies = world.control.policies(&admin, Some(server), sluice_control::Page::first(9)).await.expect("lists");
        let form = GrantForm { label: "mine".to_owned(), policy: Some(policies.items[0].id), ..GrantForm::default() };
        world.control.create_grant(&admin, server, form).await.expect("grants");
        let prune = Options { prune: true, ..options() };
        let faults = |plan: Result<sluice_control::configuration::Plan, sluice_control::ControlError>| {
            plan.expect_err("refused").faults().into_iter().map(|fault| fault.code.to_string()).collect::<Vec<_>>()
        };
        let empty = files_of("sluice: 1\n");
        let all = world.control.plan_configuration(&admin, &empty, &token(), &prune).await;
        assert_eq!(faults(all), ["in_use", "not_only_ours"]);
        // Without its policy the grant of the files may go, the other one keeps the policy alive.
        let at = files[MAIN].find("    policies:").expect("it has policies");
        files.insert(MAIN.to_owned(), files[MAIN][..at].to_owned());
        let some = world.control.plan_configuration(&admin, &files, &token(), &prune).await;
        assert_eq!(faults(some), ["in_use"]);
        let form = PolicyForm { name: Some("mine".to_owned()), document: DENY.to_owned(), note: String::new() };
        let mine = world.control.create_policy(&admin, server, form).await.expect("makes").policy.id;
        let patch = GrantPatch { policy: Some(Some(mine)), ..GrantPatch::default() };
        let grant = grant_labelled(&world, &admin, "mine").await.expect("there");
        world.control.edit_grant(&admin, grant, None, patch).await.expect("moves");
        let plan = plan(&world, &admin, &files, &prune).await;
        assert_eq!((did(&plan, Action::Delete).len(), plan.unmanaged), (2, 2));
        apply(&world, &admin, &files, &prune).await;
        assert_eq!(grant_labelled(&world, &admin, "mine").await, Some(grant));
    }

    async fn what_was_changed_by_hand_is_not_pruned_unless_told(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        apply(&world, &admin, &sample(&world), &options()).await;
        let grant = grant_labelled(&world, &admin, "ci").await.expect("there");
        let patch = GrantPatch { observe: Some(true), ..GrantPatch::default() };
        world.control.edit_grant(&admin, grant, None, patch).await.expect("edits");
        let prune = Options { prune: true, ..options() };
        let drifted = plan(&world, &admin, &files("sluice: 1\n"), &prune).await;
        assert_eq!(told(&drifted), [("grant sandbox / ci".to_owned(), Drift::ChangedByHand)]);
        assert!(drifted.refusal().is_some());
    }
}
