//! From what happened to parked calls to the messages that tell it. Each event is taken once, and its
//! messages and its row of the audit log are written in the same transaction.

use serde_json::{Value, json};
use sluice_domain::{ApprovalEventKind, ApprovalStatus, Notice, Role, UserId, WorkspaceId};
use sluice_store::approvals::{self, Approval, ApprovalEvent, NewEvent};
use sluice_store::outbox::MailReader;
use sluice_store::workspaces::Workspace;
use sluice_store::{Conn, endpoints, grants, outbox, servers, workspaces};
use sluice_vault::Place;

use super::letter::{Letter, line};
use super::payload::Story;
use super::{About, Body, To};
use crate::approvals::is_approver;
use crate::audit::{self, Event};
use crate::throttle::after;
use crate::{Control, ControlError};

/// Events that are told in one transaction.
const BATCH: i64 = 50;
/// Approvals that are escalated in one transaction.
const ESCALATED: i64 = 100;
/// People who get mail about one call.
const READERS: i64 = 50;
/// How long a fact, such as a decision, is worth telling.
const FACTS_FOR: chrono::TimeDelta = chrono::TimeDelta::days(3);
const HOUR: chrono::TimeDelta = chrono::TimeDelta::hours(1);

impl Control {
    /// Notes what waited too long, then writes the messages of all that happened since the last
    /// time; says how many things that were. Safe in several processes at once.
    pub async fn tell_news(&self) -> Result<usize, ControlError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        approvals::escalate_due(&mut tx.conn(), now, ESCALATED).await?;
        tx.commit().await?;
        let mut told = 0;
        loop {
            let mut tx = self.begin().await?;
            let conn = &mut tx.conn();
            let news = approvals::take_news(conn, BATCH).await?;
            for event in &news {
                self.tell(conn, event).await?;
            }
            tx.commit().await?;
            told += news.len();
            if news.is_empty() {
                return Ok(told);
            }
        }
    }

    async fn tell(&self, conn: &mut Conn<'_>, event: &ApprovalEvent) -> Result<(), ControlError> {
        let id = event.workspace_id;
        let Some(workspace) = workspaces::find(conn, id).await? else { return Ok(()) };
        let Some(approval) = approvals::find(conn, id, event.approval_id).await? else {
            return Ok(());
        };
        if let Some(notice) = notice(event) {
            self.announce(conn, &workspace, &approval, event, notice).await?;
        }
        audited(conn, &approval, event).await
    }

    /// Writes the messages of one event.
    async fn announce(
        &self,
        conn: &mut Conn<'_>,
        workspace: &Workspace,
        approval: &Approval,
        event: &ApprovalEvent,
        notice: Notice,
    ) -> Result<(), ControlError> {
        let server = servers::find(conn, workspace.id, approval.server_id).await?;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let page = format!("{base}/w/{}/approvals/{}", workspace.slug, approval.id);
        let open = approval.status == ApprovalStatus::Pending && approval.expires_at > self.now();
        let asks = open && matches!(notice, Notice::Asked | Notice::Escalated);
        let story = Story {
            notice,
            at: event.at,
            approval,
            workspace: &workspace.slug,
            server: server.as_ref().map_or("", |server| server.name.as_str()),
            argument_names: self.argument_names(approval),
            by: (!event.who.is_empty()).then(|| {
                let note = event.detail["note"].as_str().unwrap_or_default();
                (event.who.clone(), note.to_owned())
            }),
            page: &page,
            link: None,
        };
        let told = self.tell_endpoints(conn, &story, asks).await?;
        let mailed = if asks {
            self.mail(conn, workspace, &story, notice == Notice::Escalated).await?
        } else {
            Vec::new()
        };
        if told.is_empty() && mailed.is_empty() {
            return Ok(());
        }
        let detail = json!({"event": notice, "endpoints": told, "mail": mailed});
        let noted = NewEvent::of(ApprovalEventKind::Notified).with(&detail);
        approvals::note(conn, workspace.id, approval.id, noted, self.now()).await?;
        Ok(())
    }

    /// The names alone: values are read where looking is noted.
    fn argument_names(&self, approval: &Approval) -> Vec<String> {
        const MOST: usize = 20;
        let Some(sealed) = approval.sealed_arguments.as_deref() else { return Vec::new() };
        let place = Place::approval_arguments(approval.workspace_id, approval.id);
        let Ok(text) = self.inner.vault.open(place, sealed) else { return Vec::new() };
        let Ok(Value::Object(members)) = serde_json::from_slice(&text) else { return Vec::new() };
        members.keys().take(MOST).map(|name| line(name)).collect()
    }

    async fn tell_endpoints(
        &self,
        conn: &mut Conn<'_>,
        story: &Story<'_>,
        asks: bool,
    ) -> Result<Vec<String>, ControlError> {
        let approval = story.approval;
        let (workspace, bounds) = (approval.workspace_id, &self.settings().bounds);
        let mut told = Vec::new();
        for endpoint in endpoints::list(conn, workspace, None, bounds.endpoints).await? {
            if !endpoint.enabled || !endpoint.notices.contains(&story.notice) {
                continue;
            }
            let waiting = outbox::count_waiting(conn, workspace, endpoint.id).await?;
            if waiting >= bounds.waiting_messages {
                tracing::warn!(endpoint = %endpoint.id, "An endpoint has too many messages waiting; one was left out");
                continue;
            }
            let link = if asks {
                Some(self.make_link(conn, workspace, approval.id, None).await?)
            } else {
                None
            };
            let own = Story { link: link.as_deref(), ..story.clone() };
            let body = Body::Http(own.body(endpoint.kind).to_string());
            let about = About { give_up_at: self.useful_until(story, asks), ..topic(story) };
            self.put_out(conn, Some(workspace), To::Endpoint(endpoint.id), about, &body).await?;
            told.push(endpoint.name);
        }
        Ok(told)
    }

    /// A question is of use until it is over; a fact for some days.
    fn useful_until(&self, story: &Story<'_>, asks: bool) -> chrono::DateTime<chrono::Utc> {
        if asks { story.approval.expires_at } else { after(self.now(), FACTS_FOR) }
    }

    /// Mails those who may decide; of what was escalated, admins as well.
    async fn mail(
        &self,
        conn: &mut Conn<'_>,
        workspace: &Workspace,
        story: &Story<'_>,
        escalated: bool,
    ) -> Result<Vec<String>, ControlError> {
        if !self.can_mail() {
            return Ok(Vec::new());
        }
        let approval = story.approval;
        let grant = grants::find(conn, workspace.id, approval.grant_id).await?;
        let owner = grant.and_then(|grant| grant.created_by).filter(|_| !approval.self_allowed);
        let most = self.settings().bounds.mails_an_hour;
        let mut mailed = Vec::new();
        for reader in outbox::mail_readers(conn, workspace.id, READERS).await? {
            let decides = may_decide(&reader, approval, owner);
            let told = decides || (escalated && reader.role == Role::Admin);
            let since = self.now() - HOUR;
            if !told || outbox::count_mail(conn, &reader.email, since).await? >= most {
                continue;
            }
            let link = if decides {
                let user = Some(reader.user_id);
                Some(self.make_link(conn, workspace.id, approval.id, user).await?)
            } else {
                None
            };
            let own = Story { link: link.as_deref(), ..story.clone() };
            let letter = self.letter(workspace, &own, &reader);
            let About { topic, subject, .. } = topic(story);
            let until = approval.expires_at;
            self.post_letter(conn, Some(workspace.id), topic, subject, letter, until).await?;
            mailed.push(reader.email);
        }
        Ok(mailed)
    }

    fn letter(&self, workspace: &Workspace, story: &Story<'_>, reader: &MailReader) -> Letter {
        let approval = story.approval;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let mut paragraphs = vec![format!(
            "The agent with the grant {} wants to call {} on {}. A rule of its policy wants a person to decide first.",
            line(&approval.grant_label),
            line(&approval.tool),
            line(story.server),
        )];
        if approval.quorum > 1 {
            paragraphs.push(format!("{} people must approve it.", approval.quorum));
        }
        if story.notice == Notice::Escalated {
            paragraphs.insert(0, "Nobody has decided this call so far.".to_owned());
        }
        let (button, more) = match story.link {
            Some(link) => (
                ("Review and decide".to_owned(), link.to_owned()),
                "The link is for you alone and decides once; do not pass this mail on. ",
            ),
            None => (("Open in Sluice".to_owned(), story.page.to_owned()), ""),
        };
        Letter {
            to: reader.email.clone(),
            subject: format!("{} ({})", story.title(), line(&approval.grant_label)),
            paragraphs,
            facts: story.facts(),
            button: Some(button),
            foot: format!(
                "{more}You get this as a member of {}. To get no more of it, open {base}/w/{}/notifications",
                line(&workspace.name),
                workspace.slug
            ),
        }
    }
}

