//! `/w/{ws}/notifications`: how people are told of calls that wait for them.

pub(crate) mod endpoint;

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sluice_control::{
    Admin, DeliveriesOf, DeliveryView, EndpointForm, EndpointView, NoticeSettings, Page, Viewer,
};
use sluice_domain::{DeliveryStatus, EndpointId, EndpointKind, Notice};
use sluice_web::{Form, FormFields};

use crate::desk::{Answer, Desk, WsFrame, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Field, Pager, Select, Tab, Tabs};

const ALL: u32 = 1_000;
const ON_PAGE: u32 = 50;

/// One thing that an endpoint can be told of.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) value: &'static str,
    pub(super) words: &'static str,
    pub(super) chosen: bool,
}

/// The events in the order in which they happen.
pub(super) fn told(chosen: &[Notice]) -> Vec<Told> {
    let all = [
        (Notice::Asked, "A call waits for a decision"),
        (Notice::Escalated, "Nobody has decided for some time"),
        (Notice::Decided, "A call was approved or denied"),
        (Notice::Expired, "Nobody decided in time"),
        (Notice::Ran, "An approved call ran"),
        (Notice::Unknown, "Whether an approved call ran is not known"),
    ];
    let one = |(notice, words): (Notice, &'static str)| Told {
        value: notice.as_str(),
        words,
        chosen: chosen.contains(&notice),
    };
    all.into_iter().map(one).collect()
}

/// A kind for people.
pub(super) fn kind_word(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Webhook => "Webhook",
        EndpointKind::Slack => "Slack channel",
        EndpointKind::Teams => "Microsoft Teams channel",
    }
}

/// A message's state for people: class of the mark, and word.
pub(super) fn delivery_state(status: DeliveryStatus) -> (&'static str, &'static str) {
    match status {
        DeliveryStatus::Waiting => ("m-waiting", "Waiting"),
        DeliveryStatus::Sent => ("m-allowed", "Sent"),
        DeliveryStatus::Dead => ("m-denied", "Given up"),
    }
}

/// A row of the delivery log.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) delivery: DeliveryView,
    pub(super) to: String,
    pub(super) state: (&'static str, &'static str),
    pub(super) last: String,
}

