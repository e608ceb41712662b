//! `sluice policy …` as people and scripts run it: through the binary, from files and from standard
//! input, with what it prints and the exit code.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const POLICY: &str = r#"{"version":"1","default":"deny","tools":{"pay":{
  "require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}],
  "approve_if":[{"conditions":[{"path":"args.amount","op":"gt","value":50}]}],
  "limits":[{"counter":"pay","window":"day","max":500,"increment_from":"args.amount"}]}}}"#;
const BAD: &str = "{\"version\":\"1\",\n \"defalt\":\"deny\"}";
const ODD: &str = r#"{"version":"1","default":"allow"}"#;

/// What a run printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    out: String,
    err: String,
    code: i32,
}

impl Ran {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.err, "", "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Nothing on standard output, this on standard error, this code.
    #[track_caller]
    fn fails(&self, code: i32, said: &str) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        assert!(self.err.contains(said), "`{said}` in {self:?}");
        assert!(self.err.ends_with('\n'), "{self:?}");
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `sluice policy …` here, with `stdin` to read.
    fn run(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .arg("policy")
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        // A run that reads no input may have ended.
        pipe.write_all(stdin).ok();
        drop(pipe);
        let done = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let code = done.status.code().expect("it exits by itself");
        Ran { out: text(done.stdout), err: text(done.stderr), code }
    }

    fn says(&self, args: &[&str], stdin: &str) -> Ran {
        self.run(args, stdin.as_bytes())
    }
}

#[test]
fn the_schema_is_printed() {
    let ran = Folder::new(&[]).says(&["schema"], "");
    assert_eq!((ran.code, ran.json()), (0, sluice_policy::json_schema()));
    assert!(ran.out.ends_with("}\n") && ran.out.lines().count() > 100, "it is laid out");
}

#[test]
fn check_tells_people_each_problem_on_a_line() {
    let folder = Folder::new(&[("good.json", POLICY), ("bad.json", BAD), ("odd.json", ODD)]);
    let good = folder.says(&["check", "good.json"], "");
    assert_eq!(good, Ran { out: "No problems.\n".to_owned(), err: String::new(), code: 0 });
    let bad = folder.says(&["check", "bad.json"], "");
    assert_eq!((bad.code, bad.err.as_str()), (1, ""), "{bad:?}");
    let lines: Vec<&str> = bad.out.lines().collect();
    assert_eq!(lines.len(), 3, "{bad:?}");
    assert_eq!(
        lines[0],
        "bad.json:1:1: error: a policy document needs the key `default` (missing_key at the root)"
    );
    assert!(lines[1].starts_with("bad.json:2:2: error: a policy document has no key `defalt`; "));
    assert!(lines[1].ends_with("(unknown_key at /defalt); did you mean `default`?"), "{bad:?}");
    assert_eq!(lines[2], "2 errors, 0 warnings.");
    // A warning is no error.
    let odd = folder.says(&["check", "odd.json"], "");
    assert_eq!(odd.code, 0);
    assert!(odd.out.contains("odd.json:1:26: warning: "), "{odd:?}");
    assert!(odd.out.ends_with("(nothing_restricted at /default)\n0 errors, 1 warning.\n"));
    folder.says(&["check", "none.json"], "").fails(2, "sluice: cannot read none.json: ");
    folder.says(&["check"], "").fails(2, "FILE");
    folder.says(&["chek", "good.json"], "").fails(2, "check");
}

#[test]
fn check_reads_standard_input() {
    let folder = Folder::new(&[]);
    assert_eq!(folder.says(&["check", "-"], POLICY).code, 0);
    let bad = folder.says(&["check", "-"], BAD);
    assert_eq!(bad.code, 1);
    assert!(bad.out.starts_with("-:1:1: error: "), "{bad:?}");
    let value = folder.says(&["check", "-", "--json"], BAD).json();
    assert_eq!((&value["ok"], &value["normalised"]), (&json!(false), &Value::Null));
    assert_eq!(value["problems"][1]["suggestion"], "default");
    assert_eq!(
        (&value["problems"][1]["line"], &value["problems"][1]["column"]),
        (&json!(2), &json!(2))
    );
    for (odd, said) in [(&b""[..], "(syntax at the root)"), (b"{\"a\":\xff}", "not UTF-8")] {
        let ran = folder.run(&["check", "-"], odd);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.out.contains(said) && ran.out.ends_with("1 error, 0 warnings.\n"), "{ran:?}");
    }
    let short = r#"{"version":"1","default":"deny","tools":{"t":{"rate_limit":"10/minute"}}}"#;
    let value = folder.says(&["check", "--json", "-"], short).json();
    let long = json!({"counter": "t_rate", "window": "minute", "max": 10, "scope": "session"});
    assert_eq!(value["normalised"]["tools"]["t"]["limits"], json!([long]));
}

