//! The editor's form, as it was typed. Its fields depend on what is open, so they are read one by one.

use sluice_control::PolicyForm;
use sluice_web::{FormFields, Problem};

use super::build;
use super::limit::{ApprovalForm, LimitForm};
use super::rule::RuleForm;
use crate::ws::policy_try::Typed;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) document: String,
    pub(super) note: String,
    /// The version that the editor was opened on.
    pub(super) version: String,
    /// The document before the last change of the builder, for one step back.
    pub(super) before: String,
    /// What was pressed: `save`, `check`, `look`, `put`, `fate:allow:read_file`, …
    pub(super) press: String,
    /// The tool whose recommended rule is to be added.
    pub(super) recommend: String,
    /// Whose rules are open: `all`, or `tool:` and a name or a pattern.
    pub(super) open: String,
    /// Part of the names of the tools that are listed.
    pub(super) find: String,
    pub(super) quick: build::Rule,
    pub(super) rule: Option<RuleForm>,
    pub(super) limit: Option<LimitForm>,
    pub(super) approval: Option<ApprovalForm>,
    pub(super) tries: Typed,
}

/// Fields that the form always has.
const FIXED: [&str; 24] = [
    "name",
    "document",
    "note",
    "version",
    "before",
    "press",
    "recommend",
    "open",
    "find",
    "rule_tool",
    "rule_kind",
    "rule_max",
    "rule_window",
    "rule_scope",
    "rule_replace",
    "tool",
    "arguments",
    "grant_label",
    "client_name",
    "calls",
    "whose",
    "cases",
    "as_form",
    "fields_of",
];

/// Fields of the parts that come and go: conditions, limits, approvals, arguments by their names.
fn is_of_a_part(name: &str) -> bool {
    let row = name.strip_prefix('c').and_then(|rest| rest.split_once('_'));
    let is_row = row.is_some_and(|(index, rest)| {
        index.len() <= 2
            && index.bytes().all(|byte| byte.is_ascii_digit())
            && ["join", "not", "path", "path_text", "op", "value", "json"].contains(&rest)
    });
    is_row || ["r_", "l_", "p_", "a."].iter().any(|prefix| name.starts_with(prefix))
}

impl Input {
    /// Reads the form; a field that the page cannot send is refused.
    pub(super) fn read(fields: &FormFields) -> Result<Self, Problem> {
        let parts: Vec<&str> = fields
            .0
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| is_of_a_part(name))
            .collect();
        let once: Vec<&str> = FIXED.iter().copied().chain(parts).collect();
        fields.only(&once, &[])?;
        let get = |name: &str| fields.get(name).to_owned();
        // Browsers send line ends as CRLF; the document is kept with LF.
        let unix = |name: &str| fields.get(name).replace("\r\n", "\n");
        Ok(Self {
            name: get("name"),
            document: unix("document"),
            note: get("note"),
            version: get("version"),
            before: unix("before"),
            press: get("press"),
            recommend: get("recommend"),
            open: get("open"),
            find: get("find"),
            quick: build::Rule {
                tool: get("rule_tool"),
                kind: get("rule_kind"),
                max: get("rule_max"),
                window: get("rule_window"),
                scope: get("rule_scope"),
                replace: get("rule_replace"),
            },
            rule: RuleForm::typed(fields),
            limit: LimitForm::typed(fields),
            approval: ApprovalForm::typed(fields),
            tries: Typed::read(fields),
        })
    }

    pub(super) fn form(&self) -> PolicyForm {
        PolicyForm {
            name: Some(self.name.clone()),
            document: self.document.clone(),
            note: self.note.clone(),
        }
    }

    /// Closes the form of a rule, a limit or an approval block.
    pub(super) fn close_forms(&mut self) {
        (self.rule, self.limit, self.approval) = (None, None, None);
    }
}
