//! Upstream servers: connecting, editing, deleting. Credentials go in and never come out.

pub(crate) mod headers;
mod read;
mod settings;

pub use headers::{AuthForm, MASK};
pub use read::{ReadFailure, ReadReport};
pub use settings::SettingsPatch;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::{ServerId, ServerSettings};
use sluice_store::servers::{self, NewServer, Server, ServerChange};
use sluice_store::workspaces;
use sluice_vault::UpstreamHeaders;
use url::Url;

use crate::audit::{self, Event};
use crate::catalogue::share;
use crate::codes::{self, ProblemCode};
use crate::error::Faults;
use crate::page::{Page, PageOf};
use crate::{Admin, Control, ControlError, Fault, Viewer, text};

/// A server as a member sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerView {
    pub id: ServerId,
    pub name: String,
    /// The query, which may hold a key, is masked for everybody but admins.
    pub upstream_url: String,
    pub proxy_url: String,
    pub settings: ServerSettings,
    /// Names of the upstream headers; the values are never shown.
    pub header_names: Vec<String>,
    pub is_example: bool,
    pub revision: i64,
    pub tools_read: bool,
    pub last_read_at: Option<DateTime<Utc>>,
    /// What went wrong at the last contact, if it did.
    pub last_error: Option<ReadFailure>,
    pub last_error_at: Option<DateTime<Utc>>,
    pub protocol_version: Option<String>,
    /// What the server calls itself.
    pub server_name: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What a new server is made of.
#[derive(Debug, Default)]
pub struct ServerForm {
    pub name: String,
    pub upstream_url: String,
    pub auth: AuthForm,
    pub settings: SettingsPatch,
}

/// An edit; what is `None` stays.
#[derive(Debug, Default)]
pub struct ServerPatch {
    pub name: Option<String>,
    pub upstream_url: Option<String>,
    pub auth: Option<AuthForm>,
    pub settings: SettingsPatch,
}

/// A new server, and how its first read went. It is kept even where the read failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Connected {
    pub server: ServerView,
    pub read: Result<ReadReport, ReadFailure>,
}

impl Control {
    pub(crate) fn server_view(&self, viewer: &Viewer, server: Server) -> ServerView {
        let admin = viewer.require::<Admin>().is_ok();
        let failure = server.last_error_code.zip(server.last_error_words);
        ServerView {
            proxy_url: self.proxy_url(server.id),
            id: server.id,
            name: server.name,
            upstream_url: if admin { server.upstream_url } else { masked(&server.upstream_url) },
            settings: server.settings,
            header_names: server.header_names,
            is_example: server.is_example,
            revision: server.revision,
            tools_read: server.tools_read,
            last_read_at: server.last_read_at,
            last_error: failure
                .map(|(code, words)| ReadFailure { code: ProblemCode::of(&code), words }),
            last_error_at: server.last_error_at,
            protocol_version: server.protocol_version,
            server_name: server.server_name,
            created_at: server.created_at,
            updated_at: server.updated_at,
        }
    }

