use sluice_domain::ToolDefinition;

use super::*;

fn described(description: &str) -> ToolDefinition {
    serde_json::from_value(serde_json::json!({"name": "tool", "description": description}))
        .expect("a tool")
}

fn kinds(description: &str) -> Vec<FindingKind> {
    findings(&described(description)).into_iter().map(|it| it.kind).collect()
}
