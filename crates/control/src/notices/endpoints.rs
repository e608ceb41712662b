//! Endpoints: where a workspace is told of things. Addresses and secrets go in and come out once or
//! never.

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sluice_domain::{EndpointId, EndpointKind, Notice};
use sluice_store::endpoints::{self, Endpoint, EndpointChange, NewEndpoint};
use sluice_vault::WebhookSecret;
use url::Url;

use super::{EndpointColumn, endpoint_place};
use crate::audit::{self, Event};
use crate::codes;
use crate::error::Faults;
use crate::page::{Page, PageOf};
use crate::throttle::after;
use crate::{Admin, Control, ControlError, Fault, text};

/// How long the secret before signs too after a rotation.
const OVERLAP: TimeDelta = TimeDelta::hours(24);

/// An endpoint as an admin sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointView {
    pub id: EndpointId,
    pub name: String,
    pub kind: EndpointKind,
    /// The host; the rest of an address is a secret with some services.
    pub shown_url: String,
    pub notices: Vec<Notice>,
    pub enabled: bool,
    pub revision: i64,
    /// Until when the secret before signs too.
    pub previous_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<Endpoint> for EndpointView {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            id: endpoint.id,
            name: endpoint.name,
            kind: endpoint.kind,
            shown_url: endpoint.shown_url,
            notices: endpoint.notices,
            enabled: endpoint.enabled,
            revision: endpoint.revision,
            previous_until: endpoint.previous_until,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}

/// What a new endpoint is made of.
#[derive(Debug, Clone)]
pub struct EndpointForm {
    pub name: String,
    pub kind: EndpointKind,
    pub url: String,
    /// Empty: what is usual for the kind.
    pub notices: Vec<Notice>,
}

/// An edit; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct EndpointPatch {
    pub name: Option<String>,
    pub url: Option<String>,
    pub notices: Option<Vec<Notice>>,
    pub enabled: Option<bool>,
}

/// A new endpoint. A webhook's secret is shown once.
#[derive(Debug)]
pub struct MadeEndpoint {
    pub view: EndpointView,
    pub secret: Option<SecretString>,
}

/// What an endpoint is told of when nobody says.
fn usual(kind: EndpointKind) -> Vec<Notice> {
    let all = [
        Notice::Asked,
        Notice::Escalated,
        Notice::Decided,
        Notice::Expired,
        Notice::Ran,
        Notice::Unknown,
    ];
    match kind {
        EndpointKind::Webhook => all.to_vec(),
        EndpointKind::Slack | EndpointKind::Teams => all[..4].to_vec(),
    }
}

fn checked_notices(pointer: &str, notices: Vec<Notice>) -> Result<Vec<Notice>, Fault> {
    if notices.contains(&Notice::Test) {
        let detail = "`test` is sent by the test button, not chosen";
        return Err(Fault::new(pointer, codes::NOT_AN_EVENT, detail));
    }
    let mut notices = notices;
    notices.sort_unstable();
    notices.dedup();
    Ok(notices)
}

/// The origin alone: paths and queries are where services put their secrets.
fn shown(url: &Url) -> String {
    format!("{}/…", url.origin().ascii_serialization())
}

impl Control {
    async fn checked_endpoint(&self, pointer: &str, text: &str) -> Result<Url, Fault> {
        let url = self.check_url(pointer, text).await?;
        if url.scheme() != "https" && !self.inner.upstream.allows_private() {
            let detail = "messages are sent over https: only; write an address that begins with it";
            return Err(Fault::new(pointer, codes::URL_SCHEME, detail));
        }
        Ok(url)
    }

