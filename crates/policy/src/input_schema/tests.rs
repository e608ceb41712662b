use super::*;

fn verdict(schema: &str, instance: &str) -> Verdict {
    Schema::read(schema).unwrap_or_else(|error| panic!("{schema}: {error}")).check(instance)
}

#[track_caller]
fn fits(schema: &str, instance: &str) {
    assert_eq!(verdict(schema, instance), Verdict::Fits, "{schema} on {instance}");
}

#[track_caller]
fn violates(schema: &str, instance: &str) {
    let found = verdict(schema, instance);
    assert!(matches!(found, Verdict::Violation(_)), "{schema} on {instance}: {found:?}");
}

#[track_caller]
fn unknown(schema: &str, instance: &str) {
    let found = verdict(schema, instance);
    assert!(matches!(found, Verdict::Unknown(_)), "{schema} on {instance}: {found:?}");
}

#[test]
fn numbers_are_exact_at_any_size() {
    for (schema, fit, not) in [
        (r#"{"maximum":9007199254740992}"#, "9007199254740992", "9007199254740993"),
        (
            r#"{"exclusiveMaximum":18446744073709551616}"#,
            "18446744073709551615.9",
            "18446744073709551616",
        ),
        (r#"{"minimum":0.1}"#, "0.10", "0.09999999999999999999999999999"),
        (r#"{"exclusiveMinimum":1e400}"#, "1.0000001e400", "1E+400"),
        (r#"{"multipleOf":0.01}"#, "19.99", "19.999"),
        (r#"{"multipleOf":0.1}"#, "1.1", "1.15"),
        (r#"{"multipleOf":3}"#, "9007199254740993", "9007199254740992"),
        (
            r#"{"type":"integer"}"#,
            "123456789012345678901234567890",
            "123456789012345678901234567890.5",
        ),
        (r#"{"type":"integer"}"#, "1e400", "1e-400"),
        (r#"{"type":"integer"}"#, "1.0", "1.5"),
        (r#"{"const":9007199254740993}"#, "9007199254740993.0", "9007199254740992"),
        (r#"{"enum":[1.10,"x"]}"#, "1.1", "1.1000000000000000001"),
        (r#"{"uniqueItems":true}"#, "[9007199254740992,9007199254740993]", "[1,1.0]"),
        (
            r#"{"uniqueItems":true}"#,
            r#"[{"a":1,"b":2},{"a":2,"b":1}]"#,
            r#"[{"a":1,"b":2},{"b":2.0,"a":1}]"#,
        ),
        (r#"{"minItems":2.0}"#, "[1,2]", "[1]"),
    ] {
        fits(schema, fit);
        violates(schema, not);
    }
    unknown(r#"{"multipleOf":12345678901234567890123456789012345678}"#, "5");
}

#[test]
fn keywords_mean_what_the_standard_says() {
    for (schema, fit, not) in [
        (r#"{"type":["string","null"]}"#, "null", "1"),
        (r#"{"maxLength":2}"#, "\"\u{1f600}\u{1f600}\"", "\"abc\""),
        (r#"{"pattern":"^a+$"}"#, "\"aa\"", "\"ab\""),
        (r#"{"required":["a"]}"#, r#"{"a":null}"#, "{}"),
        (r#"{"required":["a"]}"#, "[]", r#"{"A":1}"#),
        (
            r#"{"properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
            r#"{"a":""}"#,
            r#"{"a":"","b":1}"#,
        ),
        (
            r#"{"patternProperties":{"^x":{"type":"null"}},"additionalProperties":{"type":"string"}}"#,
            r#"{"x1":null,"y":""}"#,
            r#"{"y":null}"#,
        ),
        (r#"{"propertyNames":{"maxLength":1}}"#, r#"{"a":1}"#, r#"{"ab":1}"#),
        (
            r#"{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}"#,
            r#"["",1,2]"#,
            r#"["",""]"#,
        ),
        (
            r#"{"contains":{"type":"null"},"minContains":2,"maxContains":3}"#,
            "[null,1,null]",
            "[null]",
        ),
        (r#"{"contains":{"const":1},"minContains":0}"#, "[]", "1e"),
        (r#"{"anyOf":[{"type":"string"},{"minimum":2}]}"#, "3", "1"),
        (r#"{"oneOf":[{"multipleOf":2},{"multipleOf":3}]}"#, "4", "6"),
        (r#"{"not":{"required":["a"]}}"#, r#"{"b":1}"#, r#"{"a":1}"#),
        (
            r#"{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
            r#"{"c":1}"#,
            r#"{"a":1,"c":1}"#,
        ),
        (r#"{"dependentRequired":{"a":["b"]}}"#, r#"{"b":1}"#, r#"{"a":1}"#),
        (r#"{"dependentSchemas":{"a":{"maxProperties":1}}}"#, r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
        ("false", "1e", "1"),
        (r#"{"format":"email","x-vendor":7,"deprecated":true}"#, "\"x\"", "1e"),
    ] {
        if fit != "1e" {
            fits(schema, fit);
        }
        if not != "1e" {
            violates(schema, not);
        }
    }
}

#[test]
fn references_stay_in_the_document() {
    let tree = r##"{"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"integer"}},"required":["v"]}},"$ref":"#/$defs/node"}"##;
    fits(tree, r#"{"v":1,"next":{"v":2,"next":{"v":3}}}"#);
    violates(tree, r#"{"v":1,"next":{"v":2,"next":{}}}"#);
    let ids = r##"{"$id":"https://a.example/root","$defs":{"s":{"$id":"s","$anchor":"here","type":"string"},"t":{"$ref":"s#here"},"u":{"$ref":"https://a.example/s"}},"allOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/u"}]}"##;
    fits(ids, "\"x\"");
    violates(ids, "1");
    let escaped = r##"{"$defs":{"a/b%":{"type":"null"}},"$ref":"#/$defs/a~1b%25"}"##;
    fits(escaped, "null");
    violates(escaped, "1");
    let one = r##"{"$dynamicAnchor":"n","type":"object","properties":{"c":{"$dynamicRef":"#n"}}}"##;
    fits(one, r#"{"c":{"c":{}}}"#);
    violates(one, r#"{"c":{"c":1}}"#);
    for foreign in [
        r#"{"$ref":"https://example.com/schema"}"#,
        r##"{"$ref":"#/nowhere"}"##,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r##"{"$dynamicRef":"#n","$defs":{"a":{"$dynamicAnchor":"n"},"b":{"$id":"b","$dynamicAnchor":"n"}}}"##,
    ] {
        unknown(foreign, "{}");
    }
    // What cannot be told makes nothing right that is wrong.
    violates(r#"{"allOf":[{"$ref":"https://example.com/schema"},{"type":"string"}]}"#, "1");
    fits(r#"{"anyOf":[{"$ref":"https://example.com/schema"},{"type":"integer"}]}"#, "1");
    unknown(r#"{"not":{"$ref":"https://example.com/schema"}}"#, "1");
}

#[test]
fn older_drafts_are_read_as_what_they_are() {
    let seven =
        |rest: &str| format!(r#"{{"$schema":"http://json-schema.org/draft-07/schema#",{rest}}}"#);
    fits(
        &seven(r#""items":[{"type":"string"}],"additionalItems":{"type":"null"}"#),
        r#"["",null]"#,
    );
    violates(&seven(r#""items":[{"type":"string"}],"additionalItems":false"#), r#"["",1]"#);
    violates(&seven(r#""dependencies":{"a":["b"],"c":{"minProperties":3}}"#), r#"{"a":1}"#);
    violates(&seven(r#""dependencies":{"a":["b"],"c":{"minProperties":3}}"#), r#"{"c":1}"#);
    fits(
        &seven(
            r##""definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","maxLength":0}}"##,
        ),
        r#"{"a":"long"}"#,
    );
    violates(
        &seven(
            r##""definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}}"##,
        ),
        r#"{"a":1}"#,
    );
    unknown(r#"{"$schema":"http://json-schema.org/draft-03/schema#"}"#, "{}");
    unknown(r#"{"$schema":"https://example.com/own"}"#, "{}");
    unknown(r#"{"items":[{"type":"string"}]}"#, r#"[""]"#);
}

#[test]
fn what_no_other_keyword_looked_at_is_known() {
    let schema = r##"{"$defs":{"base":{"properties":{"a":{"type":"integer"}}}},"$ref":"#/$defs/base",
        "anyOf":[{"properties":{"b":true},"required":["b"]},{"properties":{"c":true},"required":["c"]}],
        "if":{"properties":{"d":{"const":1}},"required":["d"]},"then":{"properties":{"e":true}},
        "unevaluatedProperties":false}"##;
    fits(schema, r#"{"a":1,"b":1}"#);
    fits(schema, r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#);
    violates(schema, r#"{"a":1,"b":1,"x":1}"#);
    violates(schema, r#"{"b":1,"d":2}"#);
    let items = r#"{"prefixItems":[true],"contains":{"const":7},"unevaluatedItems":false}"#;
    fits(items, "[1,7]");
    violates(items, "[1,7,2]");
    let unsure = r#"{"allOf":[{"$ref":"https://example.com/x"}],"unevaluatedProperties":false}"#;
    unknown(unsure, r#"{"a":1}"#);
}

#[test]
fn a_hostile_schema_costs_little() {
    let doubling: Vec<String> = (0..60)
        .map(|n| {
            format!(
                r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                n + 1
            )
        })
        .collect();
    let doubling =
        format!(r##"{{"$defs":{{{},"d60":{{}}}},"$ref":"#/$defs/d0"}}"##, doubling.join(","));
    let nested = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    let fork = r##"{"anyOf":[{"allOf":[{"properties":{"a":{"$ref":"#"}}},false]},{"allOf":[{"properties":{"a":{"$ref":"#"}}},false]},true]}"##;
    let since = std::time::Instant::now();
    unknown(&doubling, "{}");
    // One form that fits is enough, whatever became of the others.
    fits(fork, &nested);
    let closed = fork.replace(",true]", "]");
    assert_ne!(verdict(&closed, &nested), Verdict::Fits);
    for endless in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"$dynamicAnchor":"x","$dynamicRef":"#x"}"##,
    ] {
        unknown(endless, "{}");
    }
    let many: Vec<String> = (0..30_000).map(|n| format!("{{\"a\":{n}}}")).collect();
    violates(r#"{"maxItems":5}"#, &format!("[{}]", many.join(",")));
    fits(r#"{"uniqueItems":true,"items":{"type":"object"}}"#, &format!("[{}]", many.join(",")));
    let deep = format!("{}{}", r#"{"not":"#.repeat(100), "}".repeat(100)).replace(":}", ":{}}");
    let _ = verdict(&deep, "1");
    assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
    assert!(Schema::read(&format!(r#"{{"description":"{}"}}"#, "x".repeat(300_000))).is_err());
    assert!(Schema::read("{").is_err());
    unknown(r#"{"pattern":"(?=a)"}"#, "\"a\"");
    unknown(r#"{"patternProperties":{"(?!x)":{}},"additionalProperties":false}"#, r#"{"a":1}"#);
}

#[test]
fn what_cannot_be_used_is_neither_a_fit_nor_a_violation() {
    for odd in [
        r#"{"type":7}"#,
        r#"{"type":"text"}"#,
        r#"{"type":[]}"#,
        r#"{"required":"a"}"#,
        r#"{"maximum":"5"}"#,
        r#"{"maxLength":-1}"#,
        r#"{"enum":1}"#,
        r#"{"properties":[]}"#,
        r#"{"properties":{"a":7}}"#,
        r#"{"anyOf":[]}"#,
        r#"{"anyOf":{}}"#,
        r#"{"not":1}"#,
        r#"{"minContains":-1,"contains":{}}"#,
        "7",
        "[]",
    ] {
        let instance = r#"{"a":[1]}"#;
        let array = odd.contains("contains");
        unknown(odd, if array { "[1]" } else { instance });
    }
}

#[test]
fn a_violation_is_told_with_its_place_and_no_value() {
    let schema = r#"{"type":"object","properties":{"list":{"items":{"properties":{"a/b":{"maximum":10}}}},"name":{"maxLength":3}},"required":["list"]}"#;
    for (instance, words) in [
        (r#"{"list":[{},{"a/b":4242}]}"#, "`/list/1/a~1b` must be at most 10"),
        (r#"{"list":[],"name":"s3cret"}"#, "`/name` must have at most 3 characters"),
        ("{}", "the arguments must have a member `list`"),
        ("7", "the arguments must be an object"),
    ] {
        assert_eq!(verdict(schema, instance), Verdict::Violation(words.to_owned()));
    }
    let form = verdict(
        r#"{"properties":{"x":{"anyOf":[{"type":"string"},{"required":["q"]}]}}}"#,
        r#"{"x":{"s3cret":1}}"#,
    );
    assert_eq!(form, Verdict::Violation("`/x` fits none of the forms that are allowed".to_owned()));
}
