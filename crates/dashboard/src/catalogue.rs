//! The public catalogue as pages show it: rated records, and rows of lists. The starter set is rated once at
//! start, what the database keeps when it is shown.

use std::cmp::Reverse;
use std::ops::Deref;
use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Redirect, Response};
use serde_json::Value;
use sluice_control::catalogue::{CatalogueRecord, RecordChange, Shelf, ShelfServer, ShelfTool};
use sluice_control::{Control, ControlError};
use sluice_domain::{Category, Severity, ToolDefinition};
use sluice_risk::catalogue::{ServerEntry, starter};
use sluice_risk::grade::{Grade, token_weight};
use sluice_risk::{
    Attack, Finding, Rating, Recommended, RecommendedPolicy, Rest, attacks, classify, findings,
    recommended_policy,
};

use crate::next::segment;

/// A tool of the catalogue with its rating and rule.
#[derive(Debug)]
pub(crate) struct CatalogueTool {
    pub(crate) definition: ToolDefinition,
    pub(crate) rating: Rating,
    pub(crate) findings: Vec<Finding>,
    pub(crate) rule: Recommended,
}

/// A server of the catalogue with its rated tools.
#[derive(Debug)]
pub(crate) struct CatalogueServer {
    pub(crate) entry: ServerEntry,
    pub(crate) tools: Vec<CatalogueTool>,
    pub(crate) grade: Grade,
    /// Newest first.
    pub(crate) changes: Vec<RecordChange>,
    /// How many of the tools a workspace gave.
    pub(crate) given: usize,
}

/// A server of the starter set, or one that the database keeps.
#[derive(Debug)]
pub(crate) enum Shown {
    Starter(&'static CatalogueServer),
    Kept(Box<CatalogueServer>),
}

impl Deref for Shown {
    type Target = CatalogueServer;

    fn deref(&self) -> &CatalogueServer {
        match self {
            Self::Starter(server) => server,
            Self::Kept(server) => server,
        }
    }
}

static SERVERS: LazyLock<Vec<CatalogueServer>> = LazyLock::new(|| {
    let record = |entry: &ServerEntry| CatalogueRecord {
        entry: entry.clone(),
        watched: None,
        changes: Vec::new(),
        given: 0,
    };
    starter().iter().map(|entry| CatalogueServer::of(record(entry))).collect()
});

fn rated(definition: ToolDefinition) -> CatalogueTool {
    let rating = classify(&definition);
    let rule = sluice_risk::recommended(&definition.name, rating.category);
    CatalogueTool { findings: findings(&definition), definition, rating, rule }
}

/// Every server of the starter set.
pub(crate) fn servers() -> &'static [CatalogueServer] {
    &SERVERS
}

/// The server of the starter set with this slug.
pub(crate) fn server(slug: &str) -> Option<&'static CatalogueServer> {
    SERVERS.iter().find(|server| server.entry.slug == slug)
}

/// The server with this slug, wherever it is kept.
pub(crate) async fn find(control: &Control, slug: &str) -> Result<Option<Shown>, ControlError> {
    if let Some(server) = server(slug).filter(|_| !control.shelf().has_joined(slug)) {
        return Ok(Some(Shown::Starter(server)));
    }
    let record = control.catalogue_record(slug).await?;
    Ok(record.map(|record| Shown::Kept(Box::new(CatalogueServer::of(record)))))
}

/// Where the page of a record that is part of another went; `tool` is a tool of it, or nothing.
pub(crate) fn joined(shelf: &Shelf, slug: &str, tool: &str) -> Option<Response> {
    let (plain, ending) = match slug.rsplit_once('.') {
        Some((plain, ending @ ("md" | "json"))) if tool.is_empty() => (plain, format!(".{ending}")),
        _ => (slug, String::new()),
    };
    let other = shelf.joined(plain)?;
    let tool = if tool.is_empty() { String::new() } else { format!("/{}", segment(tool)) };
    Some(Redirect::temporary(&format!("/tools/{other}{ending}{tool}")).into_response())
}

/// Every tool of the starter set with its server.
pub(crate) fn tools() -> impl Iterator<Item = (&'static CatalogueServer, &'static CatalogueTool)> {
    SERVERS.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
}

/// A tool in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct ToolRow {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) server: String,
    pub(crate) server_name: String,
    pub(crate) server_path: String,
    pub(crate) category: Category,
    pub(crate) severity: Severity,
    /// Its definition has signs of poison.
    pub(crate) poisoned: bool,
    pub(crate) about: String,
}

