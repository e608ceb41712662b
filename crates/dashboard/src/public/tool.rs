//! `/tools/{server}/{tool}`: what a tool does, how risky it is and why, and the rule that bounds it.
//! Also as Markdown and JSON.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};
use sluice_domain::Category;
use sluice_risk::{Attack, Direction, RuleOption, options};

use super::{Form, form, structured};
use crate::DashboardState;
use crate::catalogue::{self, CatalogueServer, CatalogueTool, Parameter, parameters, verb};
use crate::desk::refuse;
use crate::filters;
use crate::frame::PublicFrame;
use crate::ui::{Code, Diff, Html, code::pretty, text::ticks};
use crate::visitor::Visitor;
use crate::{errors, page};

#[derive(Debug, Template)]
#[template(path = "public/tool.html")]
struct ToolPage<'a> {
    frame: PublicFrame,
    server: &'a CatalogueServer,
    tool: &'a CatalogueTool,
    verb: &'static str,
    parameters: Vec<Parameter>,
    change: Diff,
    policy: Code,
    offers: Vec<(String, Html, Code)>,
    refusal: Html,
    attacks: Vec<&'static Attack>,
    questions: Vec<(Html, Html)>,
    related: Vec<&'a CatalogueTool>,
    structured: Html,
}

#[derive(Debug, Template)]
#[template(path = "public/tool.md")]
struct ToolText<'a> {
    base: String,
    server: &'a CatalogueServer,
    tool: &'a CatalogueTool,
    verb: &'static str,
    policy: String,
    parameters: Vec<Parameter>,
    attacks: Vec<&'static Attack>,
    offers: Vec<Offer>,
    questions: Vec<(String, String)>,
}

/// An argument rule that the schema makes plain, with the values of its empty fields.
#[derive(Debug)]
struct Offer {
    title: String,
    sentence: String,
    rule: String,
}

fn offers(tool: &CatalogueTool) -> impl Iterator<Item = (RuleOption, Value)> {
    options(&tool.definition).into_iter().filter_map(|it| it.example().map(|rule| (it, rule)))
}

fn shown_offers(tool: &CatalogueTool) -> Vec<Offer> {
    offers(tool)
        .map(|(it, rule)| Offer { title: it.title, sentence: it.sentence, rule: pretty(&rule) })
        .collect()
}

/// What the agent reads when the rule stops a call.
fn refusal(tool: &CatalogueTool) -> Html {
    let name = &tool.definition.name;
    ticks(&match tool.rating.category {
        Category::Read => "Nothing is refused: the rule allows every call and logs it.".to_owned(),
        Category::Write => {
            format!("[POLICY DENIED] `{name}` is limited to 30 calls a minute. Retry after 23 s.")
        }
        Category::Execute => {
            format!("[POLICY DENIED] `{name}` is limited to 10 calls a minute. Retry after 23 s.")
        }
        Category::Destructive => {
            "The same answer as for a tool that does not exist. The log tells the two apart."
                .to_owned()
        }
        Category::Financial => format!(
            "[APPROVAL REQUIRED] The call of `{name}` waits for a person; the answer holds the address where it is decided."
        ),
    })
}

fn why(tool: &CatalogueTool) -> String {
    let rating = &tool.rating;
    if rating.is_unknown() {
        return "Nothing in its definition says what it does, so it is rated as if it changes things. What is unknown is not taken to be harmless.".to_owned();
    }
    let moved: Vec<String> = rating
        .modifiers
        .iter()
        .filter(|m| m.direction != Direction::None)
        .map(|m| format!("{} {} it", m.kind, m.direction))
        .collect();
    let moved =
        if moved.is_empty() { String::new() } else { format!(" Then: {}.", moved.join("; ")) };
    format!(
        "It is {} {} tool, and those start at {}.{moved}",
        if "AEIOU".contains(&rating.category.as_str()[..1]) { "an" } else { "a" },
        rating.category,
        rating.base
    )
}

fn questions(tool: &CatalogueTool) -> Vec<(String, String)> {
    let name = &tool.definition.name;
    [
        (format!("Why is `{name}` rated {}?", tool.rating.severity), why(tool)),
        ("Do the server's own hints count?".to_owned(),
            "They are shown, but a hint alone never lowers a rating: the server that is rated wrote it.".to_owned()),
        ("Does Sluice run the tool?".to_owned(),
            "No. Sluice stands between the agent and the server: it decides each call, counts it, and forwards the same bytes or refuses.".to_owned()),
        ("Does a rating mean that the tool is harmless, or that it is not?".to_owned(),
            "Neither. It says which words of the definition were found and what kind of call they announce. What the server does with a call, only the server knows.".to_owned()),
    ]
    .into()
}

