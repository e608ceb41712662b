//! Policy as code: what is exported is applied again unchanged, what a person changed is not
//! overwritten in silence, and nothing is written before everything is checked.

mod drift;
mod faults;
mod secrets;
mod workspace;

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use sluice_control::configuration::{
    Action, Files, MAIN, NewGrantToken, Options, Plan, PlannedChange, Secrets,
};
use sluice_control::operator::Operator;
use sluice_control::{
    Admin, Apply, AuthForm, EventFilter, GrantForm, GrantsOf, Page, PolicyForm, ServerForm,
    SettingsPatch,
};
use sluice_domain::{GrantId, OnDrift, ServerId};
use sluice_testkit::on_both;

use crate::common::{World, code, secret};

/// Layout, key order and digits must come through.
const DOCUMENT: &str = "{\n  \"version\": \"1\",   \"default\": \"deny\",\n  \"tools\": {\"read_file\": {\"require\": \
                        [{\"conditions\": [{\"path\": \"args.n\", \"op\": \"lte\", \"value\": 12345678901234567890.10}]}]}}}\n";
const DENY: &str = r#"{"version":"1","default":"deny"}"#;

fn options() -> Options {
    Options { remember: true, take_tokens: true, ..Options::default() }
}

fn files(main: &str) -> Files {
    Files::from([(MAIN.to_owned(), main.to_owned())])
}

/// Two servers' worth of files against the fake upstream.
fn sample(world: &World) -> Files {
    let url = world.upstream.url();
    let main = format!(
        "sluice: 1\nworkspace:\n  name: Acme\nservers:\n  - name: sandbox\n    upstream_url: {url}\n    \
         headers:\n      Authorization: Bearer ${{env:TOKEN}}\n    settings:\n      on_drift: deny\n    \
         policies:\n      - name: read only\n        file: policies/read.json\n    grants:\n      \
         - label: ci\n        policy: read only\n        networks: [10.0.0.0/8]\n"
    );
    let mut files = files(&main);
    files.insert("policies/read.json".to_owned(), DOCUMENT.to_owned());
    files
}

fn token() -> Secrets {
    Secrets::from([("env:TOKEN".to_owned(), SecretString::from("UP-1234"))])
}

async fn plan(world: &World, admin: &Admin, files: &Files, options: &Options) -> Plan {
    world.control.plan_configuration(admin, files, &token(), options).await.expect("plans")
}

/// Applies, and gives the tokens that were made.
async fn apply(
    world: &World,
    admin: &Admin,
    files: &Files,
    options: &Options,
) -> Vec<NewGrantToken> {
    let plan = plan(world, admin, files, options).await;
    let mut made = Vec::new();
    let mut keep = |token: &NewGrantToken| {
        made.push(token.clone());
        Ok(())
    };
    world.control.apply_configuration(admin, plan, &mut keep).await.expect("applies");
    made
}

fn did(plan: &Plan, action: Action) -> Vec<String> {
    plan.changes().filter(|one| one.action == action).map(PlannedChange::title).collect()
}

async fn server_named(world: &World, admin: &Admin, name: &str) -> Option<ServerId> {
    let all = world.control.servers(admin, Page::first(100)).await.expect("lists").items;
    all.into_iter().find(|one| one.name == name).map(|one| one.id)
}

async fn grant_labelled(world: &World, admin: &Admin, label: &str) -> Option<GrantId> {
    let all = world.control.grants(admin, GrantsOf::default(), Page::first(100)).await;
    all.expect("lists").items.into_iter().find(|one| one.label == label).map(|one| one.id)
}

async fn events(world: &World, admin: &Admin) -> usize {
    let all = world.control.admin_events(admin, &EventFilter::default(), Page::first(1_000)).await;
    all.expect("lists").items.len()
}