impl Row {
    pub(super) fn new(delivery: DeliveryView, endpoints: &[EndpointView]) -> Self {
        let named = endpoints.iter().find(|one| Some(one.id) == delivery.endpoint);
        let to = named.map(|one| one.name.clone()).or_else(|| delivery.recipient.clone());
        let last = delivery.tries.last().map(|one| match (one.status, one.error.as_str()) {
            (Some(status), "") => format!("{status} in {} ms", one.took_ms),
            (None, "") => format!("taken in {} ms", one.took_ms),
            (_, error) => error.to_owned(),
        });
        Self {
            state: delivery_state(delivery.status),
            to: to.unwrap_or_default(),
            last: last.unwrap_or_default(),
            delivery,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/notifications.html")]
struct NotificationsPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    problem: Option<String>,
    settings: NoticeSettings,
    /// Only for admins.
    admin: Option<AdminPart>,
}

#[derive(Debug)]
struct AdminPart {
    escalate: Field,
    endpoints: Vec<EndpointView>,
    empty: Empty,
    name: Field,
    kind: Select,
    url: Field,
    told: Vec<Told>,
    tabs: Tabs,
    rows: Vec<Row>,
    pager: Pager,
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl AdminPart {
    fn word(&self, endpoint: &EndpointView) -> &'static str {
        kind_word(endpoint.kind)
    }
}

/// What was typed, and which part of the log is shown.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    status: String,
    #[serde(default)]
    after: Option<String>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    kind: String,
    #[serde(skip)]
    url: String,
    #[serde(skip)]
    notices: Vec<Notice>,
    #[serde(skip)]
    escalate: Option<String>,
}

fn log_tabs(path: &str, shown: Option<DeliveryStatus>) -> Tabs {
    let tab = |status: Option<DeliveryStatus>, label: &str| Tab {
        href: match status {
            Some(status) => format!("{path}?status={status}#log"),
            None => format!("{path}#log"),
        },
        label: label.to_owned(),
        current: status == shown,
        count: None,
    };
    let tabs = vec![
        tab(None, "All"),
        tab(Some(DeliveryStatus::Waiting), "Waiting"),
        tab(Some(DeliveryStatus::Sent), "Sent"),
        tab(Some(DeliveryStatus::Dead), "Given up"),
    ];
    Tabs { label: "Which messages".to_owned(), tabs }
}

async fn admin_part(
    desk: &Desk<Viewer>,
    admin: &Admin,
    input: &Input,
    settings: &NoticeSettings,
    faults: &Faults,
) -> Result<AdminPart, axum::response::Response> {
    let control = &desk.control;
    let endpoints = control.endpoints(admin, Page::first(ALL)).await.map_err(refuse)?.items;
    let shown: Option<DeliveryStatus> = input.status.parse().ok();
    let after = input.after.as_deref().and_then(|text| text.parse().ok());
    let of = DeliveriesOf { endpoint: None, status: shown };
    let page = Page { after, limit: ON_PAGE };
    let found = control.deliveries(admin, of, page).await.map_err(refuse)?;
    let path = desk.path("/notifications");
    let at = shown.map_or(String::new(), |status| format!("&status={status}"));
    let minutes = settings.escalate_after.map(|after| after.num_minutes().to_string());
    let kinds = [EndpointKind::Slack, EndpointKind::Teams, EndpointKind::Webhook];
    let kinds = kinds.map(|kind| (kind.to_string(), kind_word(kind).to_owned()));
    let usual = [Notice::Asked, Notice::Escalated, Notice::Decided, Notice::Expired];
    let notices = if input.notices.is_empty() { &usual[..] } else { &input.notices };
    Ok(AdminPart {
        escalate: Field::new("number", "minutes", "After so many minutes")
            .value(input.escalate.clone().or(minutes).unwrap_or_default())
            .hint("1 to 10,080 (a week). Empty: never. It holds for calls that are parked from then on.")
            .error(faults.at("/escalate_after")),
        empty: Empty {
            title: "No channel yet".to_owned(),
            text: ticks("Approvals are shown here and mailed. Add a channel where your team already is."),
            action: None,
        },
        name: Field::text("name", "Name").value(input.name.clone()).required().max(80).error(faults.at("/name")),
        kind: Select::new("kind", "Kind", kinds.to_vec(), &input.kind),
        url: Field::new("url", "url", "Address")
            .value(input.url.clone())
            .hint("The incoming webhook's address, as Slack or Teams shows it, or of your own program. It is kept sealed and not shown again.")
            .required()
            .max(2_000)
            .error(faults.at("/url")),
        told: told(notices),
        tabs: log_tabs(&path, shown),
        pager: Pager {
            words: count(found.items.len(), "message", None),
            previous: after.map(|_| format!("{path}?{at}#log")),
            next: found.next.map(|next| format!("{path}?after={next}{at}#log")),
        },
        rows: found.items.into_iter().map(|one| Row::new(one, &endpoints)).collect(),
        endpoints,
    })
}

async fn page(desk: Desk<Viewer>, input: Input, faults: &Faults) -> Answer {
    let settings = desk.control.notice_settings(&desk.who).await.map_err(refuse)?;
    let admin = match desk.access().require::<Admin>() {
        Ok(admin) => Some(admin_part(&desk, &admin, &input, &settings, faults).await?),
        Err(_) => None,
    };
    let page = NotificationsPage {
        frame: desk.frame("notifications").await?,
        now: desk.now,
        problem: faults.rest(&["/name", "/url", "/escalate_after"]),
        settings,
        admin,
    };
    Ok(page::private(status(faults), &page))
}

pub(crate) async fn show(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    page(desk, input, &Faults::none()).await
}

#[derive(Debug, Deserialize)]
pub(crate) struct Mail {
    #[serde(default)]
    mail: Option<String>,
}

/// One's own mail.
pub(crate) async fn mail(desk: Desk<Viewer>, Form(input): Form<Mail>) -> Answer {
    let wants = input.mail.is_some();
    desk.control.set_wants_mail(&desk.who, wants).await.map_err(refuse)?;
    let said = if wants {
        "You get mail about calls that wait for you."
    } else {
        "You get no mail about calls."
    };
    Ok(flash::done(&desk.path("/notifications"), said))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Escalation {
    #[serde(default)]
    minutes: String,
}

pub(crate) async fn escalation(desk: Desk<Admin>, Form(input): Form<Escalation>) -> Answer {
    let text = input.minutes.trim().to_owned();
    let again = |text: String| Input { escalate: Some(text), ..Input::default() };
    let after = text.parse().ok().and_then(TimeDelta::try_minutes);
    if after.is_none() && !text.is_empty() {
        let faults = Faults::one("/escalate_after", "Give a whole number of minutes.");
        return page(desk.as_viewer_desk(), again(text), &faults).await;
    }
    match desk.control.set_escalation(&desk.who, after).await {
        Ok(()) => Ok(flash::done(&desk.path("/notifications"), "Saved when others are told.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk.as_viewer_desk(), again(text), &faults).await
        }
    }
}

/// The events of a form.
pub(super) fn chosen(form: &FormFields) -> Vec<Notice> {
    form.all("event").filter_map(|text| text.parse().ok()).collect()
}

pub(crate) async fn create(desk: Desk<Admin>, form: FormFields) -> Answer {
    let input = Input {
        name: form.get("name").to_owned(),
        kind: form.get("kind").to_owned(),
        url: form.get("url").to_owned(),
        notices: chosen(&form),
        ..Input::default()
    };
    let Ok(kind) = input.kind.parse::<EndpointKind>() else {
        let faults = Faults::one("", "Choose what kind of channel it is.");
        return page(desk.as_viewer_desk(), input, &faults).await;
    };
    let new = EndpointForm {
        name: input.name.clone(),
        kind,
        url: input.url.clone(),
        notices: input.notices.clone(),
    };
    match desk.control.create_endpoint(&desk.who, new).await {
        Ok(made) => {
            if let Some(secret) = made.secret {
                return endpoint::with_secret(desk, made.view, &secret).await;
            }
            let id: EndpointId = made.view.id;
            let to = desk.path(&format!("/notifications/endpoints/{id}"));
            Ok(flash::done(&to, "Added. Send a test to see that it arrives."))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk.as_viewer_desk(), input, &faults).await
        }
    }
}
