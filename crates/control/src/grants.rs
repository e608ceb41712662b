//! Grants: labelled bearer tokens for one server. The token is shown once.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use ipnet::IpNet;
use secrecy::SecretString;
use serde_json::{Value, json};
use sluice_domain::{GrantId, PolicyId, ServerId};
use sluice_store::grants::{self, Grant, GrantChange, GrantFilter, NewGrant};
use sluice_store::{StoreError, workspaces};
use sluice_vault::{Issued, TokenHash, TokenKind};

use crate::api_tokens::in_future;
use crate::audit::{self, Event};
use crate::codes;
use crate::error::Faults;
use crate::page::{Page, PageOf};
use crate::throttle::after;
use crate::{Admin, Control, ControlError, Fault, PolicyManager, Viewer, text};

/// A grant, without its token.
pub type GrantView = Grant;
/// Which grants a list shows.
pub type GrantsOf = GrantFilter;

const MAX_NETWORKS: usize = 50;
/// The longest time for which the old token works beside the new one.
pub const MAX_OVERLAP: TimeDelta = TimeDelta::days(30);

/// What a new grant is made of.
#[derive(Debug, Clone, Default)]
pub struct GrantForm {
    pub label: String,
    /// Without a policy every call is refused.
    pub policy: Option<PolicyId>,
    pub expires_at: Option<DateTime<Utc>>,
    /// Decide and log, but let through.
    pub observe: bool,
    /// Networks (CIDR) or addresses that may use it; empty: any.
    pub networks: Vec<String>,
}

/// An edit; what is `None` stays. Only attaching a policy is a policy manager's, the rest an admin's.
#[derive(Debug, Clone, Default)]
pub struct GrantPatch {
    pub label: Option<String>,
    /// `Some(None)` takes the policy away.
    pub policy: Option<Option<PolicyId>>,
    pub expires_at: Option<Option<DateTime<Utc>>>,
    pub observe: Option<bool>,
    pub networks: Option<Vec<String>>,
}

/// A grant and its token, which is shown once.
#[derive(Debug)]
pub struct Granted {
    pub grant: GrantView,
    pub token: SecretString,
}

impl Control {
    /// The grants, newest first.
    pub async fn grants(
        &self,
        viewer: &Viewer,
        filter: GrantsOf,
        page: Page<GrantId>,
    ) -> Result<PageOf<GrantView, GrantId>, ControlError> {
        if let Some(server) = filter.server {
            self.server_row(viewer, server).await?;
        }
        let mut tx = self.read_in(viewer.workspace).await?;
        let (after, limit) = (page.after, page.one_more());
        let found = grants::list(&mut tx.conn(), viewer.workspace, filter, after, limit).await?;
        tx.commit().await?;
        Ok(page.cut(found, |grant| grant.id))
    }

