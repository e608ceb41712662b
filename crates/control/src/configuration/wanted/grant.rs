//! A grant of the main file. Its token is made when it is applied, and never stands in a file.

use chrono::{DateTime, Utc};

use super::super::walk::Here;
use super::{WantedGrant, named};
use crate::Fault;
use crate::codes;
use crate::error::Faults;
use crate::grants::networks;

const FIELDS: [&str; 5] = ["label", "policy", "expires_at", "observe", "networks"];

pub(super) fn read(here: &Here<'_>, faults: &mut Faults) -> Option<WantedGrant> {
    let fields = here.fields(&FIELDS, faults);
    let label = named(&fields, "label", faults);
    let policy = fields.text("policy", faults);
    let expires_at =
        fields.text("expires_at", faults).and_then(|text| text.read(faults, |text| time(text)));
    let observe = fields.get("observe").is_some_and(|here| here.flag(faults));
    let mut plain = Vec::new();
    for here in fields.list("networks", faults) {
        let Some(text) = here.text(faults) else { continue };
        let read = text.read(faults, |text| networks(std::slice::from_ref(text)));
        plain.extend(read.map(|read| read.value).unwrap_or_default());
    }
    if let Err(fault) = networks(&plain) {
        faults.push(fields.place.adopt(fault));
    }
    Some(WantedGrant { label: label?, policy, expires_at, observe, networks: plain })
}

/// To the microsecond, as it is kept.
fn time(text: &str) -> Result<DateTime<Utc>, Fault> {
    let read = DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc());
    read.and_then(|at| DateTime::from_timestamp_micros(at.timestamp_micros())).ok_or_else(|| {
        let detail = "this is no time; one looks like 2027-01-31T00:00:00Z";
        Fault::new("", codes::INVALID, detail)
    })
}
