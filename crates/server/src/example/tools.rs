//! The example's tools: one of each category, each honest about doing no harm.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const MAX_NOTES: usize = 100;
const MAX_CHARS: usize = 2_000;

/// Notes by title, in memory.
#[derive(Debug)]
pub(super) struct Notes(BTreeMap<String, String>);

impl Default for Notes {
    fn default() -> Self {
        let welcome = "Every call of these tools passed through your policy first.";
        Self(BTreeMap::from([("welcome".to_owned(), welcome.to_owned())]))
    }
}

/// The entries of `tools/list`.
pub(super) fn list() -> Vec<Value> {
    let title = json!({"type": "string", "description": "Title of the note"});
    vec![
        tool("read_note", "Read a note by its title.", &[("title", title.clone())]),
        tool(
            "write_note",
            "Create or update a note. Notes are kept in memory until the server restarts.",
            &[("title", title.clone()), ("text", json!({"type": "string"}))],
        ),
        tool(
            "executePython",
            "Execute Python code in a sandbox. In this example the code is counted, not run.",
            &[("code", json!({"type": "string", "description": "Python code to execute"}))],
        ),
        tool("delete_note", "Delete a note permanently.", &[("title", title)]),
        tool(
            "create_charge",
            "Charge a customer's card. In this example no money moves.",
            &[
                ("amount", json!({"type": "number", "description": "Amount to charge"})),
                ("currency", json!({"type": "string"})),
            ],
        ),
    ]
}

/// Runs one tool; `None` when there is none of that name.
pub(super) fn call(notes: &mut Notes, params: &Value) -> Option<Value> {
    let arguments = &params["arguments"];
    let text = |name: &str| -> String {
        arguments[name].as_str().unwrap_or_default().chars().take(MAX_CHARS).collect()
    };
    let said = match params["name"].as_str()? {
        "read_note" => match notes.0.get(&text("title")) {
            Some(note) => Ok(note.clone()),
            None => Err(format!("no note `{}`; there is `welcome`", text("title"))),
        },
        "write_note" => notes.write(text("title"), text("text")),
        "executePython" => {
            let lines = text("code").lines().filter(|line| !line.trim().is_empty()).count();
            Ok(format!("Received {lines} line(s) of Python. This example runs nothing."))
        }
        "delete_note" => match notes.0.remove(&text("title")) {
            Some(_) => Ok(format!("Deleted `{}`.", text("title"))),
            None => Err(format!("no note `{}`", text("title"))),
        },
        "create_charge" => {
            Ok(format!("Charged {} {}: no money moved.", arguments["amount"], text("currency")))
        }
        _ => return None,
    };
    let (text, failed) = match said {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    Some(json!({"content": [{"type": "text", "text": text}], "isError": failed}))
}

impl Notes {
    fn write(&mut self, title: String, text: String) -> Result<String, String> {
        if title.is_empty() {
            return Err("a note needs a title".to_owned());
        }
        if self.0.len() >= MAX_NOTES && !self.0.contains_key(&title) {
            return Err(format!("{MAX_NOTES} notes are enough for an example"));
        }
        let answer = format!("Saved `{title}`.");
        self.0.insert(title, text);
        Ok(answer)
    }
}

fn tool(name: &str, description: &str, properties: &[(&str, Value)]) -> Value {
    let schema: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"name": name, "description": description,
        "inputSchema": {"type": "object", "properties": schema}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_and_errors_say_why() {
        let mut notes = Notes::default();
        for number in 0..2 * MAX_NOTES {
            let arguments = json!({"title": number.to_string(), "text": "x".repeat(9_999)});
            call(&mut notes, &json!({"name": "write_note", "arguments": arguments}))
                .expect("a tool");
        }
        assert_eq!(notes.0.len(), MAX_NOTES);
        assert!(notes.0.values().all(|text| text.len() <= MAX_CHARS));
        let gone = call(&mut notes, &json!({"name": "delete_note", "arguments": {"title": "?"}}));
        assert_eq!(gone.expect("a tool")["isError"], true);
    }
}
