//! Rules that can never fire, or always do.

use crate::document::{Approver, Document, Rule};
use crate::json::{Node, Place};
use crate::problem::Problems;

use super::{Entry, conditions};

const KINDS: [&str; 3] = ["require", "deny_if", "approve_if"];

pub(super) fn warn(
    entry: &Entry<'_, '_>,
    document: &Document,
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    for kind in KINDS {
        let list = place.key(kind);
        for (index, node, rule) in entry.rules_of(kind) {
            let place = list.index(index);
            if kind == "require" && rule.conditions.is_empty() {
                let words = "a `require` without conditions always holds and restricts nothing";
                problems.warn("always_holds", node.start, &place, words.to_owned());
            }
            conditions::warn(kind, entry.name, node, rule, &place, problems);
        }
        repeated(entry, kind, &list, problems);
    }
    after_always_denied(entry, document, place, problems);
    after_always_parked(entry, place, problems);
    approvals(entry, document, place, problems);
}

/// The same conditions again, or any rule after one without conditions.
fn repeated(entry: &Entry<'_, '_>, kind: &str, list: &Place<'_>, problems: &mut Problems<'_>) {
    let mut seen: Vec<&Rule> = Vec::new();
    for (index, node, rule) in entry.rules_of(kind) {
        if !rule.conditions.is_empty() && seen.iter().any(|old| old.conditions == rule.conditions) {
            let words = "this rule never fires: one before it has the same conditions".to_owned();
            problems.warn("never_fires", node.start, &list.index(index), words);
        }
        seen.push(rule);
    }
}

/// After a `deny_if` that always holds nothing of the entry is reached.
fn after_always_denied(
    entry: &Entry<'_, '_>,
    document: &Document,
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    let everywhere =
        entry.name.is_some() && document.all_tools.deny_if.iter().any(|r| r.conditions.is_empty());
    let always = entry.rules_of("deny_if").find(|(_, _, rule)| rule.conditions.is_empty());
    let always = always.map(|(index, ..)| index);
    if !everywhere && always.is_none() {
        return;
    }
    let why = if everywhere {
        "`all_tools` denies every call"
    } else {
        "a `deny_if` without conditions denies every call"
    };
    let mut tell = |at: usize, place: &Place<'_>| {
        problems.warn("never_fires", at, place, format!("this never fires: {why}"));
    };
    let list = place.key("deny_if");
    for (index, node, _) in entry.rules_of("deny_if") {
        if everywhere || always.is_some_and(|always| index > always) {
            tell(node.start, &list.index(index));
        }
    }
    for key in ["approve_if", "limits", "rate_limit"] {
        let node = entry.node.get(key);
        if let Some(node) = node.filter(|node| !node.items().is_empty() || key == "rate_limit") {
            tell(node.start, &place.key(key));
        }
    }
}

fn after_always_parked(entry: &Entry<'_, '_>, place: &Place<'_>, problems: &mut Problems<'_>) {
    let list = place.key("approve_if");
    let mut parked = false;
    for (index, node, rule) in entry.rules_of("approve_if") {
        if parked {
            let words = "this never fires: an `approve_if` before it parks every call".to_owned();
            problems.warn("never_fires", node.start, &list.index(index), words);
        }
        parked |= rule.conditions.is_empty();
    }
}

fn approvals(
    entry: &Entry<'_, '_>,
    document: &Document,
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    let Some(node) = entry.node.get("approval") else { return };
    let place = place.key("approval");
    let own = !entry.rules.approve_if.is_empty();
    let general = if entry.name.is_some() {
        !document.all_tools.approve_if.is_empty()
    } else {
        document.tools.iter().any(|(_, entry)| !entry.approve_if.is_empty())
    };
    if !own && !general {
        let words = "this never matters: no `approve_if` parks a call".to_owned();
        problems.warn("never_fires", node.start, &place, words);
    }
    let Some(approval) = &entry.rules.approval else { return };
    let quorum = usize::from(approval.quorum.unwrap_or(1));
    let Some(approvers) = &approval.approvers else { return };
    let only_members = approvers.iter().all(|a| matches!(a, Approver::Member(_)));
    let mut members: Vec<&Approver> = Vec::new();
    for approver in approvers {
        if !members.contains(&approver) {
            members.push(approver);
        }
    }
    if only_members && members.len() < quorum {
        let at = node.get("quorum").map_or(node.start, |quorum: &Node<'_>| quorum.start);
        let words = format!(
            "{quorum} approvals are needed and {} may approve: no call can be approved",
            members.len()
        );
        problems.warn("quorum_unreachable", at, &place.key("quorum"), words);
    }
}
