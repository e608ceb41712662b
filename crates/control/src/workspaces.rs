//! Workspaces: entering, making, renaming.

mod ending;

use chrono::{DateTime, Utc};
use serde_json::json;
use sluice_domain::{Role, UserId, WorkspaceId};
use sluice_store::workspaces::{self, WorkspaceOfMember};
use sluice_store::{Conn, StoreError, api_tokens, members};
use sluice_vault::{TokenKind, parse_token};
use uuid::Uuid;

use crate::access::{Access, Permission, Proof};
use crate::accounts::login_only;
use crate::audit::{self, Event};
use crate::error::Faults;
use crate::throttle::after;
use crate::{Actor, Admin, Control, ControlError, Viewer, text};
pub use ending::{ClosedView, GRACE};

/// A workspace as one of its members sees it.
pub type WorkspaceView = WorkspaceOfMember;

/// What a workspace is, and how much it has, each with the most it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceCard {
    pub id: WorkspaceId,
    pub slug: String,
    pub name: String,
    pub suspended: bool,
    pub role: Role,
    pub servers: (i64, i64),
    pub policies: (i64, i64),
    /// Live ones.
    pub grants: (i64, i64),
    pub members: (i64, i64),
    /// Live ones.
    pub api_tokens: (i64, i64),
    /// Tool calls that the operator allows in a day (UTC).
    pub calls_per_day: Option<u32>,
}

/// What is to change; what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkspacePatch<'a> {
    pub name: Option<&'a str>,
    pub slug: Option<&'a str>,
    /// The provider that members are to sign in by, or none.
    pub provider: Option<Option<&'a str>>,
}

/// How often the use of an API token is noted.
const TOUCH_EVERY: chrono::TimeDelta = chrono::TimeDelta::minutes(1);
/// Slugs `name-2`, `name-3`, … that are tried before a random one.
const NUMBERED_SLUGS: u32 = 20;

impl Control {
    /// Who a REST token belongs to; `None` if it is none, revoked or expired.
    pub async fn who_by_api_token(
        &self,
        token: &str,
        address: &str,
    ) -> Result<Option<Actor>, ControlError> {
        let Some((TokenKind::Api, hash)) = parse_token(token) else { return Ok(None) };
        let now = self.now();
        let mut tx = self.read().await?;
        let holder = api_tokens::find_by_hash(&mut tx.conn(), hash.as_bytes(), now).await?;
        tx.commit().await?;
        let Some(holder) = holder else { return Ok(None) };
        if holder.last_used_at.is_none_or(|at| after(at, TOUCH_EVERY) <= now) {
            let mut tx = self.begin().await?;
            api_tokens::touch(&mut tx.conn(), holder.workspace_id, holder.id, now).await?;
            tx.commit().await?;
        }
        let role = holder.role();
        Ok(Some(Actor {
            user: holder.user_id,
            email: holder.email,
            name: String::new(),
            proof: Proof::ApiToken {
                id: holder.id,
                label: holder.label,
                workspace: holder.workspace_id,
                slug: holder.workspace_slug,
                role,
            },
            address: address.to_owned(),
        }))
    }

    /// Lets the caller into a workspace, with the permission that is asked for. Somebody who is
    /// no member learns nothing: the workspace might as well not exist.
    pub async fn enter<P: Permission>(&self, actor: &Actor, slug: &str) -> Result<P, ControlError> {
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let found = workspaces::find_for_member(conn, slug, actor.user).await?;
        let (workspace, role) = found.ok_or(ControlError::NotFound("workspace"))?;
        self.came_as_required(conn, actor, &workspace).await?;
        tx.commit().await?;
        let role = match &actor.proof {
            Proof::Login(_) | Proof::Link(_) => role,
            Proof::ApiToken { workspace: own, role: most, .. } if *own == workspace.id => {
                role.min(*most)
            }
            Proof::ApiToken { .. } | Proof::Operator => {
                return Err(ControlError::NotFound("workspace"));
            }
        };
        let access = Access {
            workspace: workspace.id,
            slug: workspace.slug,
            workspace_name: workspace.name,
            suspended: workspace.suspended,
            role,
            actor: actor.clone(),
        };
        access.require()
    }

