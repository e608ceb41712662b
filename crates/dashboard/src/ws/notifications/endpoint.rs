//! One endpoint: what it is told of, its test, its secret, its messages.

use askama::Template;
use axum::extract::Path;
use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use sluice_control::{Admin, DeliveriesOf, EndpointPatch, EndpointView, Page};
use sluice_domain::{DeliveryId, DeliveryStatus, EndpointId, EndpointKind};
use sluice_web::{Form, FormFields};

use super::{Row, Told, chosen, kind_word, told};
use crate::desk::{Answer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::{Field, Tone};
use crate::ws::Nothing;

const LATEST: u32 = 20;

#[derive(Debug, Template)]
#[template(path = "ws/endpoint.html")]
struct EndpointPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    endpoint: EndpointView,
    kind: &'static str,
    path: String,
    /// A webhook's secret, this once.
    secret: Option<String>,
    problem: Option<String>,
    name: Field,
    url: Field,
    told: Vec<Told>,
    rows: Vec<Row>,
}

impl EndpointPage {
    fn has_secret(&self) -> bool {
        self.endpoint.kind == EndpointKind::Webhook
    }
}

async fn page(
    desk: Desk<Admin>,
    endpoint: EndpointView,
    secret: Option<&SecretString>,
    faults: &Faults,
) -> Answer {
    let of = DeliveriesOf { endpoint: Some(endpoint.id), status: None };
    let found = desk.control.deliveries(&desk.who, of, Page::first(LATEST)).await;
    let known = std::slice::from_ref(&endpoint);
    let rows = found.map_err(refuse)?.items.into_iter().map(|one| Row::new(one, known)).collect();
    let page = EndpointPage {
        frame: desk.frame("notifications").await?,
        now: desk.now,
        kind: kind_word(endpoint.kind),
        path: desk.path(&format!("/notifications/endpoints/{}", endpoint.id)),
        secret: secret.map(|secret| secret.expose_secret().to_owned()),
        problem: faults.rest(&["/name", "/url"]),
        name: Field::text("name", "Name")
            .value(endpoint.name.clone())
            .required()
            .max(80)
            .error(faults.at("/name")),
        url: Field::new("url", "url", "Another address")
            .placeholder(endpoint.shown_url.clone())
            .hint("Empty: the address stays as it is.")
            .max(2_000)
            .error(faults.at("/url")),
        told: told(&endpoint.notices),
        rows,
        endpoint,
    };
    let code = if secret.is_some() { StatusCode::OK } else { status(faults) };
    Ok(page::private(code, &page))
}

/// The page with a secret that is shown this once.
pub(super) async fn with_secret(
    desk: Desk<Admin>,
    endpoint: EndpointView,
    secret: &SecretString,
) -> Answer {
    page(desk, endpoint, Some(secret), &Faults::none()).await
}

fn id(text: &str) -> Result<EndpointId, axum::response::Response> {
    text.parse().map_err(|_| absent("endpoint"))
}

pub(crate) async fn show(desk: Desk<Admin>, Path((_, text)): Path<(String, String)>) -> Answer {
    let endpoint = desk.control.endpoint(&desk.who, id(&text)?).await.map_err(refuse)?;
    page(desk, endpoint, None, &Faults::none()).await
}

pub(crate) async fn edit(
    desk: Desk<Admin>,
    Path((_, text)): Path<(String, String)>,
    form: FormFields,
) -> Answer {
    let id = id(&text)?;
    let url = Some(form.get("url").trim().to_owned()).filter(|url| !url.is_empty());
    let patch = EndpointPatch {
        name: Some(form.get("name").to_owned()),
        url,
        notices: Some(chosen(&form)),
        enabled: Some(form.get("enabled") == "1"),
    };
    let expected = form.get("revision").parse().ok();
    match desk.control.edit_endpoint(&desk.who, id, expected, patch).await {
        Ok(endpoint) => {
            let to = desk.path(&format!("/notifications/endpoints/{id}"));
            Ok(flash::done(&to, &format!("Saved `{}`.", endpoint.name)))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            let endpoint = desk.control.endpoint(&desk.who, id).await.map_err(refuse)?;
            page(desk, endpoint, None, &faults).await
        }
    }
}

pub(crate) async fn test(
    desk: Desk<Admin>,
    Path((_, text)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id = id(&text)?;
    let to = desk.path(&format!("/notifications/endpoints/{id}"));
    match desk.control.test_endpoint(&desk.who, id).await {
        Ok(sent) if sent.status == DeliveryStatus::Sent => {
            Ok(flash::done(&to, "The test message was taken."))
        }
        Ok(sent) => {
            let why = sent.tries.last().map(|one| one.error.clone()).unwrap_or_default();
            Ok(flash::redirect(&to, Tone::Bad, &format!("The test did not arrive: {why}.")))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            let said = faults.rest(&[]).unwrap_or_default();
            Ok(flash::redirect(&to, Tone::Warn, &said))
        }
    }
}

pub(crate) async fn rotate(
    desk: Desk<Admin>,
    Path((_, text)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let made = desk.control.rotate_endpoint(&desk.who, id(&text)?).await.map_err(refuse)?;
    match made.secret {
        Some(secret) => with_secret(desk, made.view, &secret).await,
        None => page(desk, made.view, None, &Faults::none()).await,
    }
}

pub(crate) async fn delete(
    desk: Desk<Admin>,
    Path((_, text)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    desk.control.delete_endpoint(&desk.who, id(&text)?).await.map_err(refuse)?;
    Ok(flash::done(&desk.path("/notifications"), "Removed, with all that was on its way to it."))
}

/// Sends a message of the log anew.
pub(crate) async fn replay(
    desk: Desk<Admin>,
    Path((_, text)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: DeliveryId = text.parse().map_err(|_| absent("message"))?;
    let to = desk.path("/notifications#log");
    match desk.control.replay(&desk.who, id).await {
        Ok(_) => Ok(flash::done(&to, "It is sent anew.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            let said = faults.rest(&[]).unwrap_or_default();
            Ok(flash::redirect(&to, Tone::Warn, &said))
        }
    }
}
