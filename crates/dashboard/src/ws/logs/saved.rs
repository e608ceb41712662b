//! Filters that a member keeps under a name.

use axum::extract::{Path, Query};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use sluice_control::Viewer;
use sluice_domain::FilterId;
use sluice_web::Form;

use super::{Input, Saving, show};
use crate::desk::{Answer, Desk, absent, refuse};
use crate::faults::Faults;
use crate::flash;

/// The form beside the filters.
#[derive(Debug, Deserialize)]
pub(crate) struct Save {
    name: String,
    /// The filters as the page's address has them.
    query: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn save(desk: Desk<Viewer>, Form(form): Form<Save>) -> Answer {
    let uri = format!("/?{}", form.query.trim_start_matches('?')).parse::<http::Uri>();
    let input = uri.ok().and_then(|uri| Query::<Input>::try_from_uri(&uri).ok());
    let Some(Query(input)) = input else {
        let words = "The filters cannot be read; set them again.";
        let saving = Saving { name: form.name, faults: Faults::one("/query", words) };
        return show(desk, Input::default(), saving).await;
    };
    // Only what the page itself writes is kept.
    let query = input.query(None);
    let query = query.trim_start_matches('?');
    match desk.control.save_filter(desk.viewer(), &form.name, query).await {
        Ok(_) => {
            let said = format!("Saved the filters as `{}`.", form.name.trim());
            Ok(flash::done(&desk.path(&format!("/logs?{query}")), &said))
        }
        Err(error) => {
            let saving = Saving { name: form.name, faults: Faults::of(error)? };
            show(desk, input, saving).await
        }
    }
}

pub(crate) async fn forget(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: FilterId = id.parse().map_err(|_| absent("saved filter"))?;
    desk.control.forget_filter(desk.viewer(), id).await.map_err(refuse)?;
    Ok(flash::done(&desk.path("/logs"), "Deleted the saved filter.").into_response())
}
