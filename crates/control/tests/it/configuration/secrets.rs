//! Secrets by reference: values come from whoever applies, and never out again.

use sluice_control::configuration::{Action, MAIN, Secrets};
use sluice_control::{AuthForm, ServerPatch};
use sluice_testkit::on_both;

use super::{apply, did, options, sample, server_named, token};
use crate::common::{World, code, secret};
use crate::configuration::plan as plan_of;

on_both! {
    async fn a_reference_without_a_value_keeps_what_is_stored_and_says_so(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let files = sample(&world);
        let unset = Secrets::new();
        let first = world.control.plan_configuration(&admin, &files, &unset, &options()).await.expect_err("new");
        assert_eq!(first.code(), "unset_reference");
        assert!(first.to_string().contains("env:TOKEN"), "{first}");
        apply(&world, &admin, &files, &options()).await;
        let kept = world.control.plan_configuration(&admin, &files, &unset, &options()).await.expect("plans");
        assert!(kept.is_empty());
        let notes: Vec<_> = kept.changes().flat_map(|one| one.notes.clone()).collect();
        assert!(notes.iter().any(|note| note.contains("env:TOKEN") && note.contains("kept")), "{notes:?}");
        // A new value is a change, which is told without the value.
        let other = Secrets::from([("env:TOKEN".to_owned(), secret("UP-9999"))]);
        let plan = world.control.plan_configuration(&admin, &files, &other, &options()).await.expect("plans");
        assert_eq!(did(&plan, Action::Update), ["server sandbox"]);
        let told = format!("{:?}", plan.changes().collect::<Vec<_>>());
        assert!(told.contains("headers.Authorization") && !told.contains("UP-"), "{told}");
    }

    async fn a_changed_credential_is_drift_like_any_other(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        let auth = AuthForm::Headers(vec![("Authorization".to_owned(), secret("Bearer OTHER"))]);
        let patch = ServerPatch { auth: Some(auth), ..ServerPatch::default() };
        world.control.edit_server(&admin, server, None, patch).await.expect("edits");
        let plan = plan_of(&world, &admin, &files, &options()).await;
        assert_eq!(plan.refusal().expect("refused").code(), "drift");
        // A stored value of another form cannot be kept for a reference that is not set.
        let auth = AuthForm::Headers(vec![("Authorization".to_owned(), secret("Basic OTHER"))]);
        let patch = ServerPatch { auth: Some(auth), ..ServerPatch::default() };
        world.control.edit_server(&admin, server, None, patch).await.expect("edits");
        let unset = world.control.plan_configuration(&admin, &files, &Secrets::new(), &options()).await;
        assert_eq!(code(unset), "unset_reference");
    }

    async fn a_kept_credential_does_not_follow_its_server_elsewhere(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let mut files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let other = sluice_testkit::FakeServer::start().await;
        let moved = files[MAIN].replace(&world.upstream.url(), &other.url());
        files.insert(MAIN.to_owned(), moved);
        let unset = world.control.plan_configuration(&admin, &files, &Secrets::new(), &options()).await;
        assert_eq!(code(unset), "credentials_would_move");
        assert!(apply(&world, &admin, &files, &options()).await.is_empty(), "with the value it moves");
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        world.control.refresh(&admin, server).await.expect("reads");
        let seen = other.seen();
        assert!(seen.last().is_some_and(|one| one.headers["authorization"] == "Bearer UP-1234"));
    }

    async fn a_key_in_the_address_is_a_reference_too(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let mut files = sample(&world);
        let url = world.upstream.url();
        let main = files[MAIN].replace(&url, &format!("{url}?key=${{env:KEY}}"));
        files.insert(MAIN.to_owned(), main);
        let mut secrets = token();
        secrets.insert("env:KEY".to_owned(), secret("K-1"));
        let plan = world.control.plan_configuration(&admin, &files, &secrets, &options()).await.expect("plans");
        assert!(!format!("{:?}", plan.changes().collect::<Vec<_>>()).contains("K-1"));
        world.control.apply_configuration(&admin, plan, &mut |_| Ok(())).await.expect("applies");
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        assert!(world.control.server(&admin, server).await.expect("there").upstream_url.ends_with("?key=K-1"));
        let kept = world.control.plan_configuration(&admin, &files, &Secrets::new(), &options()).await.expect("plans");
        assert!(kept.is_empty());
        secrets.insert("env:KEY".to_owned(), secret("********"));
        secrets.insert("env:TOKEN".to_owned(), secret("a\nb"));
        let odd = world.control.plan_configuration(&admin, &files, &secrets, &options()).await;
        assert_eq!(code(odd), "bad_header");
    }
}
