//! Joining by e-mail domain: an admin opens a workspace to the people of a domain, and whoever is known
//! to have an address there may come in without an invitation.
//!
//! A domain counts as the workspace's when the admin who adds it has a confirmed address of it: whoever
//! reads mail there belongs there. Domains at which anybody gets an address are never taken.

use serde_json::json;
use sluice_domain::{JoinDomainId, Role, UserId, WorkspaceId};
use sluice_store::join_domains::{self, JoinDomain};
use sluice_store::{Conn, members, users, workspaces};

use crate::access::Proof;
use crate::accounts::login_only;
use crate::audit::{self, Event};
use crate::codes;
use crate::{Actor, Admin, Control, ControlError, Fault, text};

/// A domain whose people may join.
pub type JoinDomainView = JoinDomain;

/// A workspace that the caller may join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinableView {
    pub id: WorkspaceId,
    pub name: String,
    /// What one is there after joining.
    pub role: Role,
}

/// Domains of one workspace.
pub const MAX_JOIN_DOMAINS: usize = 20;

/// Where anybody gets an address, most used first. Every country's edition of a name counts.
const PUBLIC: [&str; 16] = [
    "gmail",
    "googlemail",
    "outlook",
    "hotmail",
    "live",
    "yahoo",
    "ymail",
    "rocketmail",
    "icloud",
    "aol",
    "gmx",
    "proton",
    "protonmail",
    "yandex",
    "zoho",
    "tutanota",
];
const PUBLIC_WHOLE: [&str; 40] = [
    "mail.com",
    "web.de",
    "hey.com",
    "msn.com",
    "qq.com",
    "163.com",
    "tuta.com",
    "tuta.io",
    "fastmail.com",
    "fastmail.fm",
    "email.com",
    "me.com",
    "mac.com",
    "pm.me",
    "126.com",
    "139.com",
    "sina.com",
    "sina.cn",
    "sohu.com",
    "foxmail.com",
    "aliyun.com",
    "naver.com",
    "daum.net",
    "hanmail.net",
    "rediffmail.com",
    "mail.ru",
    "bk.ru",
    "inbox.ru",
    "list.ru",
    "rambler.ru",
    "ya.ru",
    "t-online.de",
    "freenet.de",
    "laposte.net",
    "orange.fr",
    "libero.it",
    "comcast.net",
    "mailinator.com",
    "guerrillamail.com",
    "yopmail.com",
];

fn is_public(domain: &str) -> bool {
    // `gmx.de`, `yahoo.co.uk`: the name and nothing but an ending of one or two short words.
    let (name, ending) = domain.split_once('.').unwrap_or((domain, ""));
    let is_ending = ending.split('.').count() <= 2 && ending.split('.').all(|word| word.len() <= 3);
    (PUBLIC.contains(&name) && is_ending) || PUBLIC_WHOLE.contains(&domain)
}

/// A domain as it is kept.
pub(crate) fn read(pointer: &str, typed: &str) -> Result<String, Fault> {
    let domain = typed.trim().trim_start_matches('@').to_lowercase();
    if !domain.contains('.') || !text::is_domain(&domain) || domain.len() > 253 {
        let detail = "this is no e-mail domain; one looks like example.com";
        return Err(Fault::new(pointer, codes::BAD_DOMAIN, detail));
    }
    if is_public(&domain) {
        let detail = format!("anybody can get an address at {domain}; invite people one by one");
        return Err(Fault::new(pointer, codes::PUBLIC_DOMAIN, detail));
    }
    Ok(domain)
}

/// What a role may be here: an admin is made by an admin.
pub(crate) fn read_role(pointer: &str, role: Role) -> Result<Role, Fault> {
    if role < Role::Admin {
        return Ok(role);
    }
    let detail = "people who join by themselves can be viewers or policy managers; make somebody an admin on the members' page";
    Err(Fault::new(pointer, codes::ROLE_TOO_HIGH, detail))
}

fn domain_of(email: &str) -> String {
    email.rsplit_once('@').map(|(_, domain)| domain.to_lowercase()).unwrap_or_default()
}

/// The domain of the person's address, if the address is known to be theirs.
async fn confirmed_domain(
    conn: &mut Conn<'_>,
    user: UserId,
) -> Result<Option<String>, ControlError> {
    let user = users::find(conn, user).await?;
    let user = user.filter(|user| user.verified_at.is_some() && !user.disabled);
    Ok(user.map(|user| domain_of(&user.email)).filter(|domain| !is_public(domain)))
}

