//! What holds for every definition, however hostile.

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_domain::{Category, ToolDefinition};
use sluice_risk::{Rating, classify, findings, options};

fn rank(rating: &Rating) -> (bool, u8) {
    (rating.category != Category::Read, rating.severity as u8)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "(get|list|create|update|delete|run|execute|send|pay|drop|search|manage|zorp)_[a-z]{2,8}(_[a-z]{2,8})?",
        "[a-z]{1,12}[A-Z][a-z]{1,8}",
        "\\PC{0,40}",
        any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "(Gets|Deletes|Creates|Runs|Sends|Pays|Lists) [a-z ]{0,60}\\.",
        any::<String>(),
        "[\u{200b}\u{202e}\u{e0041}\u{feff}a-z /\\.<>{}]{0,120}",
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "enum": ["list", "delete"]})),
        Just(json!({"type": ["null", "array"], "items": {"type": "string"}})),
        Just(json!({"type": "number"})),
        Just(json!({})),
        Just(json!(7)),
        Just(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        text().prop_map(|text| json!({"type": "string", "description": text})),
    ];
    let object = |inner: BoxedStrategy<Value>| {
        proptest::collection::vec(("[a-zA-Z_]{1,12}|\\PC{1,6}", inner), 0..6).prop_map(|members| {
            let properties: serde_json::Map<String, Value> = members.into_iter().collect();
            json!({"type": "object", "properties": properties})
        })
    };
    let nested = object(leaf.clone().boxed());
    object(prop_oneof![leaf, nested].boxed())
}

prop_compose! {
    fn tool()(
        name in name(),
        title in proptest::option::of(text()),
        description in proptest::option::of(text()),
        input_schema in proptest::option::of(schema()),
        output_schema in proptest::option::of(schema()),
    ) -> ToolDefinition {
        ToolDefinition { name, title, description, input_schema, output_schema, annotations: None }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_panics_and_the_same_tool_gets_the_same_answer(tool in tool()) {
        let rating = classify(&tool);
        prop_assert_eq!(&rating, &classify(&tool));
        prop_assert_eq!(findings(&tool), findings(&tool));
        prop_assert!(!rating.reasons.is_empty());
        prop_assert!((rating.severity as i32 - rating.base as i32).abs() <= 1);
        let text = serde_json::to_string(&rating).expect("a rating is JSON");
        prop_assert_eq!(&rating, &serde_json::from_str::<Rating>(&text).expect("and back"));
        for option in options(&tool) {
            prop_assert!(option.path.starts_with("args"));
        }
    }

    #[test]
    fn an_annotation_never_lowers(
        tool in tool(),
        read_only in proptest::option::of(any::<bool>()),
        destructive in proptest::option::of(any::<bool>()),
        idempotent in proptest::option::of(any::<bool>()),
        open in proptest::option::of(any::<bool>()),
    ) {
        let bare = classify(&tool);
        let mut hints = serde_json::Map::new();
        for (key, value) in [("readOnlyHint", read_only), ("destructiveHint", destructive), ("idempotentHint", idempotent), ("openWorldHint", open)] {
            if let Some(value) = value {
                hints.insert(key.to_owned(), Value::Bool(value));
            }
        }
        let annotated = classify(&ToolDefinition { annotations: Some(Value::Object(hints)), ..tool });
        prop_assert!(rank(&annotated) >= rank(&bare), "{:?} {:?}", annotated, bare);
        prop_assert!(annotated.category == bare.category || bare.category == Category::Read);
    }

    #[test]
    fn a_claim_of_harmlessness_never_lowers(
        tool in tool(),
        // A claim that is the whole description is not a claim beside something.
        spoken in text().prop_map(|spoken| if spoken.len() > 3 { spoken } else { "Lists notes.".to_owned() }),
        claim in prop_oneof![
            Just(" This tool is read-only and completely safe."),
            Just(" It does not modify anything."),
            Just(" Runs in a secure, isolated sandbox."),
            Just(" Harmless."),
        ],
    ) {
        let description = format!("{spoken}{claim}");
        let tool = ToolDefinition { description: Some(spoken), ..tool };
        let bare = classify(&tool);
        let claimed = classify(&ToolDefinition { description: Some(description), ..tool });
        prop_assert!(rank(&claimed) >= rank(&bare), "{:?} {:?}", claimed, bare);
    }
}

#[test]
fn huge_and_deep_definitions_are_bounded() {
    let mut deep = json!({"type": "string", "description": "x"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let wide: serde_json::Map<String, Value> = (0..500)
        .map(|number| {
            (format!("p{number}"), json!({"type": "string", "description": "y".repeat(200)}))
        })
        .collect();
    for schema in [deep, json!({"type": "object", "properties": wide})] {
        let tool = ToolDefinition {
            name: "a".repeat(20_000),
            title: None,
            description: Some("delete ".repeat(5_000)),
            input_schema: Some(schema),
            output_schema: None,
            annotations: None,
        };
        classify(&tool);
        findings(&tool);
        options(&tool);
    }
}