    /// The endpoints, oldest first.
    pub async fn endpoints(
        &self,
        admin: &Admin,
        page: Page<EndpointId>,
    ) -> Result<PageOf<EndpointView, EndpointId>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let (workspace, limit) = (admin.workspace, page.one_more());
        let found = endpoints::list(&mut tx.conn(), workspace, page.after, limit).await?;
        tx.commit().await?;
        Ok(page.cut(found, |endpoint| endpoint.id).map(EndpointView::from))
    }

    /// One endpoint.
    pub async fn endpoint(
        &self,
        admin: &Admin,
        id: EndpointId,
    ) -> Result<EndpointView, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found = endpoints::find(&mut tx.conn(), admin.workspace, id).await?;
        tx.commit().await?;
        Ok(found.ok_or(ControlError::NotFound("endpoint"))?.into())
    }

    /// Makes an endpoint.
    pub async fn create_endpoint(
        &self,
        admin: &Admin,
        form: EndpointForm,
    ) -> Result<MadeEndpoint, ControlError> {
        let (id, now, workspace) = (EndpointId::new(), self.now(), admin.workspace);
        let mut faults = Faults::default();
        let name = faults.take(text::name("/name", &form.name)).unwrap_or_default();
        let url = faults.take(self.checked_endpoint("/url", &form.url).await);
        let notices = faults.take(checked_notices("/events", form.notices)).unwrap_or_default();
        faults.check()?;
        let notices = if notices.is_empty() { usual(form.kind) } else { notices };
        let Some(url) = url else { return Err(ControlError::internal("a fault was lost")) };
        let secret = (form.kind == EndpointKind::Webhook).then(|| WebhookSecret::generate().text());
        let sealed_url = self.sealed(admin, id, EndpointColumn::Url, url.as_str());
        let sealed_secret = secret
            .as_ref()
            .map(|secret| self.sealed(admin, id, EndpointColumn::Secret, secret.expose_secret()));
        let bound = self.settings().bounds.endpoints;
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if endpoints::count(conn, workspace).await? >= bound {
            return Err(ControlError::full("endpoints", bound));
        }
        let new = NewEndpoint {
            id,
            name: &name,
            kind: form.kind,
            sealed_url: &sealed_url,
            shown_url: &shown(&url),
            sealed_secret: sealed_secret.as_deref(),
            notices: &notices,
            created_by: admin.actor.maker(),
        };
        endpoints::create(conn, workspace, new, now).await?;
        let made = endpoints::find(conn, workspace, id).await?;
        let view = EndpointView::from(made.ok_or(ControlError::NotFound("endpoint"))?);
        let what = json!({"kind": view.kind, "url": view.shown_url, "events": view.notices});
        let object = id.to_string();
        let event = Event::new("endpoint.create", ("endpoint", &object, &name)).after(&what);
        audit::record(conn, workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(MadeEndpoint { view, secret })
    }

    fn sealed(&self, admin: &Admin, id: EndpointId, column: EndpointColumn, text: &str) -> Vec<u8> {
        self.inner.vault.seal(endpoint_place(admin.workspace, id, column), text.as_bytes())
    }

    /// Changes an endpoint. `expected`: the revision that the caller has seen.
    pub async fn edit_endpoint(
        &self,
        admin: &Admin,
        id: EndpointId,
        expected: Option<i64>,
        patch: EndpointPatch,
    ) -> Result<EndpointView, ControlError> {
        let before = self.endpoint(admin, id).await?;
        let mut faults = Faults::default();
        let name = patch.name.map(|name| faults.take(text::name("/name", &name)));
        let url = match &patch.url {
            Some(url) => faults.take(self.checked_endpoint("/url", url).await),
            None => None,
        };
        let notices = patch.notices.map(|notices| faults.take(checked_notices("/events", notices)));
        faults.check()?;
        let (name, notices) = (name.flatten(), notices.flatten());
        let sealed = url
            .as_ref()
            .map(|url| (self.sealed(admin, id, EndpointColumn::Url, url.as_str()), shown(url)));
        let change = EndpointChange {
            name: name.as_deref(),
            url: sealed.as_ref().map(|(sealed, shown)| (sealed.as_slice(), shown.as_str())),
            notices: notices.as_deref(),
            enabled: patch.enabled,
        };
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let changed = endpoints::update(conn, admin.workspace, id, expected, change, now).await?;
        let view = EndpointView::from(changed.ok_or(ControlError::NotFound("endpoint"))?);
        let facts = |view: &EndpointView| json!({"name": view.name, "url": view.shown_url, "events": view.notices, "enabled": view.enabled});
        let (object, was, is) = (id.to_string(), facts(&before), facts(&view));
        let event = Event::new("endpoint.update", ("endpoint", &object, &view.name));
        let event = event.before(&was).after(&is);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// Gives a webhook a new secret, shown once; the old one signs too for a day.
    pub async fn rotate_endpoint(
        &self,
        admin: &Admin,
        id: EndpointId,
    ) -> Result<MadeEndpoint, ControlError> {
        let (workspace, now) = (admin.workspace, self.now());
        let secret = WebhookSecret::generate().text();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let found = endpoints::find(conn, workspace, id).await?;
        let endpoint = found.ok_or(ControlError::NotFound("endpoint"))?;
        let Some(old) = endpoint.sealed_secret.as_deref() else {
            let detail =
                "only webhooks have a secret; a channel's address is its secret".to_owned();
            return Err(ControlError::Conflict { code: codes::NO_SECRET, pointer: None, detail });
        };
        let place = endpoint_place(workspace, id, EndpointColumn::Secret);
        let old = self.inner.vault.open(place, old).map_err(ControlError::internal)?;
        let old = String::from_utf8_lossy(&old).into_owned();
        let previous = self.sealed(admin, id, EndpointColumn::PreviousSecret, &old);
        let sealed = self.sealed(admin, id, EndpointColumn::Secret, secret.expose_secret());
        let until = after(now, OVERLAP);
        endpoints::rotate(conn, workspace, id, (&sealed, &previous), until, now).await?;
        let rotated = endpoints::find(conn, workspace, id).await?;
        let view = EndpointView::from(rotated.ok_or(ControlError::NotFound("endpoint"))?);
        let object = id.to_string();
        let event = Event::new("endpoint.rotate", ("endpoint", &object, &view.name));
        audit::record(conn, workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(MadeEndpoint { view, secret: Some(secret) })
    }

    /// Removes an endpoint with all that is on its way to it.
    pub async fn delete_endpoint(&self, admin: &Admin, id: EndpointId) -> Result<(), ControlError> {
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let found = endpoints::find(conn, admin.workspace, id).await?;
        let endpoint = found.ok_or(ControlError::NotFound("endpoint"))?;
        endpoints::delete(conn, admin.workspace, id).await?;
        let object = id.to_string();
        let event = Event::new("endpoint.delete", ("endpoint", &object, &endpoint.name));
        audit::record(conn, admin.workspace, &admin.actor, event, self.now()).await?;
        tx.commit().await?;
        Ok(())
    }
}