    /// The workspaces that the caller can enter, by name.
    pub async fn workspaces(&self, actor: &Actor) -> Result<Vec<WorkspaceView>, ControlError> {
        let mut tx = self.read().await?;
        let mut all = workspaces::list_for_user(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        if let Proof::ApiToken { workspace, role, .. } = &actor.proof {
            all.retain(|one| one.id == *workspace);
            for one in &mut all {
                one.role = one.role.min(*role);
            }
        }
        Ok(all)
    }

    /// Makes a workspace with the caller as its admin. The slug comes from the name.
    pub async fn create_workspace(
        &self,
        actor: &Actor,
        name: &str,
    ) -> Result<WorkspaceView, ControlError> {
        login_only(actor)?;
        let name = text::name("/name", name).map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let bound = self.settings().bounds.workspaces_per_user;
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let have = workspaces::list_for_user(conn, actor.user).await?.len();
        if i64::try_from(have).is_ok_and(|have| have >= bound) {
            return Err(ControlError::full("workspaces of yours", bound));
        }
        let made = make_workspace(conn, &name, None, Some(actor.user), now).await?;
        members::add(conn, made.id, actor.user, Role::Admin, now).await?;
        let (id, after) = (made.id.to_string(), json!({"slug": made.slug, "name": name}));
        let event = Event::new("workspace.create", ("workspace", &id, &name)).after(&after);
        audit::record(conn, made.id, actor, event, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %made.id, "Made a workspace");
        Ok(WorkspaceView {
            id: made.id,
            slug: made.slug,
            name,
            suspended: false,
            role: Role::Admin,
        })
    }

    /// What the workspace is, and how much it has of what it may have.
    pub async fn workspace_card(&self, viewer: &Viewer) -> Result<WorkspaceCard, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let have = workspaces::counts(&mut tx.conn(), viewer.workspace).await?;
        tx.commit().await?;
        let bounds = &self.settings().bounds;
        Ok(WorkspaceCard {
            id: viewer.workspace,
            slug: viewer.slug.clone(),
            name: viewer.workspace_name.clone(),
            suspended: viewer.suspended,
            role: viewer.role,
            servers: (have.servers, have.limits.servers_or(bounds.servers)),
            policies: (have.policies, bounds.policies),
            grants: (have.grants, have.limits.grants_or(bounds.grants)),
            members: (have.members, bounds.members),
            api_tokens: (have.api_tokens, bounds.api_tokens),
            calls_per_day: have.limits.calls_per_day,
        })
    }

    /// Changes the workspace's shown name, its address (the old one goes on leading here), how its
    /// members sign in, or several of them: all or nothing.
    pub async fn change_workspace(
        &self,
        admin: &Admin,
        WorkspacePatch { name, slug, provider }: WorkspacePatch<'_>,
    ) -> Result<(), ControlError> {
        let mut faults = Faults::default();
        let name = name.and_then(|name| faults.take(text::name("/name", name)));
        let slug = slug.and_then(|slug| faults.take(text::written_slug("/slug", slug)));
        faults.check()?;
        let now = self.now();
        // Addresses are one space for all workspaces: another's must be seen to be taken.
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let id = admin.workspace.to_string();
        if let Some(name) = &name {
            workspaces::rename(conn, admin.workspace, name).await?;
            let (before, after) = (json!({"name": admin.workspace_name}), json!({"name": name}));
            let event = Event::new("workspace.rename", ("workspace", &id, name));
            let event = event.before(&before).after(&after);
            audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        }
        if let Some(slug) = &slug {
            workspaces::change_slug(conn, admin.workspace, slug, now).await?;
            let (before, after) = (json!({"slug": admin.slug}), json!({"slug": slug}));
            let shown = name.as_ref().unwrap_or(&admin.workspace_name);
            let event = Event::new("workspace.change_slug", ("workspace", &id, shown));
            let event = event.before(&before).after(&after);
            audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        }
        if let Some(provider) = provider {
            self.ask_for_provider(conn, admin, provider).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Changes the workspace's shown name.
    pub async fn rename_workspace(&self, admin: &Admin, name: &str) -> Result<(), ControlError> {
        let patch = WorkspacePatch { name: Some(name), ..WorkspacePatch::default() };
        self.change_workspace(admin, patch).await
    }

    /// Changes the workspace's address; the old one goes on leading here.
    pub async fn change_slug(&self, admin: &Admin, slug: &str) -> Result<(), ControlError> {
        let patch = WorkspacePatch { slug: Some(slug), ..WorkspacePatch::default() };
        self.change_workspace(admin, patch).await
    }
}

/// Makes the row under the wanted slug, or the first free one made from the name.
pub(crate) async fn make_workspace(
    conn: &mut Conn<'_>,
    name: &str,
    slug: Option<&str>,
    by: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<workspaces::Workspace, ControlError> {
    if let Some(slug) = slug {
        return Ok(workspaces::create(conn, slug, name, by, now).await?);
    }
    let base = text::slug(name);
    let numbered = (1..=NUMBERED_SLUGS).map(|number| match number {
        1 => base.clone(),
        _ => format!("{base}-{number}"),
    });
    let random = format!("{base}-{}", &Uuid::new_v4().simple().to_string()[..12]);
    for slug in numbered.chain([random]) {
        match workspaces::create(conn, &slug, name, by, now).await {
            Err(StoreError::Conflict { .. }) => {}
            done => return Ok(done?),
        }
    }
    Err(ControlError::internal("no free slug was found"))
}
