//! A token that was found somewhere it should not be: what it is, and its end.

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sluice_domain::WorkspaceId;
use sluice_store::{
    Conn, account_links, api_tokens, grants, invites, login_sessions, second_factor, servers,
    workspaces,
};
use sluice_vault::{TokenHash, TokenKind, parse_token};

use super::Operator;
use crate::ControlError;
use crate::audit::{Event, record_operator};
use crate::codes;

/// What a token was, for the operator. Never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaked {
    /// `grant`, `api_token`, `login`, `invite` or `link`.
    pub kind: &'static str,
    /// The workspace's slug; none of a login.
    pub workspace: Option<String>,
    /// The server that a grant is for.
    pub server: Option<String>,
    /// Its label, or whose it is.
    pub name: String,
    pub last_used_at: Option<DateTime<Utc>>,
    /// Ended by this, and not before.
    pub revoked_now: bool,
}

/// What was found, and where its end is to be noted.
struct Found {
    leaked: Leaked,
    workspace: Option<WorkspaceId>,
    id: String,
}

impl Operator {
    /// Finds what a token is, whatever the workspace, and ends it for good.
    pub async fn revoke_token(&self, token: &SecretString) -> Result<Leaked, ControlError> {
        let Some((kind, hash)) = parse_token(token.expose_secret().trim()) else {
            let detail = "this is no token of Sluice; its checksum is wrong, or a part is missing";
            return Err(ControlError::invalid("/token", codes::BAD_TOKEN, detail));
        };
        let now = self.now();
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let found = match kind {
            TokenKind::Grant => grant(conn, hash, now).await?,
            TokenKind::Api => api_token(conn, hash, now).await?,
            TokenKind::Session => login(conn, hash, now).await?,
            TokenKind::Invite => invite(conn, hash, now).await?,
            TokenKind::Link => link(conn, hash, now).await?,
            TokenKind::Half => half_login(conn, hash, now).await?,
        };
        let mut found =
            found.ok_or(ControlError::NotFound("token here; it may be another Sluice's"))?;
        if let Some(id) = found.workspace {
            found.leaked.workspace = workspaces::find(conn, id).await?.map(|one| one.slug);
        }
        if found.leaked.revoked_now {
            let Found { leaked, workspace, id } = &found;
            let action = format!("{}.revoke", leaked.kind);
            let why = json!({"why": "the operator was shown the token"});
            let event = Event::new(&action, (leaked.kind, id, &leaked.name)).after(&why);
            record_operator(conn, *workspace, event, now).await?;
        }
        tx.commit().await?;
        Ok(found.leaked)
    }
}

async fn grant(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let Some(grant) = grants::find_by_token(conn, hash.as_bytes()).await? else { return Ok(None) };
    let workspace = grant.workspace_id;
    let revoked_now = grants::revoke(conn, workspace, grant.id, now).await?;
    let server = servers::find(conn, workspace, grant.server_id).await?.map(|server| server.name);
    let leaked = Leaked {
        kind: "grant",
        workspace: None,
        server,
        name: grant.label,
        last_used_at: grant.last_used_at,
        revoked_now,
    };
    Ok(Some(Found { leaked, workspace: Some(workspace), id: grant.id.to_string() }))
}

async fn api_token(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let found = api_tokens::find_by_token(conn, hash.as_bytes()).await?;
    let Some(token) = found else { return Ok(None) };
    let workspace = token.workspace_id;
    let revoked_now = api_tokens::revoke(conn, workspace, token.id, now).await?;
    let leaked = Leaked {
        kind: "api_token",
        workspace: None,
        server: None,
        name: token.label,
        last_used_at: token.last_used_at,
        revoked_now,
    };
    Ok(Some(Found { leaked, workspace: Some(workspace), id: token.id.to_string() }))
}

async fn login(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let found = login_sessions::find_live(conn, hash.as_bytes(), now).await?;
    let Some(session) = found else { return Ok(None) };
    let revoked_now = login_sessions::revoke(conn, session.user_id, session.id).await?;
    let user = sluice_store::users::find(conn, session.user_id).await?;
    let leaked = Leaked {
        kind: "login",
        workspace: None,
        server: None,
        name: user.map(|user| user.email).unwrap_or_default(),
        last_used_at: Some(session.last_seen_at),
        revoked_now,
    };
    Ok(Some(Found { leaked, workspace: None, id: session.id.to_string() }))
}

async fn half_login(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let found = second_factor::find_half(conn, hash.as_bytes(), now).await?;
    let Some(half) = found else { return Ok(None) };
    let revoked_now = second_factor::end_half(conn, half.id).await?;
    let user = sluice_store::users::find(conn, half.user_id).await?;
    let leaked = Leaked {
        kind: "login",
        workspace: None,
        server: None,
        name: user.map(|user| user.email).unwrap_or_default(),
        last_used_at: None,
        revoked_now,
    };
    Ok(Some(Found { leaked, workspace: None, id: half.id.to_string() }))
}

async fn invite(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let found = invites::find_open(conn, hash.as_bytes(), now).await?;
    let Some(invite) = found else { return Ok(None) };
    let workspace = invite.workspace_id;
    let revoked_now = invites::revoke(conn, workspace, invite.id, now).await?;
    let leaked = Leaked {
        kind: "invite",
        workspace: None,
        server: None,
        name: invite.email,
        last_used_at: None,
        revoked_now,
    };
    Ok(Some(Found { leaked, workspace: Some(workspace), id: invite.id.to_string() }))
}

async fn link(
    conn: &mut Conn<'_>,
    hash: TokenHash,
    now: DateTime<Utc>,
) -> Result<Option<Found>, ControlError> {
    let found = account_links::find_open(conn, hash.as_bytes(), now).await?;
    let Some(link) = found else { return Ok(None) };
    let leaked = Leaked {
        kind: "link",
        workspace: None,
        server: None,
        name: link.email,
        last_used_at: None,
        revoked_now: account_links::use_up(conn, link.id, now).await?,
    };
    Ok(Some(Found { leaked, workspace: None, id: link.id.to_string() }))
}