fn value(server: &CatalogueServer, tool: &CatalogueTool, base: &str) -> Value {
    let attacks: Vec<&str> = tool.attacks().map(|attack| attack.slug.as_str()).collect();
    let option_values: Vec<Value> = offers(tool)
        .map(|(it, rule)| {
            json!({"kind": it.kind, "path": it.path, "title": it.title, "sentence": it.sentence,
                "fields": it.fields, "example": rule})
        })
        .collect();
    json!({"name": tool.definition.name, "server": server.entry.slug, "description": tool.definition.description,
        "category": tool.rating.category, "severity": tool.rating.severity, "base_severity": tool.rating.base,
        "confidence": tool.rating.confidence, "reasons": tool.rating.reasons, "modifiers": tool.rating.modifiers,
        "signals": tool.rating.signals, "findings": tool.findings, "grade": server.grade,
        "identity": server.entry.identity, "as_of": server.entry.as_of, "rule": tool.rule.fragment, "sentence": tool.rule.sentence,
        "options": option_values, "policy": tool.policy(), "input_schema": tool.definition.input_schema, "attacks": attacks,
        "url": format!("{base}{}", tool.path(server)), "start": format!("{base}{}", tool.start(server))})
}

/// The tool of that name, also when the name itself ends in `.md`.
fn find<'a>(server: &'a CatalogueServer, text: &str) -> Option<(&'a CatalogueTool, Form)> {
    if let Some(tool) = server.tool(text) {
        return Some((tool, Form::Html));
    }
    let (name, wanted) = form(text);
    server.tool(name).map(|tool| (tool, wanted))
}

fn show(visitor: Visitor, server: &CatalogueServer, tool: &CatalogueTool) -> Response {
    let questions = questions(tool);
    let empty = pretty(&json!({"version": "1", "default": "deny", "tools": {}}));
    let policy = pretty(&tool.policy());
    let is_related = |other: &&CatalogueTool| other.definition.name != tool.definition.name;
    page::public(&ToolPage {
        structured: structured::tool(server, tool, &questions, visitor.base()),
        frame: visitor.frame("tools", &tool.path(server)),
        server,
        tool,
        verb: verb(tool.rating.category),
        parameters: parameters(tool.definition.input_schema.as_ref()),
        change: Diff::new("Change to an empty policy", &empty, &policy),
        policy: Code::json("The whole policy", &policy),
        offers: shown_offers(tool)
            .into_iter()
            .map(|it| (it.title, ticks(&it.sentence), Code::json("With values of yours", &it.rule)))
            .collect(),
        refusal: refusal(tool),
        attacks: tool.attacks().collect(),
        questions: questions
            .iter()
            .map(|(question, answer)| (ticks(question), ticks(answer)))
            .collect(),
        related: server.tools.iter().filter(is_related).take(8).collect(),
    })
}

pub(crate) async fn get(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path((slug, text)): Path<(String, String)>,
) -> Response {
    if let Some(other) = catalogue::joined(&state.control().shelf(), &slug, &text) {
        return other;
    }
    let server = match catalogue::find(state.control(), &slug).await {
        Ok(Some(server)) => server,
        Ok(None) => return errors::not_found(visitor),
        Err(error) => return refuse(error),
    };
    let server = &*server;
    let Some((tool, wanted)) = find(server, &text) else { return errors::not_found(visitor) };
    match wanted {
        Form::Html => show(visitor, server, tool),
        Form::Json => page::json(&value(server, tool, visitor.base())),
        Form::Markdown => {
            let text = ToolText {
                base: visitor.base().to_owned(),
                server,
                tool,
                verb: verb(tool.rating.category),
                policy: pretty(&tool.policy()),
                parameters: parameters(tool.definition.input_schema.as_ref()),
                attacks: tool.attacks().collect(),
                offers: shown_offers(tool),
                questions: questions(tool),
            };
            page::text("text/markdown; charset=utf-8", text.render().unwrap_or_default())
        }
    }
}
