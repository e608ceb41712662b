//! A call that is made up: typed as JSON, or into fields that the tool's input schema gives. Pure.

use serde_json::{Map, Number, Value};
use sluice_web::FormFields;

use crate::ui::code::pretty;
use crate::ws::try_it::sample;

/// The form, as it was typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed {
    /// The fields have their arguments' names, and nothing is missing.
    pub(crate) ready: bool,
    pub(crate) tool: String,
    /// JSON text.
    pub(crate) arguments: String,
    /// The arguments were typed into fields.
    pub(crate) as_form: bool,
    /// The tool whose arguments the fields are.
    pub(crate) fields_of: String,
    /// Names of arguments and what was typed.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) grant_label: String,
    pub(crate) client_name: String,
    /// How many calls of the log.
    pub(crate) calls: String,
    /// `server`: all calls of the server instead of the policy's own.
    pub(crate) whose: String,
    /// Policy tests, as JSON.
    pub(crate) cases: String,
}

/// What an argument's field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Number,
    Boolean,
    Json,
}

/// An argument that the schema names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) takes: Takes,
    pub(crate) required: bool,
    pub(crate) about: String,
    /// The texts that the schema allows, where it lists them.
    pub(crate) choices: Vec<String>,
}

/// Fields of a form at most; a tool with more is called in JSON.
const MOST: usize = 60;

/// The arguments of a tool; none where a form cannot say them.
pub(crate) fn arguments(schema: Option<&Value>) -> Vec<Argument> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let Some(properties) = properties.filter(|all| all.len() <= MOST) else { return Vec::new() };
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    let one = |(name, property): (&String, &Value)| {
        let choices = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        let choices: Vec<&Value> = choices.collect();
        let texts: Vec<String> =
            choices.iter().filter_map(|choice| choice.as_str().map(str::to_owned)).collect();
        let closed = !texts.is_empty() && texts.len() == choices.len();
        let takes = match property.get("type").and_then(Value::as_str) {
            Some("string") => Takes::Text,
            Some("number" | "integer") => Takes::Number,
            Some("boolean") => Takes::Boolean,
            None if closed => Takes::Text,
            _ => Takes::Json,
        };
        let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
        Argument {
            name: name.clone(),
            takes,
            required: required.is_some_and(|list| list.iter().any(|one| one == name.as_str())),
            about: about.chars().take(200).collect(),
            choices: if closed { texts } else { Vec::new() },
        }
    };
    properties.iter().map(one).collect()
}

impl Typed {
    pub(crate) fn read(fields: &FormFields) -> Self {
        let get = |name: &str| fields.get(name).to_owned();
        let argument = |(name, value): &(String, String)| {
            Some((name.strip_prefix("a.")?.to_owned(), value.clone()))
        };
        Self {
            ready: false,
            tool: get("tool"),
            arguments: get("arguments"),
            as_form: fields.get("as_form") == "1",
            fields_of: get("fields_of"),
            fields: fields.0.iter().filter_map(argument).collect(),
            grant_label: get("grant_label"),
            client_name: get("client_name"),
            calls: get("calls"),
            whose: get("whose"),
            cases: get("cases"),
        }
    }

    /// Gives the fields their arguments' names: a page numbers them, since a name may be anything.
    pub(crate) fn named(&mut self, arguments: &[Argument]) {
        let name = |index: &str| Some(arguments.get(index.parse::<usize>().ok()?)?.name.clone());
        let fields = std::mem::take(&mut self.fields).into_iter();
        self.fields = fields.filter_map(|(index, text)| Some((name(&index)?, text))).collect();
    }

    /// What was typed for an argument.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The arguments as JSON text; an error names the field and says what to type.
    pub(crate) fn json(&self, arguments: &[Argument]) -> Result<String, (String, String)> {
        if !self.as_form {
            return Ok(self.arguments.clone());
        }
        let mut out = Map::new();
        for (index, argument) in arguments.iter().enumerate() {
            let text = self.field(&argument.name);
            if text.is_empty() {
                continue;
            }
            let wrong = |words: &str| (format!("a.{index}"), words.to_owned());
            let value = match argument.takes {
                Takes::Text => Value::from(text),
                Takes::Number => serde_json::from_str::<Number>(text.trim())
                    .map(Value::Number)
                    .map_err(|_| wrong("Give a number."))?,
                Takes::Boolean => Value::Bool(text == "true"),
                Takes::Json => serde_json::from_str(text)
                    .map_err(|error| wrong(&format!("This is not JSON: {error}.")))?,
            };
            out.insert(argument.name.clone(), value);
        }
        Ok(pretty(&Value::Object(out)))
    }

    /// Fills in the smallest arguments that fit the schema.
    pub(crate) fn fill(&mut self, schema: Option<&Value>) {
        let sample = sample(schema);
        self.take(&sample);
        self.arguments = pretty(&sample);
    }

    /// Fills the fields from arguments in JSON.
    pub(crate) fn take(&mut self, arguments: &Value) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = arguments.as_object().into_iter().flatten();
        self.fields = pairs.map(|(name, value)| (name.clone(), text(value))).collect();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["amount"], "properties": {
            "amount": {"type": "number", "description": "How much"}, "to": {"type": "string"},
            "currency": {"enum": ["eur", "usd"]}, "dry": {"type": "boolean"}, "items": {"type": "array"}}})
    }

    #[test]
    fn fields_come_from_the_schema_and_make_its_arguments() {
        let arguments = arguments(Some(&schema()));
        let takes: Vec<Takes> = arguments.iter().map(|argument| argument.takes).collect();
        assert_eq!(takes, [Takes::Number, Takes::Text, Takes::Text, Takes::Boolean, Takes::Json]);
        assert!(arguments[0].required && !arguments[1].required);
        assert_eq!((arguments[2].choices.len(), arguments[0].about.as_str()), (2, "How much"));
        let wanted = json!({"amount": 1, "to": "5", "dry": false, "items": [1, {"a": null}]});
        let mut typed = Typed { as_form: true, ..Typed::default() };
        typed.take(&wanted);
        let text = typed.json(&arguments).expect("arguments");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), wanted);
        typed.fields = vec![("amount".to_owned(), "9007199254740993.10".to_owned())];
        assert!(typed.json(&arguments).expect("arguments").contains("9007199254740993.10"));
        typed.fields = vec![("amount".to_owned(), "ten".to_owned())];
        assert_eq!(typed.json(&arguments).expect_err("no number").0, "a.0");
        typed.fields = vec![("1".to_owned(), "x".to_owned()), ("9".to_owned(), "y".to_owned())];
        typed.named(&arguments);
        assert_eq!(typed.fields, [("to".to_owned(), "x".to_owned())]);
        typed.fill(Some(&schema()));
        assert_eq!(typed.field("amount"), "1");
    }
}
