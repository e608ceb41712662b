//! Plans and faults for people.

use std::fmt::Write as _;

use anyhow::anyhow;
use serde::Serialize;
use serde_json::Value;
use sluice_api::configuration::{AppliedBody, ChangeBody, PlanBody, SummaryBody};
use sluice_control::configuration::{Halted, MAIN};
use sluice_control::{ControlError, Fault};

use super::folder::Folder;
use crate::commands::admin::refused;
use crate::failure::{Failure, Outcome};
use crate::say;

/// Prints what would be done.
pub(super) fn plan(workspace: &str, plan: &PlanBody) {
    for line in lines(workspace, plan) {
        say!("{line}");
    }
}

fn lines(workspace: &str, plan: &PlanBody) -> Vec<String> {
    let mut lines = vec![format!("Workspace {workspace}:")];
    for change in plan.changes.iter().filter(|change| is_told(change)) {
        let sign = match change.action.as_str() {
            "create" => '+',
            "update" => '~',
            "delete" => '-',
            "orphan" => '?',
            _ => '=',
        };
        lines.push(format!("  {sign} {}{}", change.title(), drift(change)));
        if change.action == "orphan" {
            lines.push("      applied earlier, in no file now; --prune deletes it".to_owned());
        }
        for field in &change.fields {
            let (before, after) = (shown(field.before.as_ref()), shown(field.after.as_ref()));
            lines.push(match (&field.before, &field.after) {
                (None, _) => format!("      {}: {after}", field.field),
                (_, None) => format!("      {}: {before} → nothing", field.field),
                _ if before == after => format!("      {}: another value", field.field),
                _ => format!("      {}: {before} → {after}", field.field),
            });
        }
        lines.extend(change.document.iter().map(|part| format!("      {}", document(part))));
        lines.extend(change.notes.iter().map(|note| format!("      note: {note}")));
    }
    lines.push(total(plan));
    lines
}

/// What stays as it is, and nothing is to be said of, is only counted.
fn is_told(change: &ChangeBody) -> bool {
    change.action != "unchanged" || !change.notes.is_empty()
}

fn drift(change: &ChangeBody) -> &'static str {
    match change.drift.as_deref() {
        Some("changed_by_hand") => "  (changed by hand)",
        Some("deleted_by_hand") => "  (deleted by hand)",
        Some("never_applied") => "  (never applied)",
        Some(_) => "  (is there, and different)",
        None => "",
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A part of a document that changes.
fn document(part: &Value) -> String {
    let pointer = part["pointer"].as_str().unwrap_or_default();
    let pointer = if pointer.is_empty() { "/" } else { pointer };
    match part["kind"].as_str() {
        Some("added") => format!("+ {pointer}: {}", part["after"]),
        Some("removed") => format!("- {pointer}: {}", part["before"]),
        _ => format!("~ {pointer}: {} → {}", part["before"], part["after"]),
    }
}

fn total(plan: &PlanBody) -> String {
    let SummaryBody { create, update, delete, unchanged, orphan } = plan.summary;
    if create + update + delete == 0 {
        let mut line = format!("Nothing to change: {unchanged} objects are as the files say");
        if orphan > 0 {
            let _ = write!(line, ", {orphan} are in no file now");
        }
        line.push('.');
        return line;
    }
    format!("{create} to create, {update} to change, {delete} to delete, {unchanged} as they are.")
}

/// Prints what was done.
pub(super) fn applied(as_json: bool, applied: &AppliedBody) {
    if as_json {
        // Serialising these structs cannot fail.
        let _ = json(applied);
        return;
    }
    for warning in &applied.warnings {
        say!("warning: {warning}");
    }
    let SummaryBody { create, update, delete, .. } = applied.plan.summary;
    if create + update + delete > 0 {
        say!("Applied: {create} created, {update} changed, {delete} deleted.");
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Outcome {
    say!("{}", serde_json::to_string_pretty(value).map_err(Failure::bad)?);
    Ok(())
}

/// Files that cannot be applied: each fault on a line of its own.
pub(super) fn unusable(folder: &Folder, error: ControlError) -> Failure {
    match error {
        ControlError::Invalid(faults) => {
            let main = folder.main.display().to_string();
            let lines: Vec<_> = faults.iter().map(|fault| line(fault, &main)).collect();
            faulty(&lines)
        }
        other => refused(other),
    }
}

pub(super) fn faulty(lines: &[String]) -> Failure {
    let count = match lines.len() {
        1 => "one fault".to_owned(),
        count => format!("{count} faults"),
    };
    Failure::bad(anyhow!("nothing was changed: {count}\n  {}", lines.join("\n  ")))
}

fn line(fault: &Fault, main: &str) -> String {
    let file = fault.file.as_deref().map(|file| if file == MAIN { main } else { file });
    place(file, fault.line, fault.column, &fault.pointer, &fault.detail)
}

/// `workspace.yaml:12:5: /servers/0/nmae: there is no field …`
pub(super) fn place(
    file: Option<&str>,
    line: Option<u32>,
    column: Option<u32>,
    pointer: &str,
    detail: &str,
) -> String {
    let mut words = file.unwrap_or_default().to_owned();
    for number in [line, column].into_iter().flatten() {
        let _ = write!(words, ":{number}");
    }
    for part in [pointer, detail] {
        if !part.is_empty() && !words.is_empty() {
            words.push_str(": ");
        }
        words.push_str(part);
    }
    words
}

/// A run that stopped on its way.
pub(super) fn halted(halted: Halted) -> Failure {
    let Halted { at, done, error } = halted;
    let code = refused(error);
    let words = format!("stopped at {at}: {code}");
    let told = match done {
        0 => "Nothing was changed before it.".to_owned(),
        1 => "One object was changed before it, and stays so.".to_owned(),
        done => format!("{done} objects were changed before it, and stay so."),
    };
    code.retold(anyhow!("{}", words.replace("sluice: ", "")))
        .remedy(format!("{told} Run it again when the reason is gone: what is done is found done"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_as_compilers_do() {
        let told = place(Some("w.yaml"), Some(3), Some(5), "/servers/0", "no such field");
        assert_eq!(told, "w.yaml:3:5: /servers/0: no such field");
        assert_eq!(place(None, None, None, "", "too many"), "too many");
    }
}
