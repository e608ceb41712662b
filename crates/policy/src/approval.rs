//! How an approval goes: the tool's own word, else that of `all_tools`, else the defaults.

use sluice_domain::Role;

use crate::decision::ApprovalPlan;
use crate::document::{Approval, Approver, Rule};

const HOLD: u32 = 50;
const EXPIRES: u32 = 30 * 60;

/// The plan for a rule that parks; `blocks` from the most general to the most specific.
pub(crate) fn plan<'b>(
    pointer: &str,
    rule: &Rule,
    blocks: impl Iterator<Item = &'b Approval>,
) -> ApprovalPlan {
    let mut plan = ApprovalPlan {
        rule: pointer.to_owned(),
        hold: HOLD,
        expires: EXPIRES,
        approvers: vec![Approver::Role(Role::Admin), Approver::Role(Role::PolicyManager)],
        quorum: 1,
        self_allowed: true,
        on_deny: rule.on_deny.clone(),
    };
    for block in blocks {
        plan.hold = block.hold.unwrap_or(plan.hold);
        plan.expires = block.expires.unwrap_or(plan.expires);
        if let Some(approvers) = &block.approvers {
            plan.approvers.clone_from(approvers);
        }
        plan.quorum = block.quorum.unwrap_or(plan.quorum);
        plan.self_allowed = block.self_allowed.unwrap_or(plan.self_allowed);
    }
    plan
}
