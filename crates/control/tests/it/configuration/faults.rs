//! Files that cannot be applied: every fault at once with its place, and nothing written.

use sluice_control::configuration::{MAIN, Options, Secrets, needs};
use sluice_control::{ControlError, Fault};
use sluice_testkit::on_both;

use super::{Files, apply, events, files, options, plan, sample};
use crate::common::World;

fn faults(error: ControlError) -> Vec<Fault> {
    match error {
        ControlError::Invalid(faults) => faults,
        other => panic!("{other:?}"),
    }
}

/// `code file pointer line` of each.
fn short(faults: &[Fault]) -> Vec<String> {
    let one = |fault: &Fault| {
        let file = fault.file.as_deref().unwrap_or("-");
        format!("{} {file} {} {}", fault.code, fault.pointer, fault.line.unwrap_or(0))
    };
    faults.iter().map(one).collect()
}

const WRONG: &str = r#"sluice: 1
workspace: {name: "a\u202eb"}
sevrers: []
servers:
  - name: one
    upstream_url: ftp://example.com/
    headers:
      Authorization: Bearer abc
      "bad name": ${env:X}
    settings:
      on_drfit: deny
      idle_timeout_s: 0
      transport: carrier_pigeon
    policies:
      - name: p
        file: policies/p.json
      - name: q
        file: ../../etc/passwd
      - name: r
        document: {version: "1"}
      - name: s
        document: |
          {"version": "1", "default": "dney"}
      - name: P
        file: policies/none.json
    grants:
      - label: g
        policy: pp
        expires_at: 2020-01-01T00:00:00Z
        networks: [10.0.0.0/33]
      - label: 12
      - {label: h, expires_at: soon, observe: maybe}
  - name: ONE
    upstream_url: https://${env:HOST}/mcp
  - {}
"#;

on_both! {
    async fn every_fault_is_told_at_once_with_its_place_and_nothing_is_written(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let before = events(&world, &admin).await;
        let mut files = files(WRONG);
        files.insert("policies/p.json".to_owned(), "{\"version\": \"1\",\n \"default\": \"deny\", \"tolos\": {}}".to_owned());
        let secrets = Secrets::from([("env:X".to_owned(), "v".into())]);
        let refused = world.control.plan_configuration(&admin, &files, &secrets, &options()).await;
        let faults = faults(refused.expect_err("refused"));
        let mut told = short(&faults);
        told.sort();
        let mut expected = [
            "unknown_field workspace.yaml /sevrers 3",
            "invisible_character workspace.yaml /workspace/name 2",
            "url_scheme workspace.yaml /servers/0/upstream_url 6",
            "secret_in_file workspace.yaml /servers/0/headers/Authorization 8",
            "bad_header workspace.yaml /servers/0/headers/bad name 9",
            "unknown_field workspace.yaml /servers/0/settings/on_drfit 11",
            "out_of_range workspace.yaml /servers/0/settings/idle_timeout_s 12",
            "invalid workspace.yaml /servers/0/settings/transport 13",
            "unknown_key policies/p.json /tolos 2",
            "bad_path workspace.yaml /servers/0/policies/1/file 18",
            "document_text workspace.yaml /servers/0/policies/2/document 20",
            "unknown_word workspace.yaml /servers/0/policies/3/document 22",
            "missing_file workspace.yaml /servers/0/policies/4/file 25",
            "unknown_policy workspace.yaml /servers/0/grants/0/policy 28",
            "in_the_past workspace.yaml /servers/0/grants/0/expires_at 29",
            "bad_network workspace.yaml /servers/0/grants/0/networks/0 30",
            "invalid workspace.yaml /servers/0/grants/1/label 31",
            "invalid workspace.yaml /servers/0/grants/2/expires_at 32",
            "invalid workspace.yaml /servers/0/grants/2/observe 32",
            "bad_reference workspace.yaml /servers/1/upstream_url 34",
            "missing_field workspace.yaml /servers/2 35",
            "missing_field workspace.yaml /servers/2 35",
        ].map(str::to_owned).to_vec();
        expected.sort();
        let codes = |all: &[String]| all.iter().map(|one| one.rsplit_once(' ').expect("a line").0.to_owned()).collect::<Vec<_>>();
        assert_eq!(codes(&told), codes(&expected), "{faults:#?}");
        assert_eq!(told, expected, "{faults:#?}");
        let meant: Vec<_> = faults.iter().filter_map(|fault| fault.suggestion.as_deref()).collect();
        for word in ["servers", "on_drift", "tools", "deny"] {
            assert!(meant.contains(&word), "{word} in {meant:?}");
        }
        assert_eq!(events(&world, &admin).await, before);
    }

    async fn names_that_stand_twice_and_too_many_of_them_are_refused(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let url = world.upstream.url();
        let twice = format!("sluice: 1\nservers:\n  - {{name: a, upstream_url: \"{url}\"}}\n  - {{name: A, upstream_url: \"{url}\"}}\n");
        let refused = world.control.plan_configuration(&admin, &files(&twice), &Secrets::new(), &options()).await;
        let told = faults(refused.expect_err("refused"));
        assert_eq!(short(&told), ["duplicate workspace.yaml /servers/1/name 4"]);
        let mut many = "sluice: 1\nservers:\n".to_owned();
        for n in 0..201 {
            many = format!("{many}  - {{name: s{n}, upstream_url: \"{url}\"}}\n");
        }
        let refused = world.control.plan_configuration(&admin, &files(&many), &Secrets::new(), &options()).await;
        assert_eq!(short(&faults(refused.expect_err("refused"))), ["too_many workspace.yaml  0"]);
    }

    async fn a_file_of_another_form_or_none_is_refused(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        for (main, code) in [
            ("servers: []\n", "missing_field"),
            ("sluice: 2\n", "unknown_version"),
            ("sluice: 1\nservers: 7\n", "invalid"),
            ("just words\n", "invalid"),
            ("a: [\n", "syntax"),
        ] {
            let refused = world.control.plan_configuration(&admin, &files(main), &Secrets::new(), &options()).await;
            assert_eq!(faults(refused.expect_err("refused"))[0].code, code, "{main}");
        }
        let none = Files::new();
        let refused = world.control.plan_configuration(&admin, &none, &Secrets::new(), &Options::default()).await;
        assert_eq!(faults(refused.expect_err("refused"))[0].code, "missing_file");
    }

    async fn json_is_read_as_well(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let yaml = sample(&world);
        let json = serde_json::json!({"sluice": 1, "workspace": {"name": "Acme"}, "servers": [{
            "name": "sandbox", "upstream_url": world.upstream.url(),
            "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "settings": {"on_drift": "deny"},
            "policies": [{"name": "read only", "file": "policies/read.json"}],
            "grants": [{"label": "ci", "policy": "read only", "networks": ["10.0.0.0/8"]}],
        }]});
        apply(&world, &admin, &yaml, &options()).await;
        let mut same = yaml.clone();
        same.insert(MAIN.to_owned(), json.to_string());
        assert!(plan(&world, &admin, &same, &options()).await.is_empty());
        let needs = needs(&same[MAIN]);
        assert_eq!(needs.files, ["policies/read.json"]);
        assert_eq!(needs.references.iter().map(ToString::to_string).collect::<Vec<_>>(), ["env:TOKEN"]);
    }
}
