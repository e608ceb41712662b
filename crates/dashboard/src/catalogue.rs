//! The public catalogue, rated once at start: what the pages under `/tools` are drawn from.

use std::sync::LazyLock;

use serde_json::Value;
use sluice_domain::{Category, ToolDefinition};
use sluice_risk::catalogue::{ServerEntry, starter};
use sluice_risk::{Attack, Rating, Recommended, Rest, attacks, classify, recommended_policy};

use crate::next::segment;

/// A tool of the catalogue with its rating and rule.
#[derive(Debug)]
pub(crate) struct CatalogueTool {
    pub(crate) definition: &'static ToolDefinition,
    pub(crate) rating: Rating,
    pub(crate) rule: Recommended,
}

/// A server of the catalogue with its rated tools.
#[derive(Debug)]
pub(crate) struct CatalogueServer {
    pub(crate) entry: &'static ServerEntry,
    pub(crate) tools: Vec<CatalogueTool>,
}

static SERVERS: LazyLock<Vec<CatalogueServer>> = LazyLock::new(|| {
    starter().iter().map(|entry| CatalogueServer { entry, tools: rate(&entry.tools) }).collect()
});

fn rate(tools: &'static [ToolDefinition]) -> Vec<CatalogueTool> {
    let rate = |definition: &'static ToolDefinition| {
        let rating = classify(definition);
        let rule = sluice_risk::recommended(&definition.name, rating.category);
        CatalogueTool { definition, rating, rule }
    };
    tools.iter().map(rate).collect()
}

/// Every server.
pub(crate) fn servers() -> &'static [CatalogueServer] {
    &SERVERS
}

/// The server with this slug.
pub(crate) fn server(slug: &str) -> Option<&'static CatalogueServer> {
    SERVERS.iter().find(|server| server.entry.slug == slug)
}

/// Every tool with its server.
pub(crate) fn tools() -> impl Iterator<Item = (&'static CatalogueServer, &'static CatalogueTool)> {
    SERVERS.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
}

impl CatalogueServer {
    /// The tool of exactly this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&CatalogueTool> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }

    /// `/tools/{slug}`
    pub(crate) fn path(&self) -> String {
        format!("/tools/{}", self.entry.slug)
    }

    /// How many tools of each category, those present only.
    pub(crate) fn categories(&self) -> Vec<(Category, usize)> {
        let count = |category: &Category| {
            self.tools.iter().filter(|tool| tool.rating.category == *category).count()
        };
        Category::ALL.iter().map(|c| (*c, count(c))).filter(|(_, n)| *n > 0).collect()
    }
}

impl CatalogueTool {
    /// `/tools/{slug}/{tool}`
    pub(crate) fn path(&self, server: &CatalogueServer) -> String {
        format!("{}/{}", server.path(), segment(&self.definition.name))
    }

    /// Where the button leads: the choice travels in the query.
    pub(crate) fn start(&self, server: &CatalogueServer) -> String {
        let tool = segment(&self.definition.name);
        format!("/start?server={}&tool={tool}", segment(&server.entry.slug))
    }

    /// The policy that allows this tool under its rule and denies everything else.
    pub(crate) fn policy(&self) -> Value {
        let name = self.definition.name.as_str();
        let rated = sluice_risk::RatedTool { name, category: self.rating.category };
        recommended_policy(&[rated], Rest::Deny { only: name }).document
    }

    /// The kinds of attack that use tools like this one.
    pub(crate) fn attacks(&self) -> impl Iterator<Item = &'static Attack> {
        let category = self.rating.category;
        attacks().iter().filter(move |attack| attack.categories.contains(&category))
    }

    /// What it does: the description, or its title.
    pub(crate) fn about(&self) -> &str {
        let definition = self.definition;
        definition.description.as_deref().or(definition.title.as_deref()).unwrap_or_default()
    }
}

/// What the button of a tool's rule says.
pub(crate) fn verb(category: Category) -> &'static str {
    match category {
        Category::Read => "Allow this tool",
        Category::Write | Category::Execute => "Rate-limit this tool",
        Category::Destructive => "Hide this tool",
        Category::Financial => "Require approval for this tool",
    }
}

/// A parameter of a tool, from its input schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) about: String,
}

/// The parameters that the schema names at its top.
pub(crate) fn parameters(schema: Option<&Value>) -> Vec<Parameter> {
    let Some(schema) = schema else { return Vec::new() };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name)))
    };
    let parameter = |(name, value): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: kind(value),
        required: required(name),
        about: value.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    properties.iter().map(parameter).collect()
}

/// `string`, `array of string`, `one of a, b`, `any`.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = choices
            .iter()
            .take(8)
            .map(|c| c.as_str().map_or_else(|| c.to_string(), ToOwned::to_owned))
            .collect();
        let more = if choices.len() > 8 { ", …" } else { "" };
        return format!("one of {}{more}", shown.join(", "));
    }
    match schema.get("type") {
        Some(Value::String(word)) if word == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => "array".to_owned(),
        },
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_domain::Severity;

    use super::*;

    #[test]
    fn parameters_are_read_from_any_schema() {
        let schema = json!({"properties": {"a": {"type": "array", "items": {"type": "string"}, "description": "d"},
            "b": {"enum": ["x", 1]}, "c": true}, "required": ["a", 7]});
        let found = parameters(Some(&schema));
        let shown: Vec<_> =
            found.iter().map(|p| (p.name.as_str(), p.kind.as_str(), p.required)).collect();
        assert_eq!(
            shown,
            [("a", "array of string", true), ("b", "one of x, 1", false), ("c", "any", false)]
        );
        assert_eq!(parameters(Some(&json!([]))), []);
        assert_eq!(parameters(None), []);
    }

    #[test]
    fn the_two_tools_the_project_began_with_are_there() {
        for (slug, name) in
            [("leghis-smart-e2b", "executePython"), ("cowork-os-cowork-os", "execute_code")]
        {
            let server = server(slug).unwrap_or_else(|| panic!("no server {slug}"));
            let tool = server.tool(name).unwrap_or_else(|| panic!("no tool {name}"));
            assert_eq!(
                (tool.rating.category, tool.rating.severity),
                (Category::Execute, Severity::High)
            );
            assert_eq!(tool.start(server), format!("/start?server={slug}&tool={name}"));
        }
    }
}
