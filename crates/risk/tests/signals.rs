//! Every signal, from the parameter or the member of the answer that means it. A new signal fails here until it
//! has a row.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sluice_domain::{Category, ToolDefinition};
use sluice_risk::{Confidence, Cue, Signal, classify};

fn tool(definition: Value) -> ToolDefinition {
    serde_json::from_value(definition).expect("a tool")
}

fn takes(name: &str, properties: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn answers(name: &str, properties: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
        "outputSchema": {"type": "object", "properties": properties}})
}

#[test]
fn every_signal_comes_from_the_parameter_that_means_it() {
    let text = json!({"type": "string"});
    let many: serde_json::Map<String, Value> =
        (0..13).map(|number| (format!("p{number}"), text.clone())).collect();
    let rows = [
        (Signal::FreeformCode, takes("zorp", &json!({"python": text}))),
        (Signal::Command, takes("zorp", &json!({"shellCommand": text}))),
        (
            Signal::RawSql,
            takes(
                "zorp",
                &json!({"statement": {"type": "string", "description": "A SQL statement."}}),
            ),
        ),
        (Signal::FilePath, takes("zorp", &json!({"file_path": text}))),
        (Signal::Url, takes("zorp", &json!({"target": {"type": "string", "format": "uri"}}))),
        (Signal::Money, takes("zorp", &json!({"amount": {"type": "number"}, "payee": text}))),
        (Signal::Recipient, takes("zorp", &json!({"bcc": text}))),
        (Signal::Credentials, takes("zorp", &json!({"apiKey": text}))),
        (Signal::Credentials, answers("zorp", &json!({"client_secret": text}))),
        (
            Signal::MassOperation,
            takes("zorp", &json!({"ids": {"type": "array", "items": {"type": "string"}}})),
        ),
        (Signal::OpenObject, takes("zorp", &json!({"options": {"type": "object"}}))),
        (Signal::ManyParameters, takes("zorp", &Value::Object(many))),
        (Signal::NoSchema, json!({"name": "zorp"})),
        (Signal::PersonalData, takes("zorp", &json!({"dateOfBirth": text}))),
        (
            Signal::PersonalData,
            answers(
                "zorp",
                &json!({"people": {"type": "array", "items": {"properties": {"ssn": text}}}}),
            ),
        ),
    ];
    let mut met = BTreeSet::new();
    for (signal, definition) in rows {
        let shown = definition.to_string();
        let rating = classify(&tool(definition));
        assert!(rating.signals.contains(&signal), "{shown}: {:?}", rating.signals);
        met.insert(signal.as_str());
    }
    let all: BTreeSet<&str> = Signal::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(met, all, "a signal without a row");
    // A name of one word that could be code, a page mark or a listed choice is none of these.
    let plain = takes(
        "zorp",
        &json!({"page_token": text, "country_code": text, "note": text,
        "kind": {"type": "string", "enum": ["a"]}}),
    );
    assert_eq!(classify(&tool(plain)).signals, []);
}

#[test]
fn an_answers_members_decide_where_nothing_else_does() {
    let (flag, text) = (json!({"type": "boolean"}), json!({"type": "string"}));
    for (properties, category, quote) in [
        (
            json!({"note": text, "deletedCount": {"type": "integer"}}),
            Category::Destructive,
            "deletedCount",
        ),
        (json!({"sent": flag, "created": flag}), Category::Write, "sent"),
        (json!({"stdout": text, "exit_code": {"type": "integer"}}), Category::Execute, ""),
        (json!({"charged": flag}), Category::Financial, "charged"),
        (json!({"updated": flag}), Category::Write, "updated"),
    ] {
        let rating = classify(&tool(answers("zorp", &properties)));
        let reason = &rating.reasons[0];
        assert_eq!(
            (rating.category, rating.confidence),
            (category, Confidence::Low),
            "{properties}"
        );
        assert_eq!(reason.cue, Cue::Output, "{properties}");
        assert!(reason.place.starts_with("output.") && reason.quote.contains(quote), "{reason:?}");
    }
    // It never makes a reader, and never contradicts a name that speaks.
    assert!(classify(&tool(answers("zorp", &json!({"items": text})))).is_unknown());
    let reads = classify(&tool(answers("get_row", &json!({"deleted": flag}))));
    assert_eq!(reads.category, Category::Read);
}