/// A server with everything that can be said of one.
async fn rich(world: &World, admin: &Admin) {
    world.server(admin).await;
    let form = ServerForm {
        name: "Zweiter: \"Server\"".to_owned(),
        upstream_url: format!("{}?key=SECRET-Q&x=1", world.upstream.url()),
        auth: AuthForm::Headers(vec![
            ("X-Key".to_owned(), secret("UP-1")),
            ("authorization".to_owned(), secret("Bearer UP-2")),
        ]),
        settings: SettingsPatch {
            on_drift: Some(OnDrift::Deny),
            idle_timeout_s: Some(7),
            hold_poisoned: Some(false),
            ..SettingsPatch::default()
        },
    };
    let server = world.control.connect(admin, form).await.expect("connects").server.id;
    for name in ["Read only", "read/only", "no"] {
        let form = PolicyForm {
            name: Some(name.to_owned()),
            document: DOCUMENT.to_owned(),
            note: String::new(),
        };
        world.control.create_policy(admin, server, form).await.expect("makes");
    }
    world
        .control
        .apply_recommended(admin, server, "read_file", Apply::default())
        .await
        .expect("applies");
    let policies =
        world.control.policies(admin, Some(server), Page::first(9)).await.expect("lists").items;
    let policy = policies.iter().find(|one| one.name == "no").map(|one| one.id);
    let soon = world.clock.now() + chrono::TimeDelta::minutes(1);
    for (label, expires_at) in
        [("plain", None), ("long", Some("2030-01-01T00:00:00.5Z")), ("short", None)]
    {
        let expires_at = expires_at.map(|text| text.parse().expect("a time"));
        let form = GrantForm {
            label: label.to_owned(),
            policy: policy.filter(|_| label == "long"),
            expires_at: if label == "short" { Some(soon) } else { expires_at },
            observe: label == "long",
            networks: if label == "long" {
                vec!["10.1.2.3".to_owned(), "2001:db8::/32".to_owned()]
            } else {
                Vec::new()
            },
        };
        world.control.create_grant(admin, server, form).await.expect("grants");
    }
    world.clock.advance(chrono::TimeDelta::minutes(2));
}

