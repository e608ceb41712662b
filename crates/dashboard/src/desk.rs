//! A member in a workspace, with all that the frame of a workspace page shows.

use axum::extract::{FromRef, FromRequestParts, OriginalUri};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::StatusCode;
use http::request::Parts;
use sluice_control::{
    Access, Admin, Control, ControlError, Permission, PolicyManager, Viewer, WorkspaceView,
};
use sluice_domain::Role;
use sluice_web::{Csrf, In, Problem};

use crate::DashboardState;
use crate::flash;
use crate::frame::Head;
use crate::public::docs::pages::of_section;
use crate::ui::Flash;

/// What a handler gives: a page, or the answer that stands for what went wrong.
pub(crate) type Answer = Result<Response, Response>;

/// The answer to an error that no form can show.
pub(crate) fn refuse(error: ControlError) -> Response {
    Problem::from(error).into_response()
}

/// 404 from a handler.
pub(crate) fn absent(what: &'static str) -> Response {
    refuse(ControlError::NotFound(what))
}

/// Reads a member's permission as a viewer's.
pub(crate) trait AsViewer {
    fn viewer(&self) -> &Viewer;
}

impl AsViewer for Viewer {
    fn viewer(&self) -> &Viewer {
        self
    }
}

impl AsViewer for PolicyManager {
    fn viewer(&self) -> &Viewer {
        self
    }
}

impl AsViewer for Admin {
    fn viewer(&self) -> &Viewer {
        self
    }
}

/// A member with permission `P` in the workspace of the path.
#[derive(Debug)]
pub(crate) struct Desk<P> {
    pub(crate) who: P,
    pub(crate) control: Control,
    pub(crate) now: DateTime<Utc>,
    pub(crate) csrf: String,
    /// The public address, without a slash at the end.
    pub(crate) base: String,
    head: Head,
    flash: Option<Flash>,
}

impl<P: AsViewer> Desk<P> {
    /// `/w/{slug}{rest}`
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/w/{}{rest}", self.access().slug)
    }

    pub(crate) fn access(&self) -> &Access {
        self.who.viewer()
    }

    pub(crate) fn viewer(&self) -> &Viewer {
        self.who.viewer()
    }

    pub(crate) fn may(&self, role: Role) -> bool {
        self.access().role.at_least(role) && !self.access().suspended
    }

    /// The frame of a page of `section`. Asks for what the frame counts.
    pub(crate) async fn frame(&self, section: &'static str) -> Result<WsFrame, Response> {
        let access = self.access();
        let workspaces = self.control.workspaces(&access.actor).await.map_err(refuse)?;
        let pending = self.control.pending_approvals(self.viewer()).await.map_err(refuse)?;
        Ok(WsFrame {
            head: self.head.clone(),
            csrf: self.csrf.clone(),
            slug: access.slug.clone(),
            name: access.workspace_name.clone(),
            email: access.actor.email.clone(),
            role: access.role,
            suspended: access.suspended,
            workspaces,
            pending,
            section,
            flash: self.flash.clone(),
        })
    }
}

impl Desk<Admin> {
    /// The same desk, for what any member may see.
    pub(crate) fn as_viewer_desk(&self) -> Desk<Viewer> {
        Desk {
            who: Viewer::clone(&self.who),
            control: self.control.clone(),
            now: self.now,
            csrf: self.csrf.clone(),
            base: self.base.clone(),
            head: self.head.clone(),
            flash: self.flash.clone(),
        }
    }
}

impl<S, P> FromRequestParts<S> for Desk<P>
where
    S: Send + Sync,
    P: Permission + Send,
    DashboardState: FromRef<S>,
    sluice_web::WebState: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let In(who) = In::<P>::from_request_parts(parts, state).await?;
        let csrf =
            Csrf::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
        let state = DashboardState::from_ref(state);
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
        Ok(Self {
            who,
            now: state.control().now(),
            control: state.control().clone(),
            csrf: csrf.token,
            base: state.base().to_owned(),
            head: Head::new(&parts.headers, uri),
            flash: flash::read(&parts.headers),
        })
    }
}

/// What surrounds a workspace page.
#[derive(Debug, Clone)]
pub(crate) struct WsFrame {
    pub(crate) head: Head,
    pub(crate) csrf: String,
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) role: Role,
    pub(crate) suspended: bool,
    pub(crate) workspaces: Vec<WorkspaceView>,
    pub(crate) pending: i64,
    pub(crate) section: &'static str,
    pub(crate) flash: Option<Flash>,
}

/// What the navigation of an admin leads to.
#[cfg(test)]
pub(crate) const SECTIONS: [&str; 14] = [
    "Overview",
    "Servers",
    "Policies",
    "Grants",
    "Limits",
    "Approvals",
    "Logs",
    "Catalogue",
    "Members",
    "Notifications",
    "API tokens",
    "Audit log",
    "Security log",
    "Settings",
];

/// One entry of the navigation.
pub(crate) struct NavEntry {
    pub(crate) href: String,
    pub(crate) icon: &'static str,
    pub(crate) label: &'static str,
    pub(crate) current: bool,
    pub(crate) count: i64,
}

impl WsFrame {
    /// `/w/{slug}{rest}`
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/w/{}{rest}", self.slug)
    }

    pub(crate) fn may(&self, role: Role) -> bool {
        self.role.at_least(role) && !self.suspended
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.may(Role::Admin)
    }

    pub(crate) fn is_manager(&self) -> bool {
        self.may(Role::PolicyManager)
    }

    fn entry(
        &self,
        rest: &str,
        icon: &'static str,
        label: &'static str,
        section: &str,
    ) -> NavEntry {
        NavEntry {
            href: self.path(rest),
            icon,
            label,
            current: self.section == section,
            count: if section == "approvals" { self.pending } else { 0 },
        }
    }

    /// The page of the handbook that tells of this one.
    pub(crate) fn docs(&self) -> String {
        format!("/docs/{}", of_section(self.section))
    }

    /// The upper part of the navigation.
    pub(crate) fn nav(&self) -> Vec<NavEntry> {
        vec![
            self.entry("/", "home", "Overview", "overview"),
            self.entry("/servers", "server", "Servers", "servers"),
            self.entry("/policies", "policy", "Policies", "policies"),
            self.entry("/grants", "key", "Grants", "grants"),
            self.entry("/limits", "meter", "Limits", "limits"),
            self.entry("/approvals", "inbox", "Approvals", "approvals"),
            self.entry("/logs", "log", "Logs", "logs"),
            NavEntry {
                href: "/tools".to_owned(),
                icon: "book",
                label: "Catalogue",
                current: false,
                count: 0,
            },
        ]
    }

    /// The lower part, below a line.
    pub(crate) fn nav_more(&self) -> Vec<NavEntry> {
        let mut more = vec![
            self.entry("/members", "people", "Members", "members"),
            self.entry("/notifications", "bell", "Notifications", "notifications"),
        ];
        if self.role == Role::Admin {
            more.push(self.entry("/api-tokens", "token", "API tokens", "api-tokens"));
            more.push(self.entry("/audit", "shield", "Audit log", "audit"));
            more.push(self.entry("/security", "shield", "Security log", "security"));
            more.push(self.entry("/settings", "gear", "Settings", "settings"));
        }
        more
    }
}

/// The status of a page with a form: what its faults say, or 200.
pub(crate) fn status(faults: &crate::faults::Faults) -> StatusCode {
    faults.status
}