impl Control {
    /// The workspace's domains, by name.
    pub async fn join_domains(&self, admin: &Admin) -> Result<Vec<JoinDomainView>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found = join_domains::list(&mut tx.conn(), admin.workspace).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Lets people of a domain join, as viewers unless said otherwise. The caller's own confirmed address
    /// proves the domain; the operator needs no proof.
    pub async fn add_join_domain(
        &self,
        admin: &Admin,
        domain: &str,
        role: Role,
    ) -> Result<JoinDomainView, ControlError> {
        let mut faults = crate::error::Faults::default();
        let domain = faults.take(read("/domain", domain));
        faults.take(read_role("/role", role));
        faults.check()?;
        let domain = domain.unwrap_or_default();
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if let Some(fault) = unproven(conn, admin, &domain).await? {
            return Err(ControlError::Invalid(vec![fault]));
        }
        if join_domains::list(conn, admin.workspace).await?.len() >= MAX_JOIN_DOMAINS {
            let detail =
                format!("there are {MAX_JOIN_DOMAINS} domains already; take one away first");
            return Err(ControlError::TooMany {
                code: codes::TOO_MANY,
                retry_after_s: None,
                detail,
            });
        }
        let by = admin.actor.maker();
        let made = join_domains::create(conn, admin.workspace, (&domain, role), by, now).await?;
        let (id, what) = (made.id.to_string(), json!({"domain": domain, "role": role}));
        let event = Event::new("join_domain.add", ("join_domain", &id, &domain)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Takes a domain away. Who has joined by it stays.
    pub async fn remove_join_domain(
        &self,
        admin: &Admin,
        id: JoinDomainId,
    ) -> Result<(), ControlError> {
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let all = join_domains::list(conn, admin.workspace).await?;
        let one = all.into_iter().find(|one| one.id == id);
        let one = one.ok_or(ControlError::NotFound("e-mail domain"))?;
        join_domains::delete(conn, admin.workspace, id).await?;
        let (id, was) = (id.to_string(), json!({"domain": one.domain, "role": one.role}));
        let event = Event::new("join_domain.remove", ("join_domain", &id, &one.domain));
        audit::record(conn, admin.workspace, &admin.actor, event.before(&was), self.now()).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Why the caller may not open the workspace to a domain, if so.
    pub(crate) async fn join_domain_fault(
        &self,
        admin: &Admin,
        domain: &str,
    ) -> Result<Option<Fault>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let fault = unproven(&mut tx.conn(), admin, domain).await?;
        tx.commit().await?;
        Ok(fault)
    }

    /// The workspaces that the caller may join by the domain of their address, by name.
    pub async fn joinable(&self, actor: &Actor) -> Result<Vec<JoinableView>, ControlError> {
        login_only(actor)?;
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let found = match confirmed_domain(conn, actor.user).await? {
            Some(domain) => join_domains::joinable(conn, &domain, actor.user).await?,
            None => Vec::new(),
        };
        tx.commit().await?;
        let view = |one: join_domains::Joinable| JoinableView {
            id: one.workspace_id,
            name: one.name,
            role: one.role,
        };
        Ok(found.into_iter().map(view).collect())
    }

    /// Makes the caller a member by the domain of their address; gives the workspace's slug. What they
    /// may not join might as well not exist.
    pub async fn join_by_domain(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
    ) -> Result<String, ControlError> {
        login_only(actor)?;
        let absent = || ControlError::NotFound("workspace that you may join");
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let domain = confirmed_domain(conn, actor.user).await?.ok_or_else(absent)?;
        let open = join_domains::joinable(conn, &domain, actor.user).await?;
        let one = open.into_iter().find(|one| one.workspace_id == workspace).ok_or_else(absent)?;
        let row = workspaces::find(conn, workspace).await?.ok_or_else(absent)?;
        self.came_as_required(conn, actor, &row).await?;
        let bound = self.settings().bounds.members;
        if workspaces::counts(conn, workspace).await?.members >= bound {
            return Err(ControlError::full("members", bound));
        }
        if !members::add(conn, workspace, actor.user, one.role, now).await? {
            return Err(absent());
        }
        let (id, what) = (actor.user.to_string(), json!({"role": one.role, "domain": domain}));
        let event = Event::new("member.join", ("member", &id, &actor.email)).after(&what);
        audit::record(conn, workspace, actor, event, now).await?;
        tx.commit().await?;
        Ok(one.slug)
    }
}

/// Why nothing says that the domain is the caller's, if so.
async fn unproven(
    conn: &mut Conn<'_>,
    admin: &Admin,
    domain: &str,
) -> Result<Option<Fault>, ControlError> {
    if admin.actor.proof == Proof::Operator {
        return Ok(None);
    }
    let user = users::find(conn, admin.actor.user).await?;
    let own = user.as_ref().map(|user| domain_of(&user.email)).unwrap_or_default();
    let (code, detail) = if own != domain {
        let detail = format!(
            "you can open the workspace to people of {own} alone, the domain of your own address; let an admin who has an address at {domain} add it"
        );
        (codes::NOT_YOUR_DOMAIN, detail)
    } else if user.is_none_or(|user| user.verified_at.is_none()) {
        let detail = "your own address is not confirmed: confirm it on your account's page first";
        (codes::UNCONFIRMED_ADDRESS, detail.to_owned())
    } else {
        return Ok(None);
    };
    Ok(Some(Fault::new("/domain", code, detail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_and_public_ones_refused() {
        for (typed, kept) in
            [(" Acme.Example ", "acme.example"), ("@mail.acme.example", "mail.acme.example")]
        {
            assert_eq!(read("/domain", typed).as_deref(), Ok(kept));
        }
        for (typed, code) in [
            ("", "bad_domain"),
            ("localhost", "bad_domain"),
            ("a@b.example", "bad_domain"),
            ("*.example.com", "bad_domain"),
            ("ex ample.com", "bad_domain"),
            ("gmail.com", "public_domain"),
            ("GMX.de", "public_domain"),
            ("yahoo.co.uk", "public_domain"),
            ("me.com", "public_domain"),
        ] {
            assert_eq!(read("/domain", typed).expect_err(typed).code, code, "{typed}");
        }
        // A company whose name only begins like one.
        assert!(read("/domain", "mail.acme-industries.example").is_ok());
        assert!(read("/domain", "mail.ibm.com").is_ok());
    }

    #[test]
    fn nobody_becomes_an_admin_by_joining() {
        assert_eq!(read_role("/role", Role::PolicyManager), Ok(Role::PolicyManager));
        assert_eq!(read_role("/role", Role::Admin).expect_err("refused").code, "role_too_high");
    }
}
