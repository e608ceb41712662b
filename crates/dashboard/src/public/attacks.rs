//! `/attacks` and `/attacks/{slug}`: kinds of attack and the policy that stops or limits each.

use std::fmt::Write as _;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};
use sluice_risk::{Attack, ScenarioOutcome, attacks};

use super::{Form, form};
use crate::catalogue::{self, CatalogueTool, ToolRow};
use crate::filters;
use crate::frame::PublicFrame;
use crate::ui::Code;
use crate::ui::code::pretty;
use crate::visitor::Visitor;
use crate::{errors, page};

#[derive(Debug, Template)]
#[template(path = "public/attacks.html")]
struct AttacksPage {
    frame: PublicFrame,
    attacks: &'static [Attack],
}

#[derive(Debug, Template)]
#[template(path = "public/attack.html")]
struct AttackPage {
    frame: PublicFrame,
    attack: &'static Attack,
    paragraphs: Vec<&'static str>,
    policy: Code,
    call: Code,
    outcome: &'static str,
    tools: Vec<ToolRow>,
    others: Vec<&'static Attack>,
}

pub(crate) async fn list(visitor: Visitor) -> Response {
    page::public(&AttacksPage { frame: visitor.frame("attacks", "/attacks"), attacks: attacks() })
}

/// `/attacks.md`
pub(crate) async fn list_text(visitor: Visitor) -> Response {
    let base = visitor.base();
    let mut text = String::from("# Attacks on agents and their tools\n\n");
    for attack in attacks() {
        let (title, slug, summary) = (&attack.title, &attack.slug, &attack.summary);
        let _ = writeln!(text, "- [{title}]({base}/attacks/{slug}.md): {summary}");
    }
    page::text("text/markdown; charset=utf-8", text)
}

/// `/attacks.json`
pub(crate) async fn list_value(visitor: Visitor) -> Response {
    let base = visitor.base();
    let all: Vec<Value> = attacks()
        .iter()
        .map(|attack| {
            json!({"slug": attack.slug, "title": attack.title, "summary": attack.summary,
                "categories": attack.categories, "url": format!("{base}/attacks/{}", attack.slug)})
        })
        .collect();
    page::json(&json!({"attacks": all}))
}

/// An attack in Markdown.
fn markdown(attack: &Attack, base: &str) -> String {
    let categories: Vec<&str> = attack.categories.iter().map(|it| it.as_str()).collect();
    let mut text = format!(
        "# {}\n\n{}\n\nTools: {}\n\n## How it works\n\n{}\n",
        attack.title,
        attack.summary,
        categories.join(", "),
        attack.how
    );
    if let Some(incident) = &attack.incident {
        let _ = write!(
            text,
            "\n## It has happened\n\n{}: {} [Source]({})\n",
            incident.date, incident.what, incident.source
        );
    }
    let call = json!({"name": attack.scenario.tool, "arguments": attack.scenario.arguments});
    let _ = write!(
        text,
        "\n## The policy against it\n\n{}\n\n```json\n{}\n```\n\nA call that plays it:\n\n```json\n{}\n```\n\n{}\n\nAll attacks: {base}/attacks.md\n",
        attack.effect,
        pretty(&attack.policy),
        pretty(&call),
        outcome(attack.scenario.outcome)
    );
    text
}

fn outcome(outcome: ScenarioOutcome) -> &'static str {
    match outcome {
        ScenarioOutcome::Deny => "The policy refuses this call.",
        ScenarioOutcome::Hide => "The policy refuses this call as if the tool did not exist.",
        ScenarioOutcome::Approve => "The policy parks this call until a person decides.",
        ScenarioOutcome::Limit => {
            "The policy lets a few of these calls through and refuses the rest."
        }
    }
}

pub(crate) async fn get(visitor: Visitor, Path(slug): Path<String>) -> Response {
    let (slug, wanted) = form(&slug);
    let Some(attack) = attacks().iter().find(|attack| attack.slug == slug) else {
        return errors::not_found(visitor);
    };
    match wanted {
        Form::Html => show(visitor, attack),
        Form::Markdown => {
            page::text("text/markdown; charset=utf-8", markdown(attack, visitor.base()))
        }
        Form::Json => page::json(&json!(attack)),
    }
}

fn show(visitor: Visitor, attack: &'static Attack) -> Response {
    let slug = attack.slug.as_str();
    let call = json!({"name": attack.scenario.tool, "arguments": attack.scenario.arguments});
    let open = |(_, tool): &(_, &CatalogueTool)| attack.categories.contains(&tool.rating.category);
    let mut tools: Vec<_> = catalogue::tools().filter(open).collect();
    tools.sort_by_key(|(_, tool)| std::cmp::Reverse(tool.rating.severity));
    tools.truncate(8);
    page::public(&AttackPage {
        frame: visitor.frame("attacks", &format!("/attacks/{slug}")),
        attack,
        paragraphs: attack.how.split("\n\n").collect(),
        policy: Code::value("Policy", &attack.policy),
        call: Code::value("The call", &call),
        outcome: outcome(attack.scenario.outcome),
        tools: tools.iter().map(|(server, tool)| ToolRow::of(server, tool)).collect(),
        others: attacks().iter().filter(|other| other.slug != slug).take(6).collect(),
    })
}
