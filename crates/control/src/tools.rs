//! A server's tools with their rating, and accepting what changed.

use chrono::{DateTime, Utc};
use sluice_domain::{PolicyId, ServerId, ToolDefinition, ToolState};
use sluice_policy::{CompiledPolicy, DefaultAction, compile};
use sluice_risk::{Finding, Rating, Recommended, recommended};
use sluice_store::tools::{self, Accepted, Tool};

use crate::audit::{self, Event};
use crate::codes;
use crate::{Admin, Control, ControlError, PolicyManager, Viewer};

/// A tool as a member sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolView {
    pub name: String,
    /// As last read.
    pub definition: ToolDefinition,
    /// Hash of `definition`; what is sent back to accept it.
    pub hash: String,
    /// As last accepted, where it is another one.
    pub reviewed: Option<ToolDefinition>,
    pub reviewed_at: Option<DateTime<Utc>>,
    pub state: ToolState,
    pub rating: Rating,
    /// Signs of a poisoned definition.
    pub findings: Vec<Finding>,
    /// The recommended rule, with its sentence.
    pub recommended: Recommended,
    pub first_seen_at: DateTime<Utc>,
    pub changed_at: DateTime<Utc>,
}

/// What a policy does to a tool, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Allowed,
    /// Some calls may be refused by a limit.
    Limited,
    /// Some calls may be refused by a rule.
    Conditional,
    /// Some calls may wait for a person.
    Approval,
    /// Every call is refused.
    Denied,
    /// Refused as if it did not exist.
    Hidden,
}

/// A policy and what it does to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub policy: PolicyId,
    pub policy_name: String,
    pub effect: Effect,
}

/// The strongest of what a policy may do to calls of a tool.
fn effect(policy: &CompiledPolicy, tool: &str) -> Effect {
    if policy.hides(tool) {
        return Effect::Hidden;
    }
    let own = policy.entry(tool).map(|(_, entry)| entry);
    let document = policy.document();
    if own.is_none() && document.default == DefaultAction::Deny {
        return Effect::Denied;
    }
    let entries = || own.into_iter().chain([&document.all_tools]);
    // A refusal without conditions holds for every call.
    if entries().any(|entry| entry.deny_if.iter().any(|rule| rule.conditions.is_empty())) {
        Effect::Denied
    } else if entries().any(|entry| !entry.approve_if.is_empty()) {
        Effect::Approval
    } else if entries().any(|entry| !entry.require.is_empty() || !entry.deny_if.is_empty()) {
        Effect::Conditional
    } else if entries().any(|entry| !entry.limits.is_empty()) {
        Effect::Limited
    } else {
        Effect::Allowed
    }
}

fn unreadable(column: &str, error: &serde_json::Error) -> ControlError {
    ControlError::internal(format!("stored tools.{column} cannot be read: {error}"))
}

pub(crate) fn definition(tool: &Tool) -> Result<ToolDefinition, ControlError> {
    serde_json::from_str(&tool.definition).map_err(|error| unreadable("definition", &error))
}

/// What calls are checked against: the definition that was reviewed last, else the one read last.
pub(crate) fn pinned(tool: &Tool) -> Result<ToolDefinition, ControlError> {
    let text = tool.reviewed_definition.as_ref().unwrap_or(&tool.definition);
    serde_json::from_str(text).map_err(|error| unreadable("definition", &error))
}

pub(crate) fn view(tool: Tool) -> Result<ToolView, ControlError> {
    let definition = definition(&tool)?;
    // A rating of an earlier version of the classifier may lack a part; it is made anew.
    let rating = serde_json::from_value(tool.rating.clone())
        .unwrap_or_else(|_| sluice_risk::classify(&definition));
    let findings = serde_json::from_value(tool.findings.clone())
        .unwrap_or_else(|_| sluice_risk::findings(&definition));
    let same = tool.reviewed_hash.as_ref() == Some(&tool.hash);
    let reviewed = tool.reviewed_definition.filter(|_| !same);
    let reviewed = reviewed
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| unreadable("reviewed_definition", &error))?;
    Ok(ToolView {
        recommended: recommended(&tool.name, tool.category),
        name: tool.name,
        definition,
        hash: tool.hash,
        reviewed,
        reviewed_at: tool.reviewed_at,
        state: tool.state,
        rating,
        findings,
        first_seen_at: tool.first_seen_at,
        changed_at: tool.changed_at,
    })
}

