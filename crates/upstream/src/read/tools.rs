//! Collects the pages of `tools/list` into definitions, within bounds.

use std::collections::HashSet;

use serde_json::Value;
use sluice_domain::ToolDefinition;

use super::ReadError;

pub(crate) const MAX_TOOLS: usize = 2_000;
pub(crate) const MAX_PAGES: usize = 200;
/// All definitions together, as JSON text.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_NAME: usize = 256;

/// What has been collected so far.
#[derive(Default)]
pub(super) struct Collected {
    tools: Vec<ToolDefinition>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    next: Option<String>,
    pages: usize,
    bytes: usize,
}

impl Collected {
    pub(super) fn next_cursor(&self) -> Option<&str> {
        self.next.as_deref()
    }

    pub(super) fn into_tools(self) -> Vec<ToolDefinition> {
        self.tools
    }

    /// Takes a page; says whether there is another.
    pub(super) fn take(&mut self, page: Value) -> Result<bool, ReadError> {
        let Value::Object(mut page) = page else { return Err(ReadError::NotMcp) };
        let Some(Value::Array(entries)) = page.remove("tools") else {
            return Err(ReadError::NotMcp);
        };
        if self.tools.len() + entries.len() > MAX_TOOLS {
            return Err(ReadError::TooManyTools(MAX_TOOLS));
        }
        for entry in entries {
            self.bytes += entry.to_string().len();
            if self.bytes > MAX_BYTES {
                return Err(ReadError::TooLarge(MAX_BYTES / (1024 * 1024)));
            }
            let index = self.tools.len();
            if has_odd_name(&entry) {
                // One name that nobody can call must not hide the rest; the tool counts as unknown.
                continue;
            }
            let tool = self.tool(entry);
            self.tools.push(tool.map_err(|problem| ReadError::InvalidTool { index, problem })?);
        }
        self.pages += 1;
        self.next = match page.remove("nextCursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor),
            Some(_) => return Err(ReadError::NotMcp),
        };
        match &self.next {
            None => Ok(false),
            Some(_) if self.pages >= MAX_PAGES => Err(ReadError::Endless("too many pages")),
            Some(cursor) if !self.cursors.insert(cursor.clone()) => {
                Err(ReadError::Endless("a page comes again"))
            }
            Some(_) => Ok(true),
        }
    }

    fn tool(&mut self, entry: Value) -> Result<ToolDefinition, String> {
        if !entry.is_object() {
            return Err("it is not an object".to_owned());
        }
        let name = match entry.get("name") {
            None => return Err("it has no name".to_owned()),
            Some(Value::String(name)) => name.clone(),
            Some(_) => return Err("its name is not a text".to_owned()),
        };
        if name.is_empty() {
            return Err("its name is empty".to_owned());
        }
        if entry.get("inputSchema").is_some_and(|schema| !schema.is_object()) {
            return Err(format!("the input schema of `{name}` is not an object"));
        }
        if !self.names.insert(name.clone()) {
            return Err(format!("`{name}` is listed twice"));
        }
        serde_json::from_value(entry)
            .map_err(|_| format!("a member of `{name}` has the wrong type"))
    }
}

/// A name that is too long to keep, or cannot be shown.
fn has_odd_name(entry: &Value) -> bool {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    name.len() > MAX_NAME || name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pages_are_joined_in_order_and_digits_are_kept() {
        let mut collected = Collected::default();
        let page = r#"{"tools":[{"name":"b","inputSchema":{"maximum":1.10}}],"nextCursor":"2"}"#;
        assert!(collected.take(serde_json::from_str(page).expect("json")).expect("fine"));
        assert_eq!(collected.next_cursor(), Some("2"));
        assert!(!collected.take(json!({"tools": [{"name": "a", "x-vendor": 1}]})).expect("fine"));
        let tools = collected.into_tools();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let schema = tools[0].input_schema.as_ref().expect("kept");
        assert_eq!(schema.to_string(), r#"{"maximum":1.10}"#);
    }

    #[test]
    fn what_is_not_a_tool_is_named() {
        let long = "n".repeat(300);
        for (entry, words) in [
            (json!("t"), "it is not an object"),
            (json!({"title": "t"}), "it has no name"),
            (json!({"name": 1}), "its name is not a text"),
            (json!({"name": ""}), "its name is empty"),
            (json!({"name": "t", "inputSchema": []}), "input schema of `t`"),
            (json!({"name": "t", "description": 7}), "member of `t`"),
        ] {
            let error = Collected::default().take(json!({"tools": [entry]})).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.code(), "upstream_invalid_tools");
        }
        let mut odd = Collected::default();
        let page = json!({"tools": [{"name": long}, {"name": "a\u{0}"}, {"name": "fine"}]});
        odd.take(page).expect("one odd name does not hide the rest");
        assert_eq!(odd.into_tools().len(), 1);
        let twice = json!({"tools": [{"name": "t"}, {"name": "t"}]});
        let error = Collected::default().take(twice).expect_err("twice");
        assert_eq!(
            error.to_string(),
            "entry 1 of the server's list is not a tool: `t` is listed twice"
        );
    }

    #[test]
    fn lists_without_end_end() {
        let mut collected = Collected::default();
        assert!(collected.take(json!({"tools": [], "nextCursor": "1"})).expect("fine"));
        let again = collected.take(json!({"tools": [], "nextCursor": "1"})).expect_err("again");
        assert_eq!(again.code(), "upstream_too_large");
        let mut collected = Collected::default();
        let last = (0..MAX_PAGES)
            .map(|n| collected.take(json!({"tools": [], "nextCursor": n.to_string()})))
            .last();
        assert!(matches!(last, Some(Err(ReadError::Endless(_)))));
        let many: Vec<_> = (0..=MAX_TOOLS).map(|n| json!({"name": n.to_string()})).collect();
        let error = Collected::default().take(json!({"tools": many})).expect_err("too many");
        assert!(matches!(error, ReadError::TooManyTools(_)));
    }
}