    /// The servers, newest first.
    pub async fn servers(
        &self,
        viewer: &Viewer,
        page: Page<ServerId>,
    ) -> Result<PageOf<ServerView, ServerId>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found =
            servers::list(&mut tx.conn(), viewer.workspace, page.after, page.one_more()).await?;
        tx.commit().await?;
        Ok(page.cut(found, |server| server.id).map(|server| self.server_view(viewer, server)))
    }

    /// One server.
    pub async fn server(&self, viewer: &Viewer, id: ServerId) -> Result<ServerView, ControlError> {
        Ok(self.server_view(viewer, self.server_row(viewer, id).await?))
    }

    pub(crate) async fn server_row(
        &self,
        viewer: &Viewer,
        id: ServerId,
    ) -> Result<Server, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let server = servers::find(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        server.ok_or(ControlError::NotFound("server"))
    }

    /// Saves a server, then reads its tools.
    pub async fn connect(
        &self,
        admin: &Admin,
        form: ServerForm,
    ) -> Result<Connected, ControlError> {
        let id = ServerId::new();
        let mut settings = ServerSettings::default();
        let mut faults = Faults::default();
        let name = faults.take(text::name("/name", &form.name)).unwrap_or_default();
        let url = faults.take(self.check_url("/upstream_url", &form.upstream_url).await);
        form.settings.apply(&mut settings, &mut faults);
        let headers = faults.take(headers::new(&form.auth)).unwrap_or_default();
        let url = url.map(String::from).unwrap_or_default();
        faults.take(self.check_publishing(&settings, &url).await);
        faults.check()?;
        let sealed = (!headers.0.is_empty())
            .then(|| self.inner.vault.seal_headers(admin.workspace, id, &headers));
        let names: Vec<String> = headers.names().map(str::to_owned).collect();
        let example = self.settings().example_url.as_ref().map(Url::as_str);
        let new = NewServer {
            id,
            name: &name,
            upstream_url: &url,
            settings: &settings,
            sealed_headers: sealed.as_deref(),
            header_names: &names,
            is_example: example == Some(url.as_str()),
            created_by: admin.actor.maker(),
        };
        let now = self.now();
        let bound = self.settings().bounds.servers;
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let counts = workspaces::counts(conn, admin.workspace).await?;
        let bound = counts.limits.servers_or(bound);
        if counts.servers >= bound {
            return Err(ControlError::full("servers", bound));
        }
        let server = servers::create(conn, admin.workspace, new, now).await?;
        let (text, what) = (id.to_string(), for_audit(&server));
        let event = Event::new("server.create", ("server", &text, &name)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, server = %id, "Connected a server");
        let read = self.read_server(admin, &server).await?;
        let server = self.server(admin, id).await?;
        Ok(Connected { server, read })
    }

    /// Edits a server that still is at `expected` (`None`: whatever is there).
    pub async fn edit_server(
        &self,
        admin: &Admin,
        id: ServerId,
        expected: Option<i64>,
        patch: ServerPatch,
    ) -> Result<ServerView, ControlError> {
        let before = self.server_row(admin, id).await?;
        if let Some(expected) = expected.filter(|expected| *expected != before.revision) {
            tracing::debug!(expected, current = before.revision, "A stale edit was refused");
            return Err(ControlError::Stale { current: before.revision });
        }
        let mut faults = Faults::default();
        let name =
            patch.name.map(|name| faults.take(text::name("/name", &name)).unwrap_or_default());
        let url = match &patch.upstream_url {
            Some(url) => faults.take(self.check_url("/upstream_url", url).await).map(String::from),
            None => None,
        };
        let mut settings = before.settings.clone();
        patch.settings.apply(&mut settings, &mut faults);
        if !before.settings.publish_tools || url.is_some() {
            let leads = url.as_deref().unwrap_or(&before.upstream_url);
            faults.take(self.check_publishing(&settings, leads).await);
        }
        let headers = match &patch.auth {
            Some(auth) => faults.take(self.merged_headers(admin, &before, url.as_deref(), auth)),
            None => faults.take(headers::stay_home(&before, url.as_deref())).and(None),
        };
        faults.check()?;
        let sealed = headers.as_ref().map(|headers| {
            (!headers.0.is_empty())
                .then(|| self.inner.vault.seal_headers(admin.workspace, id, headers))
        });
        let names: Vec<String> =
            headers.iter().flat_map(UpstreamHeaders::names).map(str::to_owned).collect();
        let change = ServerChange {
            name: name.as_deref(),
            upstream_url: url.as_deref(),
            settings: Some(&settings),
            headers: sealed.as_ref().map(|sealed| (sealed.as_deref(), names.as_slice())),
        };
        // What was checked against `before` must still be what is edited.
        let saved = self.save_server(admin, &before, change, expected.is_some()).await?;
        if saved.settings.publish_tools && !before.settings.publish_tools {
            let server = self.server_row(admin, id).await?;
            // A failure stands in the server's record; what is read later is published then.
            let _noted = self.read_server(admin, &server).await?;
            return self.server(admin, id).await;
        }
        Ok(saved)
    }

    async fn save_server(
        &self,
        admin: &Admin,
        before: &Server,
        change: ServerChange<'_>,
        asked: bool,
    ) -> Result<ServerView, ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let (workspace, id) = (admin.workspace, before.id);
        let saved = servers::update(conn, workspace, id, Some(before.revision), change, now).await;
        let server = match saved {
            Ok(server) => server.ok_or(ControlError::NotFound("server"))?,
            Err(sluice_store::StoreError::Stale { .. }) if !asked => {
                let detail = "somebody else edited the server in this moment; try again";
                return Err(ControlError::Conflict {
                    code: codes::EDITED_MEANWHILE,
                    pointer: None,
                    detail: detail.to_owned(),
                });
            }
            Err(other) => return Err(other.into()),
        };
        let (text, was, is) = (id.to_string(), for_audit(before), for_audit(&server));
        let event = Event::new("server.update", ("server", &text, &server.name));
        audit::record(conn, workspace, &admin.actor, event.before(&was).after(&is), now).await?;
        if !server.settings.publish_tools || server.upstream_url != before.upstream_url {
            share::take_back(conn, workspace, id, now).await?;
        }
        tx.commit().await?;
        Ok(self.server_view(admin, server))
    }

    /// Deletes a server: its credentials are wiped, its grants stop.
    pub async fn delete_server(
        &self,
        admin: &Admin,
        id: ServerId,
        expected: Option<i64>,
    ) -> Result<(), ControlError> {
        let before = self.server_row(admin, id).await?;
        if expected.is_some_and(|expected| expected != before.revision) {
            return Err(ControlError::Stale { current: before.revision });
        }
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if !servers::delete(conn, admin.workspace, id, now).await? {
            return Err(ControlError::NotFound("server"));
        }
        share::take_back(conn, admin.workspace, id, now).await?;
        let (text, was) = (id.to_string(), for_audit(&before));
        let event = Event::new("server.delete", ("server", &text, &before.name)).before(&was);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, server = %id, "Deleted a server");
        Ok(())
    }

    pub(crate) async fn check_url(&self, pointer: &str, text: &str) -> Result<Url, Fault> {
        self.inner.upstream.check_url(text).await.map_err(|problem| {
            Fault::new(pointer, ProblemCode::of(problem.code()), problem.to_string())
        })
    }
}

/// What the audit log keeps: header names, never values; no query, which may hold a key.
fn for_audit(server: &Server) -> Value {
    json!({
        "name": server.name,
        "upstream_url": masked(&server.upstream_url),
        "header_names": server.header_names,
        "settings": server.settings,
    })
}

/// The address without what its query says.
pub(crate) fn masked(url: &str) -> String {
    match url.split_once('?') {
        Some((plain, _)) => format!("{plain}?{MASK}"),
        None => url.to_owned(),
    }
}