impl Control {
    /// The server's tools by name, those that are gone too.
    pub async fn tools(
        &self,
        viewer: &Viewer,
        id: ServerId,
    ) -> Result<Vec<ToolView>, ControlError> {
        self.tool_rows(viewer, id).await?.into_iter().map(view).collect()
    }

    pub(crate) async fn tool_rows(
        &self,
        viewer: &Viewer,
        id: ServerId,
    ) -> Result<Vec<Tool>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let server = sluice_store::servers::find(&mut tx.conn(), viewer.workspace, id).await?;
        let tools = tools::list(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        server.map(|_| tools).ok_or(ControlError::NotFound("server"))
    }

    /// One tool by its exact name.
    pub async fn tool(
        &self,
        viewer: &Viewer,
        id: ServerId,
        name: &str,
    ) -> Result<ToolView, ControlError> {
        self.server_row(viewer, id).await?;
        let mut tx = self.read_in(viewer.workspace).await?;
        let tool = tools::find(&mut tx.conn(), viewer.workspace, id, name).await?;
        tx.commit().await?;
        tool.map(view).ok_or(ControlError::NotFound("tool"))?
    }

    /// What each of the server's policies does to each of the named tools, in the order of the names.
    pub async fn standings(
        &self,
        viewer: &Viewer,
        id: ServerId,
        tools: &[&str],
    ) -> Result<Vec<Vec<Standing>>, ControlError> {
        const MOST: u32 = 50;
        let policies = self.policies(viewer, Some(id), crate::Page::first(MOST)).await?.items;
        let compiled: Vec<_> = policies
            .iter()
            .filter_map(|policy| Some((policy, compile(&policy.document).ok()?)))
            .collect();
        let of = |tool: &&str| {
            let standing = |(policy, compiled): &(&crate::PolicyView, CompiledPolicy)| Standing {
                policy: policy.id,
                policy_name: policy.name.clone(),
                effect: effect(compiled, tool),
            };
            compiled.iter().map(standing).collect()
        };
        Ok(tools.iter().map(of).collect())
    }

    /// Accepts a changed or held definition, whose hash says which one the person looked at.
    /// For policy managers, whose trade it is; an admin is one.
    pub async fn accept_tool(
        &self,
        manager: &PolicyManager,
        id: ServerId,
        name: &str,
        seen_hash: &str,
    ) -> Result<ToolView, ControlError> {
        let server = self.server_row(manager, id).await?;
        let now = self.now();
        let by = (manager.actor.maker(), now);
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        match tools::accept(conn, manager.workspace, id, name, seen_hash, by).await? {
            Accepted::Done => {}
            Accepted::Absent => return Err(ControlError::NotFound("tool")),
            Accepted::ChangedMeanwhile => {
                return Err(ControlError::Conflict {
                    code: codes::TOOL_CHANGED,
                    pointer: None,
                    detail: "the definition changed since you looked at it; look again".to_owned(),
                });
            }
        }
        let what = serde_json::json!({"tool": name, "hash": seen_hash});
        let id_text = id.to_string();
        let event = Event::new("tool.accept", ("server", &id_text, &server.name)).after(&what);
        audit::record(conn, manager.workspace, &manager.actor, event, now).await?;
        tx.commit().await?;
        self.tool(manager, id, name).await
    }

    /// Accepts every definition that changed and holds no sign of poison; says how many.
    pub async fn accept_all_tools(
        &self,
        admin: &Admin,
        id: ServerId,
    ) -> Result<usize, ControlError> {
        let changed =
            |tool: &ToolView| tool.state == ToolState::Changed && tool.findings.is_empty();
        let tools = self.tools(admin, id).await?;
        let mut accepted = 0;
        for tool in tools.into_iter().filter(changed) {
            self.accept_tool(admin, id, &tool.name, &tool.hash).await?;
            accepted += 1;
        }
        Ok(accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_of_a_policy_on_a_tool() {
        let policy = compile(
            r#"{"version":"1","default":"deny","hide":["gone_*"],"tools":{
                "plain":{}, "capped":{"rate_limit":"10/minute"}, "off":{"action":"deny"},
                "asks":{"action":"require_approval"},
                "checked":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":1}]}]}}}"#,
        )
        .expect("compiles");
        for (tool, expected) in [
            ("plain", Effect::Allowed),
            ("capped", Effect::Limited),
            ("checked", Effect::Conditional),
            ("asks", Effect::Approval),
            ("off", Effect::Denied),
            ("other", Effect::Denied),
            ("gone_a", Effect::Hidden),
        ] {
            assert_eq!(effect(&policy, tool), expected, "{tool}");
        }
    }
}
