//! A policy of the main file. Its document is text, in a file of its own or in a block: a number
//! that went through YAML would no longer be the number that was written.

use std::collections::BTreeMap;

use sluice_domain::PolicyKind;

use super::super::walk::{At, Fields, Here};
use super::{Document, WantedPolicy, named};
use crate::Fault;
use crate::codes;
use crate::error::Faults;

pub(super) fn read(
    here: &Here<'_>,
    files: &BTreeMap<String, String>,
    faults: &mut Faults,
) -> Option<WantedPolicy> {
    let fields = here.fields(&["name", "kind", "file", "document"], faults);
    let name = named(&fields, "name", faults);
    let kind = fields.text("kind", faults).and_then(|kind| {
        kind.read(faults, |kind| {
            kind.parse::<PolicyKind>()
                .map_err(|error| Fault::new("", codes::INVALID, error.to_string()))
        })
    });
    let document = document(&fields, files, faults);
    let kind = kind.map_or(PolicyKind::Custom, |kind| kind.value);
    Some(WantedPolicy { name: name?, kind, document: document? })
}

fn document(
    fields: &Fields<'_>,
    files: &BTreeMap<String, String>,
    faults: &mut Faults,
) -> Option<Document> {
    match (fields.get("file"), fields.get("document")) {
        (Some(file), None) => {
            let file = file.text(faults)?.read(faults, |name| path(name))?;
            let At { value: file, place } = file;
            // Without the texts only the names are asked for.
            let text = match files.get(&file) {
                Some(text) => text.clone(),
                None if files.is_empty() => String::new(),
                None => {
                    faults.push(
                        place.fault(codes::MISSING_FILE, format!("there is no file `{file}`")),
                    );
                    return None;
                }
            };
            Some(Document { text, place, file: Some(file) })
        }
        (None, Some(block)) => {
            let Some(At { value: text, place }) = block.text(&mut Faults::default()) else {
                let detail = "write the document as JSON text (`document: |`, then the JSON \
                              indented), or put it into a file of its own (`file:`)";
                faults.push(block.place.fault(codes::DOCUMENT_TEXT, detail));
                return None;
            };
            Some(Document { text, place, file: None })
        }
        (Some(_), Some(_)) => {
            let detail = "a policy has a `file` or a `document`, not both";
            faults.push(fields.place.fault(codes::TWO_DOCUMENTS, detail));
            None
        }
        (None, None) => {
            let detail = "`file` is missing: the policy's document";
            faults.push(fields.place.fault(codes::MISSING_FIELD, detail));
            None
        }
    }
}

/// A path below the main file's directory.
fn path(name: &str) -> Result<String, Fault> {
    let inside = !name.is_empty()
        && !name.contains(['\\', '\0'])
        && name.split('/').all(|part| !["", ".", ".."].contains(&part));
    if inside {
        return Ok(name.to_owned());
    }
    let detail = "a policy's file lies beside the main file or below it, such as `policies/a.json`";
    Err(Fault::new("", codes::BAD_PATH, detail))
}
