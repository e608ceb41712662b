use super::*;

fn fault(text: &str) -> Option<&'static str> {
    scan(text, MAX_DEPTH).unwrap_or_else(|e| panic!("{text}: {e}")).fault
}

#[test]
fn a_name_that_a_reader_gives_a_meaning_of_its_own_is_a_fault() {
    for key in ["$serde_json::private::Number", "\\u0024serde_json::private::RawValue"] {
        let text = format!(r#"{{"params":{{"arguments":{{"a":[{{"{key}":"5"}}]}}}}}}"#);
        assert!(fault(&text).is_some_and(|fault| fault.contains("private")), "{text}");
    }
    assert_eq!(fault(r#"{"a":{"serde_json::private::Number":1}}"#), None);
}

#[test]
fn the_grammar_is_exactly_json() {
    for text in
        ["{}", " [ ] ", "\"\\u0000\"", "-0.0e-0", "1E400", "null", "[1,{\"a\":[]}]", "\"\u{7f}\""]
    {
        assert!(scan(text, MAX_DEPTH).is_ok(), "{text}");
    }
    for text in [
        "",
        "{",
        "{}}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "nul",
        "'a'",
        "\"\t\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\u{feff}{}",
        "[1 2]",
        "{\"a\" 1}",
        "NaN",
        "// x\n1",
        "\u{a0}1",
        "1\u{b}",
        "{,}",
        "\"",
        "\"\\",
        "tru",
    ] {
        let code = scan(text, MAX_DEPTH).map_or_else(|e| e.code, |_| 0);
        assert_eq!(code, codes::PARSE_ERROR, "{text:?}");
    }
}

#[test]
fn duplicates_are_found_at_every_depth_and_after_unescaping() {
    assert!(fault(r#"{"a":1,"b":{"c":[{"x":1,"\u0078":2}]}}"#).is_some());
    assert!(fault(r#"{"na\u006de":1,"name":2}"#).is_some());
    assert!(fault(r#"{"a":{"x":1},"b":{"x":1},"x":[{"x":1},{"x":2}]}"#).is_none());
    let many: Vec<String> = (0..200).map(|i| format!("\"k{i}\":{{\"k0\":1}}")).collect();
    assert!(fault(&format!("{{{}}}", many.join(","))).is_none());
    assert!(fault(&format!("{{{},\"k3\":0}}", many.join(","))).is_some());
    assert!(fault(&format!("{{{},\"k199\":0}}", many.join(","))).is_some());
}

#[test]
fn names_like_reserved_ones_are_faults_only_where_they_are_reserved() {
    assert!(fault(r#"{"Method":"x"}"#).is_some());
    assert!(fault(r#"{"params":{"Name":"x"}}"#).is_some());
    assert!(fault(r#"{"params":{"arguments":{"Name":"x","METHOD":1}}}"#).is_none());
}

#[test]
fn lone_surrogates_are_faults() {
    assert!(fault(r#"{"a":"\ud800"}"#).is_some());
    assert!(fault(r#"{"\udc00":1}"#).is_some());
    assert!(fault(r#"{"a":"\ud83d\ude00"}"#).is_none());
}

#[test]
fn depth_is_bounded() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(scan(&nested(MAX_DEPTH), MAX_DEPTH).is_ok());
    assert!(scan(&nested(MAX_DEPTH + 1), MAX_DEPTH).is_err());
    assert!(scan(&"[".repeat(100_000), MAX_DEPTH).is_err());
}
