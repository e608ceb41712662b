//! The workspace's own settings in the files.

use secrecy::ExposeSecret as _;
use sluice_control::configuration::{Files, MAIN, Options, Secrets};
use sluice_control::{Admin, ControlError, Proof, Signup};
use sluice_domain::Role;
use sluice_store::Db;
use sluice_testkit::on_both;

use crate::common::{World, code};
use crate::operator::operator;
use crate::providers::{link, vouched};

const ANN: &str = "ann@example.test";

fn file(settings: &str) -> Files {
    Files::from([(MAIN.to_owned(), format!("sluice: 1\nworkspace:\n  name: Acme\n{settings}"))])
}

/// Applies the files; gives the fields that changed.
async fn apply(
    world: &World,
    admin: &Admin,
    files: &Files,
    options: &Options,
) -> Result<Vec<String>, ControlError> {
    let plan = world.control.plan_configuration(admin, files, &Secrets::default(), options).await?;
    let fields =
        plan.changes().flat_map(|one| one.fields.iter().map(|field| field.field.clone())).collect();
    world
        .control
        .apply_configuration(admin, plan, &mut |_| Ok(()))
        .await
        .map_err(|halted| halted.error)?;
    Ok(fields)
}

on_both! {
    async fn settings_are_applied_written_down_and_watched(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let ann = world.workspace("Acme", ANN).await;
        let api = operator(&world).api_token(ANN, "acme", Role::Admin, false).await.expect("makes");
        let token = world.control.who_by_api_token(api.token.expose_secret(), "").await.expect("answers").expect("known");
        assert!(matches!(token.proof, Proof::ApiToken { .. }));
        let admin: Admin = world.control.enter(&token, "acme").await.expect("enters");
        let remember = Options { remember: true, ..Options::default() };
        let by_name = file("  required_provider: acme\n  escalate_after: 90m\n");
        // Nobody may be locked out, and it is told with its line before anything is written.
        let refused = apply(&world, &admin, &by_name, &remember).await.expect_err("no admin comes by it");
        let fault = &refused.faults()[0];
        assert_eq!((fault.code.as_str(), fault.line), ("come_by_it_first", Some(4)));
        assert_eq!(world.control.notice_settings(&admin).await.expect("answers").escalate_after, None);
        link(&world, &issuer, &ann.actor).await.expect("links");
        assert_eq!(apply(&world, &admin, &by_name, &remember).await.expect("applies"), ["required_provider", "escalate_after"]);
        let asked = world.control.required_provider(&admin).await.expect("answers").expect("is set");
        assert_eq!(asked.issuer, issuer.url());
        let after = world.control.notice_settings(&admin).await.expect("answers").escalate_after;
        assert_eq!(after.map(|after| after.num_minutes()), Some(90));
        assert!(apply(&world, &admin, &by_name, &remember).await.expect("nothing to do").is_empty());
        // Written down with the address, and applied again unchanged.
        let written = world.control.export_configuration(&admin).await.expect("exports");
        let lines = format!("  required_provider: {}\n  escalate_after: 90m\n", issuer.url());
        assert!(written[MAIN].replace(['"', '\''], "").contains(&lines), "{}", written[MAIN]);
        assert!(apply(&world, &admin, &written, &remember).await.expect("nothing to do").is_empty());
        // What the files leave out stays, and what is changed by hand is not overwritten in silence.
        assert!(apply(&world, &admin, &file("  escalate_after: 90m\n"), &remember).await.expect("nothing to do").is_empty());
        assert!(apply(&world, &admin, &by_name, &remember).await.expect("nothing to do").is_empty());
        world.control.set_escalation(&admin, None).await.expect("by hand");
        assert_eq!(code(apply(&world, &admin, &by_name, &remember).await), "drift");
        let told = Options { overwrite: true, ..remember.clone() };
        assert_eq!(apply(&world, &admin, &by_name, &told).await.expect("told to"), ["escalate_after"]);
        let open = file("  required_provider: none\n  escalate_after: never\n");
        assert_eq!(apply(&world, &admin, &open, &remember).await.expect("takes both away").len(), 2);
        assert_eq!(world.control.required_provider(&admin).await.expect("answers"), None);
        let bare = world.control.export_configuration(&admin).await.expect("exports");
        assert!(!bare[MAIN].contains("required_provider") && !bare[MAIN].contains("escalate_after"), "{}", bare[MAIN]);
        for (settings, refused) in [
            ("  required_provider: nobody\n", "unknown_provider"),
            ("  escalate_after: 59s\n", "out_of_range"),
            ("  escalate_after: soon\n", "bad_duration"),
            ("  escalate_after: 15\n", "invalid"),
        ] {
            let error = apply(&world, &admin, &file(settings), &remember).await.expect_err(settings);
            let fault = &error.faults()[0];
            assert_eq!((fault.code.as_str(), fault.line.is_some()), (refused, true), "{settings}");
        }
    }

    async fn an_import_leaves_settings_that_are_there(world: World) {
        let admin = world.workspace("Other", ANN).await;
        let import = Options::default();
        assert_eq!(apply(&world, &admin, &file("  escalate_after: 1h\n"), &import).await.expect("fills"), ["escalate_after"]);
        assert!(apply(&world, &admin, &file("  escalate_after: 2h\n"), &import).await.expect("keeps").is_empty());
        let after = world.control.notice_settings(&admin).await.expect("answers").escalate_after;
        assert_eq!(after.map(|after| after.num_hours()), Some(1));
    }
}
