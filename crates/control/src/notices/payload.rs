//! What an endpoint is sent: one story in three forms. Argument values are in none of them: they are
//! read on the page or by the API, where secrets are masked and looking is noted.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use sluice_domain::{EndpointKind, Notice};
use sluice_store::approvals::Approval;

use super::letter::line;

/// All that is told of a parked call.
#[derive(Debug, Clone)]
pub(super) struct Story<'a> {
    pub(super) notice: Notice,
    pub(super) at: DateTime<Utc>,
    pub(super) approval: &'a Approval,
    pub(super) workspace: &'a str,
    pub(super) server: &'a str,
    pub(super) argument_names: Vec<String>,
    /// Who decided, and their words.
    pub(super) by: Option<(String, String)>,
    /// The approval's page.
    pub(super) page: &'a str,
    /// Where it can be decided, while it can.
    pub(super) link: Option<&'a str>,
}

impl Story<'_> {
    /// The sentence that a channel shows first.
    pub(super) fn title(&self) -> String {
        let tool = line(&self.approval.tool);
        match (self.notice, &self.by) {
            (Notice::Asked, _) => format!("{tool} needs approval"),
            (Notice::Escalated, _) => format!("{tool} still needs approval"),
            (Notice::Decided, Some((who, _))) if self.approved() => {
                format!("{who} approved {tool}")
            }
            (Notice::Decided, Some((who, _))) => format!("{who} denied {tool}"),
            (Notice::Decided, None) => format!("{tool} was decided"),
            (Notice::Expired, _) => format!("Nobody decided {tool} in time"),
            (Notice::Ran, _) => format!("{tool} ran after its approval"),
            (Notice::Unknown, _) => format!("Whether {tool} ran is not known; it is not run again"),
            (Notice::Test, _) => "Sluice can reach this channel".to_owned(),
        }
    }

    fn approved(&self) -> bool {
        self.approval.status != sluice_domain::ApprovalStatus::Denied
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let approval = self.approval;
        let risk = match (approval.category, approval.severity) {
            (Some(category), Some(severity)) => format!("{category}, {severity}"),
            _ => "not rated".to_owned(),
        };
        let names = if self.argument_names.is_empty() {
            "none".to_owned()
        } else {
            self.argument_names.join(", ")
        };
        let mut facts = vec![
            ("Tool", approval.tool.clone()),
            ("Risk", risk),
            ("Server", self.server.to_owned()),
            ("Grant", approval.grant_label.clone()),
            ("Arguments", names),
        ];
        if let Some(client) = &approval.client_name {
            facts.push(("Client, as it calls itself", client.clone()));
        }
        if self.link.is_some() {
            facts.push(("Until", stamp(approval.expires_at)));
        }
        if let Some((_, note)) = self.by.as_ref().filter(|(_, note)| !note.is_empty()) {
            facts.push(("Note", note.clone()));
        }
        facts.into_iter().map(|(name, value)| (name.to_owned(), line(&value))).collect()
    }

    /// The body for an endpoint of this kind.
    pub(super) fn body(&self, kind: EndpointKind) -> Value {
        match kind {
            EndpointKind::Webhook => self.webhook(),
            EndpointKind::Slack => self.slack(),
            EndpointKind::Teams => self.teams(),
        }
    }

    fn webhook(&self) -> Value {
        let approval = self.approval;
        let by = self.by.as_ref();
        json!({
            "type": self.notice,
            "timestamp": self.at.to_rfc3339_opts(SecondsFormat::Micros, true),
            "data": {
                "id": approval.id,
                "status": approval.status,
                "workspace": self.workspace,
                "server_id": approval.server_id,
                "server": self.server,
                "tool": approval.tool,
                "category": approval.category,
                "severity": approval.severity,
                "argument_names": self.argument_names,
                "grant": {"id": approval.grant_id, "label": approval.grant_label},
                "call_id": approval.call_id,
                "policy_id": approval.policy_id,
                "policy_version": approval.policy_version,
                "rule": approval.rule,
                "client_name": approval.client_name,
                "quorum": approval.quorum,
                "created_at": approval.created_at,
                "expires_at": approval.expires_at,
                "decided_by": by.map(|(who, _)| who),
                "note": by.map(|(_, note)| note),
                "url": self.page,
                "confirm_url": self.link,
            },
        })
    }

    /// Block Kit, with values as plain text only: nothing in them becomes a mention or a link.
    fn slack(&self) -> Value {
        let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
        let fields: Vec<Value> =
            self.facts().iter().map(|(name, value)| plain(&format!("{name}: {value}"))).collect();
        let title: String = self.title().chars().take(150).collect();
        let (label, address) = self.action();
        json!({
            "text": slack_escaped(&title),
            "blocks": [
                {"type": "header", "text": plain(&title)},
                {"type": "section", "fields": fields},
                {"type": "actions", "elements": [
                    {"type": "button", "text": plain(label), "url": address}
                ]},
            ],
        })
    }

    /// An Adaptive Card, as Teams' incoming webhooks take it.
    fn teams(&self) -> Value {
        let facts: Vec<Value> = self
            .facts()
            .iter()
            .map(|(name, value)| json!({"title": name, "value": markdown_escaped(value)}))
            .collect();
        let title = markdown_escaped(&self.title());
        let (label, address) = self.action();
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [
                        {"type": "TextBlock", "text": title, "weight": "Bolder", "size": "Medium", "wrap": true},
                        {"type": "FactSet", "facts": facts},
                    ],
                    "actions": [{"type": "Action.OpenUrl", "title": label, "url": address}],
                },
            }],
        })
    }

    fn action(&self) -> (&'static str, &str) {
        match self.link {
            Some(link) => ("Review and decide", link),
            None => ("Open", self.page),
        }
    }
}

/// What the test button sends.
pub(super) fn test(kind: EndpointKind, workspace: &str, page: &str, at: DateTime<Utc>) -> Value {
    let title = "Sluice can reach this channel";
    match kind {
        EndpointKind::Webhook => json!({
            "type": Notice::Test,
            "timestamp": at.to_rfc3339_opts(SecondsFormat::Micros, true),
            "data": {"workspace": workspace, "url": page},
        }),
        EndpointKind::Slack => json!({"text": title}),
        EndpointKind::Teams => json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [{"type": "TextBlock", "text": title, "wrap": true}],
                },
            }],
        }),
    }
}

fn stamp(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// Slack reads `&`, `<` and `>` as its own.
fn slack_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Cards read a part of Markdown.
fn markdown_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '`' | '~' | '<' | '>' | '!')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_agents_become_no_markup() {
        assert_eq!(
            slack_escaped("<!channel> & <http://x|y>"),
            "&lt;!channel&gt; &amp; &lt;http://x|y&gt;"
        );
        assert_eq!(markdown_escaped("[a](http://x) **b**"), r"\[a\]\(http://x\) \*\*b\*\*");
    }
}