impl ToolRow {
    pub(crate) fn of(server: &CatalogueServer, tool: &CatalogueTool) -> Self {
        Self {
            name: tool.definition.name.clone(),
            path: tool.path(server),
            server: server.entry.slug.clone(),
            server_name: server.entry.owner_name.clone(),
            server_path: server.path(),
            category: tool.rating.category,
            severity: tool.rating.severity,
            poisoned: !tool.findings.is_empty(),
            about: tool.about().to_owned(),
        }
    }

    pub(crate) fn on_shelf(server: &ShelfServer, tool: &ShelfTool) -> Self {
        let server_path = format!("/tools/{}", server.slug);
        Self {
            name: tool.name.to_string(),
            path: format!("{server_path}/{}", segment(&tool.name)),
            server: server.slug.to_string(),
            server_name: server.owner_name.to_string(),
            server_path,
            category: tool.category,
            severity: tool.severity,
            poisoned: tool.poisoned,
            about: tool.about.to_string(),
        }
    }

    /// Rows of tools on the shelf.
    pub(crate) fn all(shelf: &Shelf, tools: &[&ShelfTool]) -> Vec<Self> {
        tools.iter().map(|tool| Self::on_shelf(shelf.server_of(tool), tool)).collect()
    }
}

/// A server in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerRow {
    pub(crate) slug: String,
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) owner_name: String,
    pub(crate) summary: String,
    pub(crate) tools: String,
}

impl ServerRow {
    pub(crate) fn on_shelf(server: &ShelfServer) -> Self {
        Self {
            slug: server.slug.to_string(),
            path: format!("/tools/{}", server.slug),
            title: server.title.to_string(),
            owner_name: server.owner_name.to_string(),
            summary: server.summary.to_string(),
            tools: match server.tools {
                0 => "no tool is known yet".to_owned(),
                count => crate::ui::text::count(count as usize, "tool", None),
            },
        }
    }
}

/// How many there are of each kind.
type Counts<T> = Vec<(T, usize)>;

impl CatalogueServer {
    /// Rates a record, the gravest tools first.
    pub(crate) fn of(record: CatalogueRecord) -> Self {
        let grade = record.grade();
        let CatalogueRecord { mut entry, changes, given, .. } = record;
        let mut tools: Vec<CatalogueTool> =
            std::mem::take(&mut entry.tools).into_iter().map(rated).collect();
        tools.sort_by_key(|tool| Reverse((tool.rating.severity, tool.rating.category as u8)));
        Self { entry, tools, grade, changes, given }
    }

    /// How many tools there are of each severity and of each category, the gravest first; none of those without.
    pub(crate) fn counts(&self) -> (Counts<Severity>, Counts<Category>) {
        let of = |holds: &dyn Fn(&Rating) -> bool| {
            self.tools.iter().filter(|tool| holds(&tool.rating)).count()
        };
        let severities = Severity::ALL.iter().rev();
        let severities = severities.map(|one| (*one, of(&|rating| rating.severity == *one)));
        let categories = Category::ALL.iter().rev();
        let categories = categories.map(|one| (*one, of(&|rating| rating.category == *one)));
        (
            severities.filter(|(_, count)| *count > 0).collect(),
            categories.filter(|(_, count)| *count > 0).collect(),
        )
    }

    /// About how many tokens a model reads before it has done anything.
    pub(crate) fn token_weight(&self) -> usize {
        self.tools.iter().map(|tool| token_weight(&tool.definition)).sum()
    }

    /// The recommended rules of all its tools as one policy.
    pub(crate) fn policy(&self) -> RecommendedPolicy {
        let rated: Vec<_> = self
            .tools
            .iter()
            .map(|tool| sluice_risk::RatedTool {
                name: &tool.definition.name,
                category: tool.rating.category,
            })
            .collect();
        recommended_policy(&rated, Rest::Recommended)
    }

    /// The tool of exactly this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&CatalogueTool> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }

    /// `/tools/{slug}`
    pub(crate) fn path(&self) -> String {
        format!("/tools/{}", self.entry.slug)
    }
}

impl CatalogueTool {
    /// `/tools/{slug}/{tool}`
    pub(crate) fn path(&self, server: &CatalogueServer) -> String {
        format!("{}/{}", server.path(), segment(&self.definition.name))
    }

    /// The picture that social sites show beside a link.
    pub(crate) fn card(&self, server: &CatalogueServer) -> String {
        format!("/cards/{}/{}", server.entry.slug, segment(&self.definition.name))
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
        let definition = &self.definition;
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
