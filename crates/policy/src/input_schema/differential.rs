//! Random schemas and values: what is told here is what another implementation tells.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Schema, Verdict};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..6).prop_map(Value::from),
        prop_oneof![Just(json!(0.5)), Just(json!(1.0)), Just(json!(2.5))],
        "[ab]{0,3}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let kinds = ["null", "boolean", "object", "array", "number", "integer", "string"];
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        proptest::sample::subsequence(kinds.to_vec(), 1..4)
            .prop_map(|kinds| json!({"type": kinds})),
        scalar().prop_map(|value| json!({"const": value})),
        proptest::collection::vec(value(), 0..3).prop_map(|values| json!({"enum": values})),
        (-2_i64..5, -2_i64..5).prop_map(|(a, b)| json!({"minimum": a, "exclusiveMaximum": b})),
        prop_oneof![Just(json!({"multipleOf": 0.5})), Just(json!({"multipleOf": 2}))],
        (0_u64..3, 0_u64..4).prop_map(|(a, b)| json!({"minLength": a, "maxLength": b})),
        (0_u64..3, 0_u64..4)
            .prop_map(|(a, b)| json!({"minItems": a, "maxItems": b, "uniqueItems": a == 1})),
        (0_u64..3, 0_u64..4).prop_map(|(a, b)| json!({"minProperties": a, "maxProperties": b})),
        proptest::collection::vec("[abc]", 0..3).prop_map(|mut names| {
            names.sort();
            names.dedup();
            json!({"required": names})
        }),
        Just(json!({"pattern": "^a+$"})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({"$ref": "#"})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..4);
        let named = proptest::collection::btree_map("[abc]", inner.clone(), 0..3);
        prop_oneof![
            list.clone().prop_map(|all| json!({"allOf": all})),
            list.clone().prop_map(|all| json!({"anyOf": all})),
            list.clone().prop_map(|all| json!({"oneOf": all})),
            inner.clone().prop_map(|not| json!({"not": not})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            (named.clone(), inner.clone(), any::<bool>()).prop_map(|(named, rest, closed)| {
                let rest = if closed { rest } else { Value::Bool(true) };
                json!({"properties": named, "patternProperties": {"^b": true}, "additionalProperties": rest})
            }),
            (list, inner.clone(), any::<bool>()).prop_map(|(prefix, rest, all)| {
                if all { json!({"prefixItems": prefix, "items": rest}) } else { json!({"items": rest}) }
            }),
            (inner.clone(), 0_u64..3, 0_u64..3)
                .prop_map(|(one, least, most)| json!({"contains": one, "minContains": least, "maxContains": most})),
            named.clone().prop_map(|named| json!({"dependentSchemas": named})),
            inner.clone().prop_map(|names| json!({"propertyNames": names})),
            (named, inner.clone()).prop_map(|(named, one)| {
                json!({"properties": named, "anyOf": [one, true], "unevaluatedProperties": false})
            }),
            inner.prop_map(|one| json!({"prefixItems": [true], "contains": one, "minContains": 0, "unevaluatedItems": false})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn verdicts_agree(part in schema(), defined in leaf(), instance in value()) {
        // A reference from its own definition to itself would never end, here or there.
        let defined = if defined.to_string().contains("$ref") { Value::Bool(true) } else { defined };
        let whole = json!({"$defs": {"d": defined}, "properties": {"a": part}, "type": "object"});
        let instance = json!({"a": instance});
        let Ok(other) = jsonschema::draft202012::new(&whole) else { return Ok(()) };
        let own = Schema::read(&whole.to_string()).expect("JSON").check(&instance.to_string());
        match own {
            Verdict::Fits => prop_assert!(other.is_valid(&instance), "{} on {}", whole, instance),
            Verdict::Violation(why) => prop_assert!(!other.is_valid(&instance), "{} on {}: {}", whole, instance, why),
            Verdict::Unknown(_) => {}
        }
    }

    #[test]
    fn nothing_panics(schema in "\\PC{0,80}", instance in "\\PC{0,40}") {
        if let Ok(schema) = Schema::read(&schema) {
            let _ = schema.check(&instance);
        }
    }
}
