//! Properties of cut lists, and that nothing panics on any bytes.

use proptest::prelude::*;
use serde_json::Value;
use sluice_mcp::splice_tools;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

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