#[test]
fn eval_tells_people_what_becomes_of_a_call_and_why() {
    let folder = Folder::new(&[
        ("policy.json", POLICY),
        ("fine.json", r#"{"tool":"pay","arguments":{"amount":1.50}}"#),
        ("much.json", r#"{"tool":"pay","arguments":{"amount":100.01}}"#),
        ("ask.json", r#"{"tool":"pay","arguments":{"amount":60}}"#),
    ]);
    let fine = folder.says(&["eval", "policy.json", "--call", "fine.json"], "");
    assert_eq!((fine.code, fine.err.as_str()), (0, ""), "{fine:?}");
    assert!(
        fine.out.starts_with("allow (allowed)\ncharges 1.5 to `pay` (window day, scope grant)\n")
    );
    assert!(fine.out.contains("Why:\n"), "{fine:?}");
    assert!(fine.out.contains("/tools/pay/require/0\n    args.amount "), "{fine:?}");
    // A refusal is an answer, not a failure.
    let much = folder.says(&["eval", "policy.json", "--call", "much.json"], "");
    assert_eq!(much.code, 0);
    assert!(much.out.starts_with("deny (require_failed) by /tools/pay/require/0\n"), "{much:?}");
    assert!(!much.out.contains("charges"), "{much:?}");
    let ask = folder.says(&["eval", "policy.json", "--call", "ask.json"], "");
    assert_eq!(ask.code, 0);
    assert!(
        ask.out.starts_with("approve (approval_pending) by /tools/pay/approve_if/0\n"),
        "{ask:?}"
    );
    assert!(ask.out.contains("charges 60 to `pay`"), "{ask:?}");
    let watch = POLICY.replacen("\"default\"", "\"mode\":\"observe\",\"default\"", 1);
    let seen = folder.says(&["eval", "-", "--call", "much.json"], &watch);
    let said =
        "allow (require_failed) by /tools/pay/require/0, only observed: the call goes through\n";
    assert!(seen.code == 0 && seen.out.starts_with(said), "{seen:?}");
}

#[test]
fn eval_reads_either_file_from_standard_input_but_not_both() {
    let call =
        r#"{"tool":"pay","arguments":{"amount":"5"},"context":{"now":"2026-11-30T12:00:00Z"}}"#;
    let folder = Folder::new(&[("policy.json", POLICY), ("call.json", call), ("bad.json", BAD)]);
    let one = folder.says(&["eval", "-", "--call", "call.json", "--json"], POLICY);
    let other = folder.says(&["eval", "policy.json", "--call", "-", "--json"], call);
    assert_eq!(one, other);
    let value = one.json();
    let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["outcome", "code", "rule", "message", "charges", "trace"]);
    assert_eq!((one.code, &value["outcome"]), (0, &json!("deny")));
    folder.says(&["eval", "-", "--call", "-"], POLICY).fails(2, "standard input can be read once");
    folder.says(&["eval", "policy.json"], "").fails(2, "--call");
    folder.says(&["eval", "policy.json", "--call", "none"], "").fails(2, "cannot read none");
    // A bad document is the thing that is checked; a bad call is a mistake of whoever calls.
    folder.says(&["eval", "bad.json", "--call", "call.json"], "").fails(1, "bad.json:2:2: error: ");
    for odd in [
        "",
        "[]",
        "{}",
        r#"{"tool":"a","tol":1}"#,
        r#"{"tool":"a","arguments":[]}"#,
        r#"{"tool":"a","arguments":{"x":1,"x":2}}"#,
        r#"{"tool":"a","context":{"now":"today"}}"#,
        r#"{"tool":"a","context":{"tool":{"severity":"high"}}}"#,
    ] {
        folder.says(&["eval", "policy.json", "--call", "-"], odd).fails(2, "sluice: -: ");
    }
}

const CASES: &str = r#"{"policy":"policy.json","cases":[
    {"name":"small sums","tool":"pay","arguments":{"amount":1},"expect":"allow"},
    {"tool":"x","expect":{"outcome":"deny","code":"default_deny"}}]}"#;

