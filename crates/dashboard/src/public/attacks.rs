//! `/attacks` and `/attacks/{slug}`: kinds of attack and the policy that stops or limits each.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use sluice_risk::{Attack, ScenarioOutcome, attacks};

use crate::catalogue::{self, CatalogueServer, CatalogueTool};
use crate::filters;
use crate::frame::PublicFrame;
use crate::ui::Code;
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
    tools: Vec<(&'static CatalogueServer, &'static CatalogueTool)>,
    others: Vec<&'static Attack>,
}

pub(crate) async fn list(visitor: Visitor) -> Response {
    page::public(&AttacksPage { frame: visitor.frame("attacks", "/attacks"), attacks: attacks() })
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
    let Some(attack) = attacks().iter().find(|attack| attack.slug == slug) else {
        return errors::not_found(visitor);
    };
    let call =
        serde_json::json!({"name": attack.scenario.tool, "arguments": attack.scenario.arguments});
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
        tools,
        others: attacks().iter().filter(|other| other.slug != slug).take(6).collect(),
    })
}
