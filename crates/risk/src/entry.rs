//! A tool's name as the key of a policy entry. In a policy, `*` and `?` make a pattern; a tool whose own
//! name holds one must not open, or close, other tools.

use serde_json::{Map, Value, json};

/// The key that stands for exactly one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) key: String,
    /// The name for sentences.
    pub(crate) shown: String,
}

impl<'a> EntryKey<'a> {
    pub(crate) fn of(name: &'a str) -> Self {
        Self { name, key: name.replace('*', "?"), shown: format!("`{name}`") }
    }

    /// The key matches this name alone.
    pub(crate) fn is_exact(&self) -> bool {
        !self.name.contains(['*', '?'])
    }

    /// `{"tools": {key: rules}}`, which no other tool's call fits.
    pub(crate) fn fragment(&self, mut rules: Map<String, Value>) -> Value {
        if !self.is_exact() {
            let only =
                json!({"conditions": [{"path": "tool.name", "op": "eq", "value": self.name}]});
            match rules.get_mut("require").and_then(Value::as_array_mut) {
                Some(require) => require.insert(0, only),
                None => {
                    rules.insert("require".to_owned(), json!([only]));
                }
            }
        }
        json!({"tools": Value::Object(Map::from_iter([(self.key.clone(), Value::Object(rules))]))})
    }
}