    /// How many live grants each policy has.
    pub async fn grants_by_policy(
        &self,
        viewer: &Viewer,
    ) -> Result<HashMap<PolicyId, usize>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let counts = grants::count_by_policy(&mut tx.conn(), viewer.workspace).await?;
        tx.commit().await?;
        let counts = counts.into_iter();
        Ok(counts.map(|one| (one.policy_id, usize::try_from(one.grants).unwrap_or(0))).collect())
    }

    /// One grant, revoked ones too.
    pub async fn grant(&self, viewer: &Viewer, id: GrantId) -> Result<GrantView, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let grant = grants::find(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        grant.ok_or(ControlError::NotFound("grant"))
    }

    /// Makes a grant.
    pub async fn create_grant(
        &self,
        admin: &Admin,
        server: ServerId,
        form: GrantForm,
    ) -> Result<Granted, ControlError> {
        self.server_row(admin, server).await?;
        let now = self.now();
        let mut faults = Faults::default();
        let label = faults.take(text::name("/label", &form.label)).unwrap_or_default();
        faults.take(in_future("/expires_at", form.expires_at, now));
        let networks = faults.take(networks(&form.networks)).unwrap_or_default();
        faults.check()?;
        let issued = Issued::new(TokenKind::Grant);
        let new = NewGrant {
            label: &label,
            token_hash: TokenHash::as_bytes(&issued.hash),
            last4: &issued.last4,
            policy: form.policy,
            expires_at: form.expires_at,
            observe: form.observe,
            networks: &networks,
            created_by: admin.actor.maker(),
        };
        let bound = self.settings().bounds.grants;
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let counts = workspaces::counts(conn, admin.workspace).await?;
        let bound = counts.limits.grants_or(bound);
        if counts.grants >= bound {
            return Err(ControlError::full("live grants", bound));
        }
        let made = grants::create(conn, admin.workspace, server, new, now).await;
        let grant = made.map_err(foreign_policy)?;
        let (id, what) = (grant.id.to_string(), for_audit(&grant));
        let event = Event::new("grant.create", ("grant", &id, &label)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, grant = %grant.id, "Made a grant");
        Ok(Granted { grant, token: issued.token })
    }

    /// Edits a grant that still is at `expected` (`None`: whatever is there).
    pub async fn edit_grant(
        &self,
        manager: &PolicyManager,
        id: GrantId,
        expected: Option<i64>,
        patch: GrantPatch,
    ) -> Result<GrantView, ControlError> {
        let before = self.live_grant(manager, id).await?;
        let GrantPatch { label, policy, expires_at, observe, networks: nets } = patch;
        // To let calls through is an admin's, like taking the policy's place.
        if label.is_some() || expires_at.is_some() || observe.is_some() || nets.is_some() {
            manager.require::<Admin>()?;
        }
        let now = self.now();
        let mut faults = Faults::default();
        let label =
            label.map(|label| faults.take(text::name("/label", &label)).unwrap_or_default());
        faults.take(in_future("/expires_at", expires_at.flatten(), now));
        let nets = nets.map(|nets| faults.take(networks(&nets)).unwrap_or_default());
        faults.check()?;
        let change = GrantChange {
            label: label.as_deref(),
            policy,
            expires_at,
            observe,
            networks: nets.as_deref(),
        };
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let saved = grants::update(conn, manager.workspace, id, expected, change, now).await;
        let grant = saved.map_err(foreign_policy)?.ok_or(ControlError::NotFound("live grant"))?;
        let (text, was, is) = (id.to_string(), for_audit(&before), for_audit(&grant));
        let event = Event::new("grant.update", ("grant", &text, &grant.label));
        let event = event.before(&was).after(&is);
        audit::record(conn, manager.workspace, &manager.actor, event, now).await?;
        tx.commit().await?;
        Ok(grant)
    }

    async fn live_grant(&self, viewer: &Viewer, id: GrantId) -> Result<Grant, ControlError> {
        let grant = self.grant(viewer, id).await?;
        if grant.revoked_at.is_some() {
            return Err(ControlError::Conflict {
                code: codes::REVOKED,
                pointer: None,
                detail: "this grant is revoked, which is for good; make a new one".to_owned(),
            });
        }
        Ok(grant)
    }

    /// Gives a grant a new token; the old one works `overlap` longer.
    pub async fn rotate_grant(
        &self,
        admin: &Admin,
        id: GrantId,
        overlap: TimeDelta,
    ) -> Result<Granted, ControlError> {
        if overlap < TimeDelta::zero() || overlap > MAX_OVERLAP {
            let detail = "the old token works from 0 seconds to 30 days longer";
            return Err(ControlError::invalid("/overlap_seconds", codes::OUT_OF_RANGE, detail));
        }
        self.live_grant(admin, id).await?;
        let now = self.now();
        let issued = Issued::new(TokenKind::Grant);
        let new = (TokenHash::as_bytes(&issued.hash).as_slice(), issued.last4.as_str());
        let until = (overlap > TimeDelta::zero()).then(|| after(now, overlap));
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let rotated = grants::rotate(conn, admin.workspace, id, new, until, now).await?;
        let grant = rotated.ok_or(ControlError::NotFound("live grant"))?;
        let (text, what) = (id.to_string(), json!({"old_token_works_until": until}));
        let event = Event::new("grant.rotate", ("grant", &text, &grant.label)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(Granted { grant, token: issued.token })
    }

    /// Ends a grant for good. Ending it twice is no error.
    pub async fn revoke_grant(&self, admin: &Admin, id: GrantId) -> Result<(), ControlError> {
        let grant = self.grant(admin, id).await?;
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if grants::revoke(conn, admin.workspace, id, now).await? {
            let text = id.to_string();
            let event = Event::new("grant.revoke", ("grant", &text, &grant.label));
            audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        }
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, grant = %id, "Revoked a grant");
        Ok(())
    }
}

/// The one thing that a grant refers to and that can be missing.
fn foreign_policy(error: StoreError) -> ControlError {
    match error {
        StoreError::DanglingReference => {
            let detail = "this server has no such policy";
            ControlError::invalid("/policy_id", codes::UNKNOWN_POLICY, detail)
        }
        other => other.into(),
    }
}

fn for_audit(grant: &Grant) -> Value {
    json!({
        "label": grant.label,
        "server_id": grant.server_id,
        "policy_id": grant.policy_id,
        "expires_at": grant.expires_at,
        "observe": grant.observe,
        "networks": grant.networks,
    })
}

/// Networks in their plain form; a single address is a network of one.
pub(crate) fn networks(texts: &[String]) -> Result<Vec<String>, Fault> {
    if texts.len() > MAX_NETWORKS {
        let detail = format!("a grant has at most {MAX_NETWORKS} networks");
        return Err(Fault::new("/networks", codes::TOO_MANY, detail));
    }
    let read = |(index, text): (usize, &String)| {
        let text = text.trim();
        let network = text
            .parse::<IpNet>()
            .ok()
            .or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
            .ok_or_else(|| {
                let detail = "this is not a network such as 203.0.113.0/24 or 2001:db8::/32";
                Fault::new(format!("/networks/{index}"), codes::BAD_NETWORK, detail)
            })?;
        Ok(network.trunc().to_string())
    };
    texts.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_in_their_plain_form() {
        let read = |text: &str| networks(&[text.to_owned()]);
        for (text, plain) in [
            ("203.0.113.7/24", "203.0.113.0/24"),
            (" 10.0.0.1 ", "10.0.0.1/32"),
            ("2001:DB8::1/32", "2001:db8::/32"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(read(text), Ok(vec![plain.to_owned()]), "{text}");
        }
        for text in ["", "10.0.0.0/33", "example.com", "10.0.0", "0x7f.1"] {
            assert_eq!(read(text).expect_err(text).pointer, "/networks/0", "{text}");
        }
    }
}
