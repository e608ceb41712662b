//! Asks the policy, and charges the limits that it names.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sluice_domain::metrics;
use sluice_domain::{
    Amount, Charge, Code, OnUnavailable, ReservationId, Reset, Scope, Window, WorkspaceId,
};
use sluice_limits::{Counters, Demand, Prepared, Unavailable, session_owner};
use sluice_mcp::ToolCall;
use sluice_policy::{Arguments, CallInput, Decision, Settings, ToolFacts};

use crate::cache::Entry;
use crate::route::{Route, RoutePolicyState};
use crate::session::Session;
use crate::state::Inner;

/// How long a call that is only observed waits for the counters.
const OBSERVED_WAIT: Duration = Duration::from_millis(100);

/// What the policy may know of a tool; `shown`: the grant was shown it in a list.
fn facts(inner: &Inner, route: &Route, tool: &str, shown: bool) -> ToolFacts {
    let mut facts = route.facts(tool, shown);
    // What only agents were shown was never reviewed, like a new tool.
    let unreviewed = shown && route.record.server.tools_read && route.tool(tool).is_none();
    facts.changed |= unreviewed || inner.seen.differs(route, tool);
    facts.held |= route.record.server.settings.hold_poisoned && inner.seen.poisoned(route, tool);
    facts
}

/// Whether a list may show a tool that the upstream lists.
pub(crate) fn lists(inner: &Inner, route: &Route, tool: &str) -> bool {
    let RoutePolicyState::Compiled(policy) = &route.policy else { return false };
    let settings = Settings::from(&route.record.server.settings);
    policy.lists(tool, facts(inner, route, tool, true), settings, route.record.grant.observe)
}

/// Whether the grant was shown a tool that the server's own list does not name.
pub(crate) async fn shown(inner: &Inner, route: &Route, tool: &str) -> bool {
    let record = &route.record;
    route.tool(tool).is_none() && inner.seen.knows(record.grant.id, record.server.id, tool).await
}

/// The decision about a call, see [`shown`]; nothing is charged yet. An error: the arguments cannot be decided on.
pub(crate) fn decide(
    inner: &Inner,
    entry: &Entry,
    call: &ToolCall<'_>,
    shown: bool,
    client_name: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Decision, String> {
    let route = &entry.route;
    let policy = match &route.policy {
        RoutePolicyState::Compiled(policy) => policy,
        RoutePolicyState::None => return Ok(sluice_policy::decide_without_policy()),
        RoutePolicyState::Unreadable => {
            let rule = "(policy unreadable)".to_owned();
            return Ok(Decision { rule, ..sluice_policy::decide_without_policy() });
        }
    };
    let record = &route.record;
    let arguments = Arguments::parse(call.arguments).map_err(|error| error.to_string())?;
    let mut decision = policy.decide(&CallInput {
        tool: &call.name,
        arguments,
        facts: facts(inner, route, &call.name, shown),
        settings: Settings::from(&record.server.settings),
        schema_problem: &|| route.schema_problem(&call.name, call.arguments),
        grant_label: &record.grant.label,
        client_name,
        now,
        observe: record.grant.observe,
        show_values: record.server.settings.log_argument_values,
    });
    decision.charges.extend(record.calls_per_day.map(day_charge));
    Ok(decision)
}

/// Stands where a rule's pointer does, for the calls a day that the operator allows.
pub(crate) const DAY_RULE: &str = "(calls a day)";

/// What a call charges the workspace's day with.
fn day_charge(max: u32) -> Charge {
    Charge {
        rule: DAY_RULE.to_owned(),
        // No policy can name a counter like that.
        counter: DAY_RULE.to_owned(),
        scope: Scope::Workspace,
        window: Window::Day,
        reset: Reset::Calendar,
        max: Amount::whole(max),
        amount: Amount::whole(1),
        increment_from: None,
        on_unavailable: OnUnavailable::Allow,
    }
}

/// What a call's charges were booked under.
#[derive(Debug, Clone)]
pub(crate) struct Booking {
    pub(crate) id: ReservationId,
    pub(crate) prepared: Arc<Prepared>,
}

impl Booking {
    pub(crate) fn demands(&self) -> &[Demand] {
        self.prepared.demands()
    }
}

/// While this lives, its call cannot have been sent. Dropped without [`Self::goes_on`] because the
/// client has gone, it gives the booking back.
pub(crate) struct Unsent<'a> {
    inner: &'a Inner,
    workspace: WorkspaceId,
    booking: Option<&'a Booking>,
}

impl<'a> Unsent<'a> {
    pub(crate) const fn of(inner: &'a Inner, workspace: WorkspaceId, booking: &'a Booking) -> Self {
        Self { inner, workspace, booking: Some(booking) }
    }

    /// The call goes on, and its booking with it.
    pub(crate) fn goes_on(mut self) {
        self.booking = None;
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        let Some(booking) = self.booking.cloned() else { return };
        let (counters, workspace) = (self.inner.counters.clone(), self.workspace);
        // Without a runtime the process is going down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { give_back(&counters, workspace, &booking).await });
        }
    }
}

/// Why limits refuse a call.
#[derive(Debug, Clone)]
pub(crate) struct Limited {
    pub(crate) code: Code,
    pub(crate) charge: Charge,
    pub(crate) retry_after_s: Option<u64>,
}

/// What the counters said.
#[derive(Debug, Clone)]
pub(crate) enum Charged {
    /// Booked, or there was nothing to book, or the limits only watch.
    Booked(Option<Booking>),
    Limited(Limited),
    /// Forwarded all the same because the policy only watches; what would have refused it.
    Observed(Limited),
}

