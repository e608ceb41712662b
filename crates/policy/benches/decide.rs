//! A decision for a call of 1 KiB under a policy of 200 tools with 10 rules
//! each, the same under 2 and 1,000 tools, and compiling that policy. The
//! figures are on the documentation page.

use std::fmt::Write as _;
use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use sluice_policy::{Arguments, CallInput, Verdict, check, compile};

/// Ten rules a tool, of every kind.
fn document(tools: usize) -> String {
    let mut out = r#"{"version":"1","default":"deny","hide":["admin_*","purge_all"],"all_tools":{"deny_if":[{"conditions":[{"path":"call.weekday_utc","op":"in","value":["sat","sun"]}]}]},"tools":{"#.to_owned();
    for tool in 0..tools {
        let comma = if tool == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}"tool_{tool:04}":{{"require":[
            {{"conditions":[{{"path":"args.amount","op":"lte","value":{}}}]}},
            {{"conditions":[{{"path":"args.currency","op":"in","value":["eur","usd","gbp"]}}]}},
            {{"conditions":[{{"path":"args.items[*].id","op":"starts_with","value":"item_"}}]}},
            {{"conditions":[{{"path":"args.account.region","op":"neq","value":"test"}}]}}],
            "deny_if":[
            {{"conditions":[{{"path":"args.note","op":"regex","value":"(?i)drop\\s+table"}}]}},
            {{"conditions":[{{"path":"args.account.id","op":"eq","value":{tool}}}]}},
            {{"conditions":[{{"path":"args.tags","op":"contains","value":"forbidden"}}]}}],
            "approve_if":[
            {{"conditions":[{{"path":"args.amount","op":"gt","value":900}}]}},
            {{"conditions":[{{"any":[{{"path":"args.urgent","op":"eq","value":true}},{{"path":"args.force","op":"eq","value":true}}]}}]}},
            {{"conditions":[{{"not":{{"path":"args.currency","op":"exists"}}}}]}}],
            "limits":[{{"counter":"tool_{tool:04}_rate","window":"minute","max":10}}]}}"#,
            1_000 + tool
        )
        .expect("a string takes it");
    }
    out.push_str("}}");
    out
}

fn arguments() -> String {
    let items: Vec<String> =
        (0..16).map(|i| format!(r#"{{"id":"item_{i}","quantity":{i},"unit":"piece"}}"#)).collect();
    let text = format!(
        r#"{{"amount":129.90,"currency":"eur","note":"{}","account":{{"id":100200300,"region":"eu"}},"tags":["a","b"],"items":[{}]}}"#,
        "n".repeat(130),
        items.join(",")
    );
    assert!((900..1_100).contains(&text.len()), "{}", text.len());
    text
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_040_000, 0).expect("a time")
}

fn deciding(criterion: &mut Criterion) {
    let text = arguments();
    let parsed = Arguments::parse(&text).expect("arguments");
    for tools in [2, 200] {
        let policy = compile(&document(tools)).expect("a policy");
        let name = format!("tool_{:04}", tools - 1);
        let call = CallInput::new(&name, parsed, now());
        assert_eq!(policy.decide(&call).verdict, Verdict::Forward);
        criterion.bench_function(&format!("decide, {tools} tools"), |bench| {
            bench.iter(|| policy.decide(black_box(&call)));
        });
        criterion.bench_function(&format!("read arguments and decide, {tools} tools"), |bench| {
            bench.iter(|| {
                let arguments = Arguments::parse(black_box(&text)).expect("arguments");
                policy.decide(&CallInput { arguments, ..call })
            });
        });
    }
}

fn compiling(criterion: &mut Criterion) {
    let text = document(200);
    criterion.bench_function("compile, 200 tools", |bench| {
        bench.iter(|| compile(black_box(&text)).expect("a policy"));
    });
    criterion.bench_function("check, 200 tools", |bench| {
        bench.iter(|| check(black_box(&text), None));
    });
}

criterion_group!(benches, deciding, compiling);
criterion_main!(benches);
