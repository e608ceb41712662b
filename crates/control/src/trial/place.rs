//! Where the calls of a trial go: the server's settings, its tools and their pinned schemas.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sluice_domain::{CallRecord, ToolState};
use sluice_policy::{
    Arguments, CallInput, CompiledPolicy, Decision, InputSchema, PastServer, RecordedCall,
    Settings, ToolFacts,
};
use sluice_store::servers::Server;
use sluice_store::tools::Tool;

use super::TrialCall;
use crate::ControlError;
use crate::tools::pinned;

/// A server as far as a decision about its calls needs it.
pub(super) struct Place<'a> {
    server: &'a Server,
    tools: HashMap<&'a str, &'a Tool>,
    /// Its settings, and the pinned input schemas of the tools that the calls name.
    pub(super) past: PastServer,
}

impl<'a> Place<'a> {
    pub(super) fn new<'n>(
        server: &'a Server,
        tools: &'a [Tool],
        named: impl Iterator<Item = &'n str>,
    ) -> Result<Self, ControlError> {
        let tools: HashMap<_, _> = tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let mut past =
            PastServer { settings: Settings::from(&server.settings), ..PastServer::default() };
        for name in named {
            let Some(tool) = tools.get(name).filter(|_| !past.schemas.contains_key(name)) else {
                continue;
            };
            if let Some(schema) = pinned(tool)?.input_schema {
                past.schemas.insert(name.to_owned(), InputSchema::read(&schema.to_string()));
            }
        }
        Ok(Self { server, tools, past })
    }

    /// The tool calls among these, and what the simulator wants to know of them.
    pub(super) fn recorded<'c>(
        &self,
        calls: &'c [CallRecord],
    ) -> (Vec<&'c CallRecord>, Vec<RecordedCall>) {
        let recorded = |call: &CallRecord| {
            let tool = call.tool.clone()?;
            Some(RecordedCall {
                at: call.at,
                facts: self.facts(&tool),
                tool,
                arguments: call.arguments.clone(),
                grant: call.grant.to_string(),
                grant_label: call.grant_label.clone(),
                session: call.session.clone(),
                client_name: call.client_name.clone(),
            })
        };
        calls.iter().filter_map(|call| Some((call, recorded(call)?))).unzip()
    }

    fn facts(&self, tool: &str) -> ToolFacts {
        match self.tools.get(tool) {
            Some(tool) => ToolFacts {
                known: tool.state != ToolState::Gone,
                changed: tool.state == ToolState::Changed,
                held: tool.state == ToolState::Held,
                category: Some(tool.category),
                severity: Some(tool.severity),
            },
            // Before the first read nothing is known, and nothing is refused for it here.
            None if !self.server.tools_read => ToolFacts::KNOWN,
            None => ToolFacts::UNKNOWN,
        }
    }

    pub(super) fn decide(
        &self,
        policy: &CompiledPolicy,
        call: &TrialCall,
        arguments: Arguments<'_>,
        now: DateTime<Utc>,
        show_values: bool,
    ) -> Decision {
        let schema = self.past.schemas.get(&call.tool);
        policy.decide(&CallInput {
            facts: self.facts(&call.tool),
            settings: self.past.settings,
            schema_problem: &|| schema?.problem_of(&arguments),
            grant_label: &call.grant_label,
            client_name: call.client_name.as_deref(),
            show_values,
            ..CallInput::new(&call.tool, arguments, call.at.unwrap_or(now))
        })
    }
}