/// What each charge asks of which counter.
pub(crate) fn demands(
    route: &Route,
    session: Option<&Arc<Session>>,
    charges: &[Charge],
) -> Vec<Demand> {
    let record = &route.record;
    charges
        .iter()
        .map(|charge| {
            let owner = match (charge.scope, session) {
                (Scope::Session, Some(session)) => session_owner(record.grant.id, &session.id),
                (Scope::Session, None) | (Scope::Grant, _) => record.grant.id.to_string(),
                (Scope::Server, _) => record.server.id.to_string(),
                (Scope::Workspace, _) => record.workspace.to_string(),
            };
            Demand::new(charge, owner)
        })
        .collect()
}

/// The same, made ready: once for all calls of a tool whose charges are equal.
pub(crate) fn prepared(
    route: &Route,
    session: Option<&Arc<Session>>,
    tool: &str,
    charges: &[Charge],
) -> Arc<Prepared> {
    let make = || Arc::new(Prepared::of(demands(route, session, charges)));
    if charges.iter().any(|charge| charge.scope == Scope::Session) {
        return make();
    }
    route.prepared.get(tool, charges, make)
}

/// The limit that refused, from what the counters answered.
pub(crate) fn limited(charges: &[Charge], reserved: &sluice_limits::Reserved) -> Option<Limited> {
    let at = reserved.blamed()?;
    let reading = reserved.readings.get(at)?;
    let seconds = |wait: Duration| {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        whole.max(1)
    };
    Some(Limited {
        code: Code::RateLimited,
        charge: charges.get(at)?.clone(),
        retry_after_s: if reading.never { None } else { reading.wait.map(seconds) },
    })
}

/// Charges all limits of a call, or none.
pub(crate) async fn charge(
    inner: &Inner,
    route: &Route,
    session: Option<&Arc<Session>>,
    tool: &str,
    decision: &Decision,
    keep: Option<Duration>,
) -> Charged {
    if decision.charges.is_empty() {
        return Charged::Booked(None);
    }
    let workspace = route.record.workspace;
    let prepared = prepared(route, session, tool, &decision.charges);
    let booking = Booking { id: ReservationId::new(), prepared };
    let unsent = Unsent::of(inner, workspace, &booking);
    let (counters, keep) = (&inner.counters, keep.unwrap_or_default());
    let reserving = counters.charge(workspace, booking.id, &booking.prepared, keep);
    let reserved = if decision.observing {
        tokio::time::timeout(OBSERVED_WAIT, reserving).await.ok()
    } else {
        Some(reserving.await)
    };
    unsent.goes_on();
    match reserved {
        Some(Ok(Ok(()))) => Charged::Booked(Some(booking)),
        Some(Ok(Err(reserved))) => match limited(&decision.charges, &reserved) {
            // What the operator allows is not the policy's to watch.
            Some(limited) if limited.charge.rule == DAY_RULE => Charged::Limited(limited),
            Some(limited) if decision.observing => day_is_over(inner, route, decision)
                .await
                .map_or(Charged::Observed(limited), Charged::Limited),
            Some(limited) => Charged::Limited(limited),
            // Refused and nobody to blame cannot be; the safe reading is a refusal.
            None => unavailable(decision).map_or(Charged::Booked(None), Charged::Limited),
        },
        None => unavailable(decision).map_or(Charged::Booked(None), Charged::Observed),
        Some(Err(error)) => without_counters(inner, route, decision, &booking, &error).await,
    }
}

/// Charges an observed call that its policy would have refused to the operator's day alone.
async fn day_is_over(inner: &Inner, route: &Route, decision: &Decision) -> Option<Limited> {
    let day = decision.charges.iter().find(|charge| charge.rule == DAY_RULE)?;
    let (charges, workspace) = (std::slice::from_ref(day), route.record.workspace);
    let demands = demands(route, None, charges);
    let reserving = inner.counters.reserve(workspace, ReservationId::new(), &demands);
    let reserved = tokio::time::timeout(OBSERVED_WAIT, reserving).await.ok()?.ok()?;
    if reserved.granted { None } else { limited(charges, &reserved) }
}

/// The first limit that does not want calls while nobody counts.
pub(crate) fn unavailable(decision: &Decision) -> Option<Limited> {
    let strict = |charge: &&Charge| charge.on_unavailable == OnUnavailable::Deny;
    let charge = decision.charges.iter().find(strict)?.clone();
    Some(Limited { code: Code::LimitsUnavailable, charge, retry_after_s: None })
}

async fn without_counters(
    inner: &Inner,
    route: &Route,
    decision: &Decision,
    booking: &Booking,
    error: &Unavailable,
) -> Charged {
    metrics::LIMITS_UNAVAILABLE.add([], 1);
    match unavailable(decision) {
        // Perhaps it was charged after all: then it must be given back if the call is not made.
        None => Charged::Booked(error.doubtful.then(|| booking.clone())),
        Some(limited) if decision.observing => Charged::Observed(limited),
        Some(limited) => {
            if error.doubtful {
                refund(inner, route, booking).await;
            }
            Charged::Limited(limited)
        }
    }
}

/// Gives a booking back: the call never reached the upstream.
pub(crate) async fn refund(inner: &Inner, route: &Route, booking: &Booking) {
    give_back(&inner.counters, route.record.workspace, booking).await;
}

async fn give_back(counters: &Counters, workspace: WorkspaceId, booking: &Booking) {
    if let Err(error) = counters.refund_prepared(workspace, booking.id, &booking.prepared).await {
        tracing::warn!(%workspace, %error, "A refund has to wait for the counters");
    }
}
