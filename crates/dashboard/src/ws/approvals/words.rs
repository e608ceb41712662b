//! Words for where a parked call stands and what happened to it.

use sluice_control::ApprovalEventView;
use sluice_domain::{ApprovalEventKind, ApprovalStatus};

/// A status for people.
pub(crate) fn status_word(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => "Waiting for a decision",
        ApprovalStatus::Approved => "Approved, not run yet",
        ApprovalStatus::Denied => "Denied",
        ApprovalStatus::Expired => "Expired",
        ApprovalStatus::Running => "Running",
        ApprovalStatus::Used => "Approved and run once",
        ApprovalStatus::Unknown => "Released; outcome unknown",
    }
}

fn names(event: &ApprovalEventView, member: &str) -> Vec<String> {
    let list = event.detail[member].as_array().into_iter().flatten();
    list.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// One thing that happened, as a sentence.
pub(super) fn sentence(event: &ApprovalEventView) -> String {
    use ApprovalEventKind as Kind;
    let who = if event.who.is_empty() { "Somebody" } else { &event.who };
    let note = event.detail["note"].as_str().filter(|note| !note.is_empty());
    let noted = note.map(|note| format!(": {note}")).unwrap_or_default();
    match event.kind {
        Kind::Asked => "The call was parked".to_owned(),
        Kind::Notified => {
            let mut to = names(event, "mail");
            to.extend(names(event, "endpoints"));
            format!("Told to {}", to.join(", "))
        }
        Kind::Shown => format!("{who} opened it"),
        Kind::Revealed => format!("{who} looked at its secrets"),
        Kind::Approved => format!("{who} approved{noted}"),
        Kind::Denied => format!("{who} denied{noted}"),
        Kind::Escalated => "Nobody had decided, so others were told".to_owned(),
        Kind::Excepted => format!("{who} lets the same call pass for a while"),
        Kind::Expired => "Its time was over".to_owned(),
        Kind::Released => "The call was sent to the server".to_owned(),
        Kind::Ran => "The server answered".to_owned(),
        Kind::NotRun => "The call did not reach the server; the approval is good again".to_owned(),
        Kind::Unknown => {
            "The answer never came: whether it ran is not known, and it is not run again".to_owned()
        }
    }
}
