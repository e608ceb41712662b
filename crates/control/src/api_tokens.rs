//! REST tokens of a workspace. A token never does more than the member who made it.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::json;
use sluice_domain::{ApiTokenId, Role};
use sluice_store::api_tokens::{self, ApiToken, NewApiToken};
use sluice_store::workspaces;
use sluice_vault::{Issued, TokenHash, TokenKind};

use crate::audit::{self, Event};
use crate::codes;
use crate::error::Faults;
use crate::page::{Page, PageOf};
use crate::{Admin, Control, ControlError, Fault, text};

/// A REST token as shown to admins.
pub type ApiTokenView = ApiToken;

/// What a new token is made of.
#[derive(Debug, Clone)]
pub struct ApiTokenForm {
    pub label: String,
    pub role: Role,
    pub expires_at: Option<DateTime<Utc>>,
}

/// A new token. The token itself is shown once.
#[derive(Debug)]
pub struct NewToken {
    pub view: ApiTokenView,
    pub token: SecretString,
}

impl Control {
    /// Makes a token.
    pub async fn create_api_token(
        &self,
        admin: &Admin,
        form: ApiTokenForm,
    ) -> Result<NewToken, ControlError> {
        let now = self.now();
        let mut faults = Faults::default();
        let label = faults.take(text::name("/label", &form.label)).unwrap_or_default();
        faults.take(in_future("/expires_at", form.expires_at, now));
        faults.check()?;
        let issued = Issued::new(TokenKind::Api);
        let bound = self.settings().bounds.api_tokens;
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if workspaces::counts(conn, admin.workspace).await?.api_tokens >= bound {
            return Err(ControlError::full("API tokens", bound));
        }
        let new = NewApiToken {
            label: &label,
            role: form.role,
            token_hash: TokenHash::as_bytes(&issued.hash),
            last4: &issued.last4,
            created_by: admin.actor.user,
            expires_at: form.expires_at,
        };
        let view = api_tokens::create(conn, admin.workspace, new, now).await?;
        let id = view.id.to_string();
        let what = json!({"label": label, "role": form.role, "expires_at": form.expires_at});
        let event = Event::new("api_token.create", ("api_token", &id, &label)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(NewToken { view, token: issued.token })
    }

    /// The tokens, revoked ones too, newest first.
    pub async fn api_tokens(
        &self,
        admin: &Admin,
        page: Page<ApiTokenId>,
    ) -> Result<PageOf<ApiTokenView, ApiTokenId>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found =
            api_tokens::list(&mut tx.conn(), admin.workspace, page.after, page.one_more()).await?;
        tx.commit().await?;
        Ok(page.cut(found, |token| token.id))
    }

    /// Ends a token.
    pub async fn revoke_api_token(
        &self,
        admin: &Admin,
        id: ApiTokenId,
    ) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if !api_tokens::revoke(conn, admin.workspace, id, now).await? {
            return Err(ControlError::NotFound("live API token"));
        }
        let text = id.to_string();
        let event = Event::new("api_token.revoke", ("api_token", &text, ""));
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// An end that already passed is a mistake.
pub(crate) fn in_future(
    pointer: &str,
    at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), Fault> {
    match at {
        Some(at) if at <= now => {
            Err(Fault::new(pointer, codes::IN_THE_PAST, "this time has passed"))
        }
        _ => Ok(()),
    }
}