on_both! {
    async fn what_is_exported_is_imported_and_exported_again_byte_for_byte(world: World) {
        let from = world.workspace("Acme & Söhne", "ann@example.test").await;
        rich(&world, &from).await;
        let files = world.control.export_configuration(&from).await.expect("exports");
        let all = format!("{files:?}");
        for hidden in ["SECRET-Q", "UP-1", "UP-2", "slg_"] {
            assert!(!all.contains(hidden), "{hidden} in {all}");
        }
        assert!(files.values().any(|text| text == DOCUMENT), "the text is the stored text");
        assert!(!all.contains("short"), "a grant that has ended is left out");
        let secrets = Secrets::from([
            ("env:SLUICE_SECRET_ZWEITER_SERVER_QUERY", "key=SECRET-Q&x=1"),
            ("env:SLUICE_SECRET_ZWEITER_SERVER_X_KEY", "UP-1"),
            ("env:SLUICE_SECRET_ZWEITER_SERVER_AUTHORIZATION", "Bearer UP-2"),
        ].map(|(name, value)| (name.to_owned(), SecretString::from(value))));

        let to = world.workspace("Acme & Söhne", "eve@example.test").await;
        assert_ne!(to.slug, from.slug);
        let import = Options { take_tokens: true, ..Options::default() };
        let plan = world.control.plan_configuration(&to, &files, &secrets, &import).await.expect("plans");
        assert_eq!(plan.summary().create, 8, "{:?}", did(&plan, Action::Create));
        world.control.apply_configuration(&to, plan, &mut |_| Ok(())).await.expect("imports");
        let again = world.control.export_configuration(&to).await.expect("exports");
        assert_eq!(again, files);
        // The credentials came along, and the button's policy is still the button's.
        let plan = world.control.plan_configuration(&from, &again, &secrets, &options()).await.expect("plans");
        assert!(plan.is_empty(), "{:?}", plan.changes().collect::<Vec<_>>());
        let server = server_named(&world, &to, "Zweiter: \"Server\"").await.expect("there");
        let pressed = world.control.apply_recommended(&to, server, "read_file", Apply::default()).await;
        assert!(!pressed.expect("presses").created);
    }

    async fn applied_twice_the_second_time_changes_nothing(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        world.upstream.tools(vec![sluice_testkit::mcp_server::tool("read_file", "Read a file")]);
        let files = sample(&world);
        let first = plan(&world, &admin, &files, &options()).await;
        assert_eq!(did(&first, Action::Create), ["server sandbox", "policy sandbox / read only", "grant sandbox / ci"]);
        let made = apply(&world, &admin, &files, &options()).await;
        assert_eq!(made.len(), 1);
        assert!(made[0].token.expose_secret().starts_with("slg_"));
        let before = events(&world, &admin).await;
        assert!(plan(&world, &admin, &files, &options()).await.is_empty());
        assert!(apply(&world, &admin, &files, &options()).await.is_empty());
        assert_eq!(events(&world, &admin).await, before, "nothing was done, so nothing is noted");
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        let policies = world.control.policies(&admin, Some(server), Page::first(9)).await.expect("lists").items;
        assert_eq!((policies[0].version, policies[0].document.as_str()), (1, DOCUMENT));
        let seen = world.upstream.seen();
        assert!(seen.iter().any(|one| one.headers.get("authorization").is_some_and(|value| value == "Bearer UP-1234")));
    }

    async fn a_changed_file_changes_exactly_that(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let mut files = sample(&world);
        apply(&world, &admin, &files, &options()).await;
        let grant = grant_labelled(&world, &admin, "ci").await.expect("there");
        let main = files[MAIN].replace("on_drift: deny", "unknown_tools: by_policy").replace("10.0.0.0/8", "10.0.0.0/16");
        files.insert(MAIN.to_owned(), main.replace("name: Acme", "name: Acme Inc"));
        files.insert("policies/read.json".to_owned(), DENY.to_owned());
        let next = plan(&world, &admin, &files, &options()).await;
        assert!(next.refusal().is_none(), "{:?}", next.refusal());
        assert_eq!(did(&next, Action::Update), ["workspace Acme Inc", "server sandbox", "policy sandbox / read only", "grant sandbox / ci"]);
        let of = |kind: &str| next.changes().find(|one| one.kind.to_string() == kind).expect("planned");
        let names: Vec<_> = of("server").fields.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(names, ["settings.on_drift", "settings.unknown_tools"]);
        assert_eq!(of("policy").document[0].pointer, "/tools");
        assert_eq!(of("grant").fields[0].after, Some(serde_json::json!(["10.0.0.0/16"])));
        assert!(apply(&world, &admin, &files, &Options { note: "commit abc".to_owned(), ..options() }).await.is_empty());
        assert_eq!(grant_labelled(&world, &admin, "ci").await, Some(grant), "the same grant, the same token");
        let server = server_named(&world, &admin, "sandbox").await.expect("there");
        let policy = &world.control.policies(&admin, Some(server), Page::first(9)).await.expect("lists").items[0];
        let version = world.control.policy_version(&admin, policy.id, 2).await.expect("there");
        assert_eq!((version.document.as_str(), version.note.as_str()), (DENY, "commit abc"));
        assert!(plan(&world, &admin, &files, &options()).await.is_empty());
    }

    async fn the_operator_is_named_and_no_member_is_the_maker(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let operator = Operator::new(world.db.clone(), Arc::clone(&world.vault), world.clock.function());
        let hands = operator.enter(&admin.slug).await.expect("enters");
        apply(&world, &hands, &sample(&world), &options()).await;
        let of = EventFilter { action: Some("grant.create".to_owned()), ..EventFilter::default() };
        let noted = world.control.admin_events(&admin, &of, Page::first(9)).await.expect("lists").items;
        assert_eq!((noted[0].actor_kind.as_str(), noted[0].actor_name.as_str()), ("operator", "operator"));
        let of = EventFilter { action: Some("configuration.apply".to_owned()), ..EventFilter::default() };
        let noted = world.control.admin_events(&admin, &of, Page::first(9)).await.expect("lists").items;
        assert_eq!(noted[0].after, Some(serde_json::json!({"created": 3, "updated": 0, "deleted": 0})));
        let grant = grant_labelled(&world, &admin, "ci").await.expect("there");
        assert_eq!(world.control.grant(&admin, grant).await.expect("there").created_by, None);
        assert_eq!(code(operator.enter("nowhere").await), "not_found");
    }

    async fn a_grant_is_made_only_where_its_token_is_kept(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let files = sample(&world);
        let nobody = Options { take_tokens: false, ..options() };
        let refused = plan(&world, &admin, &files, &nobody).await;
        assert_eq!(refused.refusal().expect("refused").code(), "tokens_wanted");
        let stopped = world.control.apply_configuration(&admin, refused, &mut |_| Ok(())).await;
        assert_eq!((stopped.as_ref().err().map(|one| one.done), server_named(&world, &admin, "sandbox").await), (Some(0), None));
        let ready = plan(&world, &admin, &files, &options()).await;
        let full = &mut |_: &NewGrantToken| Err(std::io::Error::other("disk full"));
        let halted = world.control.apply_configuration(&admin, ready, full).await.expect_err("halts");
        assert_eq!((halted.at.as_str(), halted.done, halted.error.code().as_str()), ("grant sandbox / ci", 2, "token_not_kept"));
        assert_eq!(grant_labelled(&world, &admin, "ci").await, None, "it was revoked again");
        let rest = plan(&world, &admin, &files, &options()).await;
        assert_eq!(did(&rest, Action::Create), ["grant sandbox / ci"], "the next run goes on from there");
    }
}
