//! `/w/{ws}/logs.csv` and `.ndjson`: every call that the page's filters leave, as a file.

use axum::extract::Query;
use axum::response::IntoResponse as _;
use sluice_control::codes;
use sluice_control::{Fault, Viewer};
use sluice_web::export::{self, Format};
use sluice_web::{OwnSite, Problem};

use super::Input;
use crate::desk::{Answer, Desk};

pub(crate) async fn csv(desk: Desk<Viewer>, _: OwnSite, Query(input): Query<Input>) -> Answer {
    file(desk, &input, Format::Csv)
}

pub(crate) async fn ndjson(desk: Desk<Viewer>, _: OwnSite, Query(input): Query<Input>) -> Answer {
    file(desk, &input, Format::Ndjson)
}

/// A filter that cannot be read is no reason to give out everything.
fn file(desk: Desk<Viewer>, input: &Input, format: Format) -> Answer {
    let (filter, odd) = input.filter();
    if let Some(odd) = odd.first() {
        let detail = format!(
            "{odd} is not understood, so the file was not written; correct it on the log's page"
        );
        let fault = Fault::new("/filter", codes::INVALID_FILTER, detail);
        return Err(Problem::invalid(fault).into_response());
    }
    Ok(export::calls(desk.control, desk.who, filter, format))
}
