//! How long rating one tool takes; the target is under 50 µs.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use sluice_domain::ToolDefinition;
use sluice_risk::{catalogue, classify, findings};

fn tools() -> Vec<ToolDefinition> {
    catalogue::starter().iter().flat_map(|entry| entry.tools.clone()).collect()
}

/// A definition as large as vendors write them.
fn large() -> ToolDefinition {
    let properties: serde_json::Map<String, serde_json::Value> = (0..20)
        .map(|number| {
            let words = "Which of the records are meant; leave it out for all of them. ".repeat(3);
            (
                format!("parameter_{number}"),
                serde_json::json!({"type": "string", "description": words}),
            )
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "name": "storage_account_container_list",
        "description": "Lists containers of an account. ".repeat(60),
        "inputSchema": {"type": "object", "properties": properties},
    }))
    .unwrap_or_else(|error| panic!("{error}"))
}

fn rate(bench: &mut Criterion) {
    let tools = tools();
    let mut next = tools.iter().cycle();
    bench.bench_function("classify one of the starter set", |it| {
        it.iter(|| classify(black_box(next.next().unwrap_or(&tools[0]))));
    });
    let large = large();
    bench.bench_function("classify a large one", |it| it.iter(|| classify(black_box(&large))));
    bench.bench_function("scan a large one", |it| it.iter(|| findings(black_box(&large))));
    bench.bench_function("search the starter set", |it| {
        it.iter(|| catalogue::search(black_box("exectue python"), 20));
    });
}

criterion_group!(benches, rate);
criterion_main!(benches);
