//! Mutated messages: the scanner refuses them, or reads exactly what another parser reads.

use proptest::prelude::*;
use serde_json::Value;
use sluice_mcp::{Kind, splice_tools};

const SEEDS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{"b":1.0e2}],"c":"\u00e9\n"},"_meta":{"progressToken":"t"}}}"#,
    r#"{"params":{"arguments":{},"name":"ec\u0068o"},"method":"tools\/call","id":"x","jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"r"}}"#,
    r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"}{"}]}}"#,
    r#" { "jsonrpc" : "2.0" , "id" : -5 , "method" : "initialize" , "params" : { "clientInfo" : { "name" : "c" } } } "#,
];

const PIECES: &[&str] = &[
    "\"name\":\"x\",",
    "\"Name\":1,",
    "\"id\":2,",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "1e999",
    "-",
    "0",
    ".",
    "\u{feff}",
    "\u{17f}",
    "\u{212a}",
    " ",
    "\n",
    "\t",
    "\0",
    "é",
    "\\u006e",
    "true",
    "\"method\":\"tools/call\",",
    "\"arguments\":[],",
    "\"params\":{},",
    "/*",
    "'",
    "NaN",
    "\"\":0,",
];

#[derive(Debug, Clone)]
enum Edit {
    Cut(usize, usize),
    Put(usize, usize),
    Flip(usize, u8),
    Repeat(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<usize>(), 0_usize..12).prop_map(|(at, len)| Edit::Cut(at, len)),
        (any::<usize>(), 0..PIECES.len()).prop_map(|(at, piece)| Edit::Put(at, piece)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
        (any::<usize>(), 1_usize..40).prop_map(|(at, len)| Edit::Repeat(at, len)),
    ]
}

fn apply(body: &mut Vec<u8>, edit: &Edit) {
    let len = body.len();
    let place = |at: usize| if len == 0 { 0 } else { at % len };
    match edit {
        Edit::Cut(at, count) => {
            let at = place(*at);
            body.drain(at..(at + count).min(len));
        }
        Edit::Put(at, piece) => {
            let at = place(*at);
            body.splice(at..at, PIECES[*piece].bytes());
        }
        Edit::Flip(at, byte) if len > 0 => body[place(*at)] = *byte,
        Edit::Flip(..) => {}
        Edit::Repeat(at, count) => {
            let at = place(*at);
            let copy = body[at..(at + count).min(len)].to_vec();
            body.splice(at..at, copy);
        }
    }
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    (0..SEEDS.len(), proptest::collection::vec(edit(), 0..6)).prop_map(|(seed, edits)| {
        let mut body = SEEDS[seed].as_bytes().to_vec();
        for edit in &edits {
            apply(&mut body, edit);
        }
        body
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_scanner_refuses_or_agrees(body in mutated()) {
        let Ok(envelope) = sluice_mcp::read(&body) else { return Ok(()) };
        let other: Value = serde_json::from_slice(&body).expect("what the scanner takes is JSON");
        prop_assert_eq!(&other["jsonrpc"], "2.0");
        if envelope.kind == Kind::Response {
            prop_assert!(other.get("method").is_none());
        } else {
            prop_assert_eq!(other["method"].as_str(), Some(&*envelope.method));
        }
        let id: Option<Value> = envelope.id.map(|id| serde_json::from_str(id.as_str()).expect("JSON"));
        prop_assert_eq!(other.get("id"), id.as_ref());
        if let Some(tool) = &envelope.tool {
            prop_assert_eq!(other["params"]["name"].as_str(), Some(&*tool.name));
            let arguments: Value = serde_json::from_str(tool.arguments).expect("JSON");
            let theirs = other["params"].get("arguments").filter(|value| !value.is_null());
            let none = Value::Object(serde_json::Map::new());
            prop_assert_eq!(theirs.unwrap_or(&none), &arguments);
        } else if envelope.kind != Kind::Response {
            prop_assert_ne!(other["method"].as_str(), Some("tools/call"));
        }
        // Read once more by a parser that keeps the first of two equal names: nothing may differ.
        let names = all_names(std::str::from_utf8(&body).expect("UTF-8"));
        prop_assert!(names, "a name occurs twice in one object");
    }

    #[test]
    fn a_cut_list_is_the_list_without_the_tools(
        names in proptest::collection::vec("[a-d]{1,2}", 0..8),
        hidden in "[a-d]",
        private in any::<bool>(),
        space in "[ \n\t]{0,2}",
    ) {
        let tools: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{space}{{"x":1.0,{space}"name":{space}"{name}","y":[{{"name":"b"}}]}}{space}"#))
            .collect();
        let body = format!(r#"{{"id":1,"result":{{"tools":[{}],"nextCursor":"c"}}}}"#, tools.join(","));
        let list = splice_tools(body.as_bytes(), &mut |name| !name.starts_with(&hidden), private).expect("JSON");
        let after: Value = serde_json::from_slice(list.body.as_deref().unwrap_or(body.as_bytes())).expect("JSON");
        let mut expected: Value = serde_json::from_str(&body).expect("JSON");
        let tools = expected["result"]["tools"].as_array_mut().expect("a list");
        tools.retain(|tool| !tool["name"].as_str().expect("a name").starts_with(&hidden));
        if private {
            expected["result"]["cacheScope"] = "private".into();
        }
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn nothing_panics_on_any_bytes(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = sluice_mcp::read(&body);
        let _ = splice_tools(&body, &mut |_| true, true);
        let _ = sluice_mcp::event_data(&body);
        let _ = sluice_mcp::with_data(&body, b"x");
    }
}

/// Whether no object in `text` holds a name twice, by a reader that keeps every pair.
fn all_names(text: &str) -> bool {
    struct Pairs(bool);
    impl<'de> serde::Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Visit)
        }
    }
    struct Visit;
    impl<'de> serde::de::Visitor<'de> for Visit {
        type Value = Pairs;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_u64<E>(self, _: u64) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_f64<E>(self, _: f64) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_str<E>(self, _: &str) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_unit<E>(self) -> Result<Pairs, E> {
            Ok(Pairs(true))
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Pairs, A::Error> {
            let mut fine = true;
            while let Some(Pairs(inner)) = seq.next_element()? {
                fine &= inner;
            }
            Ok(Pairs(fine))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
            let mut names = std::collections::HashSet::new();
            let mut fine = true;
            while let Some((name, Pairs(inner))) = map.next_entry::<String, Pairs>()? {
                fine &= inner && names.insert(name);
            }
            Ok(Pairs(fine))
        }
    }
    serde_json::from_str::<Pairs>(text).is_ok_and(|pairs| pairs.0)
}