fn topic<'a>(story: &Story<'_>) -> About<'a> {
    let approval = story.approval;
    About {
        topic: story.notice.as_str(),
        subject: Some(approval.id.uuid()),
        give_up_at: approval.expires_at,
    }
}

fn may_decide(reader: &MailReader, approval: &Approval, owner: Option<UserId>) -> bool {
    is_approver(reader.role, &reader.email, &approval.approvers) && owner != Some(reader.user_id)
}

/// What people are told of an event, if anything.
fn notice(event: &ApprovalEvent) -> Option<Notice> {
    use ApprovalEventKind as Kind;
    match event.kind {
        Kind::Asked => Some(Notice::Asked),
        Kind::Escalated => Some(Notice::Escalated),
        Kind::Approved | Kind::Denied => {
            (event.detail["missing"].as_i64() == Some(0)).then_some(Notice::Decided)
        }
        Kind::Expired => Some(Notice::Expired),
        Kind::Ran => Some(Notice::Ran),
        Kind::Unknown => Some(Notice::Unknown),
        Kind::Notified
        | Kind::Shown
        | Kind::Revealed
        | Kind::Excepted
        | Kind::Released
        | Kind::NotRun => None,
    }
}

/// The row of the audit log for what happened by itself; what people did was recorded when they did it.
async fn audited(
    conn: &mut Conn<'_>,
    approval: &Approval,
    event: &ApprovalEvent,
) -> Result<(), ControlError> {
    use ApprovalEventKind as Kind;
    let (action, result) = match event.kind {
        Kind::Asked => ("approval.ask", None),
        Kind::Escalated => ("approval.escalate", None),
        Kind::Expired => ("approval.expire", None),
        Kind::Released => ("approval.release", None),
        Kind::NotRun => ("approval.result", Some("not_run")),
        Kind::Ran => ("approval.result", Some("ran")),
        Kind::Unknown => ("approval.result", Some("unknown")),
        Kind::Approved
        | Kind::Denied
        | Kind::Notified
        | Kind::Shown
        | Kind::Revealed
        | Kind::Excepted => return Ok(()),
    };
    let id = approval.id.to_string();
    let what = json!({
        "grant": approval.grant_label, "rule": approval.rule, "policy_version": approval.policy_version,
        "call": event.detail.get("call"), "result": result,
    });
    let row = Event::new(action, ("approval", &id, &approval.tool)).after(&what);
    let workspace: WorkspaceId = approval.workspace_id;
    Ok(audit::record_system(conn, workspace, row, event.at).await?)
}