#[test]
fn tests_are_told_case_by_case() {
    let wrong = CASES.replace("\"allow\"", "\"approve\"");
    let folder = Folder::new(&[
        ("policy.json", POLICY),
        ("good.json", CASES),
        ("bad.json", &wrong),
        ("broken.json", r#"{"policy":{"version":"2"},"cases":[]}"#),
        ("none.json", r#"{"cases":[]}"#),
    ]);
    let good = folder.says(&["test", "good.json"], "");
    let said = "good.json: small sums: ok\ngood.json: case 2 (x): ok\n2 cases passed, 0 failed.\n";
    assert_eq!(good, Ran { out: said.to_owned(), err: String::new(), code: 0 });
    let both = folder.says(&["test", "good.json", "bad.json"], "");
    assert_eq!(both.code, 1);
    let failed = "bad.json: small sums: FAILED\n    outcome: expected `approve`, found `allow`\n";
    assert!(both.out.contains(failed), "{both:?}");
    assert!(both.out.ends_with("3 cases passed, 1 failed.\n"), "{both:?}");
    let list = folder.says(&["test", "--json", "good.json", "bad.json"], "");
    let value = list.json();
    assert_eq!((list.code, &value[0]["passed"], &value[1]["failed"]), (1, &json!(2), &json!(1)));
    assert_eq!(value[1]["file"], "bad.json");
    assert_eq!(
        value[1]["results"][0]["differences"][0],
        "outcome: expected `approve`, found `allow`"
    );
    folder.says(&["test", "broken.json"], "").fails(1, "broken.json:1:");
    folder.says(&["test", "none.json"], "").fails(2, "names no policy");
    folder.says(&["test", "policy.json"], "").fails(2, "not policy tests");
    folder.says(&["test"], "").fails(2, "FILE");
    folder.says(&["test", "-", "-"], CASES).fails(2, "standard input can be read once");
}

#[test]
fn tests_come_from_standard_input_with_their_policy_inside_or_beside() {
    let folder = Folder::new(&[("policy.json", POLICY)]);
    let beside = folder.says(&["test", "-"], CASES);
    assert_eq!((beside.code, beside.out.lines().last()), (0, Some("2 cases passed, 0 failed.")));
    let inside = CASES.replacen("\"policy.json\"", POLICY, 1);
    let inside = Folder::new(&[]).says(&["test", "-"], &inside);
    assert_eq!((inside.code, inside.out), (0, beside.out));
}

#[test]
fn compare_tells_what_another_document_would_do() {
    let log = r#"{"at":"2026-11-30T12:00:00Z","tool":"pay","arguments":{"amount":5},"grant_label":"bot"}
{"at":"2026-11-30T12:00:01Z","tool":"pay","arguments":{"amount":{"$type":"number"}},"grant_label":"bot"}
{"at":"2026-11-30T12:00:02Z","tool":"rm","arguments":{},"grant_label":"ops"}
"#;
    let folder = Folder::new(&[
        ("open.json", ODD),
        ("tight.json", POLICY),
        ("bad.json", BAD),
        ("calls.ndjson", log),
    ]);
    let compare = |before: &str, after: &str, calls: &str, more: &[&str], stdin: &str| {
        let mut args = vec!["compare", before, after, "--calls", calls];
        args.extend(more);
        folder.says(&args, stdin)
    };
    let told = compare("open.json", "tight.json", "calls.ndjson", &[], "");
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    for line in [
        "The first would have refused 0 of 3 calls, parked 0, and let 3 through; 0 cannot be told.",
        "The second would have refused 1 of 3 calls, parked 0, and let 1 through; 1 cannot be told.",
        "    rule (default deny): 1 call",
        "    grant ops: 1 call",
        "The second stops 1 that the first let through, and lets 0 through that it stopped; 1 cannot be told.",
    ] {
        assert!(told.out.lines().any(|other| other == line), "`{line}` in {}", told.out);
    }
    assert!(told.out.ends_with("rm (ops): allow -> deny by (default deny)\n"), "{told:?}");
    assert_eq!(compare("-", "tight.json", "calls.ndjson", &[], ODD), told);
    assert_eq!(compare("open.json", "tight.json", "-", &[], log), told);
    let value = compare("open.json", "tight.json", "calls.ndjson", &["--json"], "").json();
    assert_eq!(
        (&value["stricter"], &value["looser"], &value["cannot_tell"]),
        (&json!(1), &json!(0), &json!(1))
    );
    assert_eq!(value["after"]["rules"], json!([{"name": "(default deny)", "calls": 1}]));
    compare("open.json", "bad.json", "calls.ndjson", &[], "").fails(1, "bad.json:2:2: error: ");
    compare("open.json", "tight.json", "-", &[], "{}").fails(2, "-, line 1: missing field `at`");
    compare("-", "tight.json", "-", &[], ODD).fails(2, "standard input can be read once");
    compare("open.json", "tight.json", "none", &[], "").fails(2, "cannot read none");
    folder.says(&["compare", "open.json", "tight.json"], "").fails(2, "--calls");
}
