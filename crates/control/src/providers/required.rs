//! A workspace may ask that its members come by one identity provider. API tokens are not people, and
//! go on; a mailed link is no provider, and does not.

use serde_json::{Value, json};
use sluice_store::workspaces::{self, Workspace};
use sluice_store::{Conn, login_sessions, members};

use super::{Provider, refuse};
use crate::audit::{self, Event};
use crate::codes;
use crate::{Actor, Admin, Control, ControlError, Fault, Proof, Viewer};

const KEY: &str = "required_issuer";

/// The provider that a workspace asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredProvider {
    pub issuer: String,
    /// Its name and label, unless it is set up no more.
    pub provider: Option<(String, String)>,
}

/// The issuer that a workspace's settings ask for.
pub(crate) fn required(settings: &Value) -> Option<&str> {
    settings.get(KEY).and_then(Value::as_str)
}

/// The settings with another issuer, or none.
pub(crate) fn with_issuer(settings: &Value, issuer: Option<&str>) -> Value {
    let mut all = settings.as_object().cloned().unwrap_or_default();
    match issuer {
        Some(issuer) => all.insert(KEY.to_owned(), json!(issuer)),
        None => all.remove(KEY),
    };
    Value::Object(all)
}

impl Control {
    /// Refuses somebody who did not come by the provider that the workspace asks for.
    pub(crate) async fn came_as_required(
        &self,
        conn: &mut Conn<'_>,
        actor: &Actor,
        workspace: &Workspace,
    ) -> Result<(), ControlError> {
        let Some(issuer) = required(&workspace.settings) else { return Ok(()) };
        let came_by = match actor.proof {
            Proof::ApiToken { .. } | Proof::Operator => return Ok(()),
            Proof::Login(id) => login_sessions::issuer(conn, actor.user, id).await?,
            Proof::Link(_) => None,
        };
        if came_by.as_deref() == Some(issuer) {
            return Ok(());
        }
        let detail = match self.provider_at(issuer) {
            Some(Provider { name, label, .. }) => {
                format!("this workspace asks you to sign in by {label}: open `/login/with/{name}`")
            }
            None => format!(
                "this workspace asks you to sign in by {issuer}, which is set up here no more; the operator lifts that with `sluice admin lift-provider`"
            ),
        };
        Err(refuse(codes::PROVIDER_REQUIRED, detail))
    }

    fn provider_at(&self, issuer: &str) -> Option<&Provider> {
        self.providers().iter().find(|one| one.issuer == issuer)
    }

    /// The provider that the workspace asks for, if it asks for one.
    pub async fn required_provider(
        &self,
        viewer: &Viewer,
    ) -> Result<Option<RequiredProvider>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let workspace = workspaces::find(&mut tx.conn(), viewer.workspace).await?;
        tx.commit().await?;
        let workspace = workspace.ok_or(ControlError::NotFound("workspace"))?;
        Ok(required(&workspace.settings).map(|issuer| RequiredProvider {
            issuer: issuer.to_owned(),
            provider: self.provider_at(issuer).map(|one| (one.name.clone(), one.label.clone())),
        }))
    }

    /// Asks for a provider from now on, or for none. At least one admin can come by it, so that nobody is
    /// locked out: the caller, or with an API token any.
    pub async fn require_provider(
        &self,
        admin: &Admin,
        name: Option<&str>,
    ) -> Result<(), ControlError> {
        let mut tx = self.begin_in(admin.workspace).await?;
        self.ask_for_provider(&mut tx.conn(), admin, name).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The same, as a part of something larger. A provider is named by its name or its address.
    pub(crate) async fn ask_for_provider(
        &self,
        conn: &mut Conn<'_>,
        admin: &Admin,
        name: Option<&str>,
    ) -> Result<(), ControlError> {
        let provider = name.map(|name| self.provider_named(name)).transpose()?;
        let now = self.now();
        if let Some(provider) = provider {
            somebody_comes_by(conn, admin, provider).await?;
        }
        let workspace = workspaces::find(conn, admin.workspace).await?;
        let workspace = workspace.ok_or(ControlError::NotFound("workspace"))?;
        let issuer = provider.map(|one| one.issuer.as_str());
        let (before, after) =
            (json!({"issuer": required(&workspace.settings)}), json!({"issuer": issuer}));
        let settings = with_issuer(&workspace.settings, issuer);
        workspaces::set_settings(conn, admin.workspace, &settings, now).await?;
        let id = admin.workspace.to_string();
        let object = ("workspace", id.as_str(), admin.workspace_name.as_str());
        let event = Event::new("workspace.require_provider", object);
        let event = event.before(&before).after(&after);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        Ok(())
    }
}

impl Control {
    /// Why the workspace cannot ask for this provider, if so.
    pub(crate) async fn provider_fault(
        &self,
        admin: &Admin,
        name: &str,
    ) -> Result<Option<Fault>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found = self.provider_named(name);
        let refused = match found {
            Ok(provider) => somebody_comes_by(&mut tx.conn(), admin, provider).await.err(),
            Err(refused) => Some(refused),
        };
        tx.commit().await?;
        match refused {
            None => Ok(None),
            Some(ControlError::Conflict { code, detail, .. }) => {
                Ok(Some(Fault::new("", code, detail)))
            }
            Some(ControlError::Invalid(faults)) => {
                Ok(faults.into_iter().next().map(|fault| Fault { pointer: String::new(), ..fault }))
            }
            Some(other) => Err(other),
        }
    }

    fn provider_named(&self, name: &str) -> Result<&Provider, ControlError> {
        let found = self.providers().iter().find(|one| one.name == name || one.issuer == name);
        found.ok_or_else(|| {
            let detail = "there is no such sign-in provider here; the operator sets them up";
            ControlError::invalid("/provider", codes::UNKNOWN_PROVIDER, detail)
        })
    }
}

/// Refuses where no admin could come in any more.
async fn somebody_comes_by(
    conn: &mut Conn<'_>,
    admin: &Admin,
    provider: &Provider,
) -> Result<(), ControlError> {
    let Provider { name, label, issuer, .. } = provider;
    let (comes, detail) = if let Some(login) = admin.actor.login() {
        let came_by = login_sessions::issuer(conn, admin.actor.user, login).await?;
        let detail = format!(
            "sign in by {label} yourself first, at `/login/with/{name}`; else you would lock yourself out"
        );
        (came_by.as_ref() == Some(issuer), detail)
    } else {
        let linked = members::has_admin_of_issuer(conn, admin.workspace, issuer).await?;
        let detail = format!(
            "no admin of this workspace is linked to {label}: let one link it on their account's page, or all would be locked out"
        );
        (linked, detail)
    };
    if comes {
        return Ok(());
    }
    Err(ControlError::Conflict {
        code: codes::COME_BY_IT_FIRST,
        pointer: Some("/provider"),
        detail,
    })
}
