//! Which counters there are: the limits of each policy that a live grant has, for each owner.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sluice_domain::{GrantId, PolicyId, Scope, ServerId, WorkspaceId};
use sluice_limits::Unavailable;
use sluice_policy::{Document, Limit, RuleSentence, compile, sentences};
use sluice_store::grants::{self, Grant, GrantFilter};
use sluice_store::policies::{self, Policy};
use sluice_store::{Conn, servers};

use super::{LimitKey, LimitView, LimitsOf};
use crate::{Control, ControlError, Viewer};

/// Sessions of each grant that are shown, those that were charged last.
const SESSIONS_OF_EACH: usize = 20;
/// The same where one grant is looked at.
const SESSIONS_OF_ONE: usize = 100;

/// The sessions of grants, in order.
pub(super) type Sessions = BTreeMap<GrantId, BTreeSet<String>>;

/// Limits of one policy that share a counter and a `max`.
struct Group {
    rules: Vec<String>,
    sentence: String,
    limit: Limit,
}

/// A policy in use.
pub(super) struct Surveyed {
    policy: PolicyId,
    name: String,
    server: ServerId,
    groups: Vec<Group>,
    /// The live grants under it that are looked at, oldest first.
    grants: Vec<(GrantId, String)>,
}

/// What was found.
pub(super) struct Survey {
    pub(super) policies: Vec<Surveyed>,
    /// There are more than were looked at.
    pub(super) partial: bool,
}

impl Surveyed {
    fn of(policy: Policy, grants: Vec<(GrantId, String)>) -> Self {
        // A document that cannot be read refuses every call, and counts nothing.
        let groups = compile(&policy.document).map(|compiled| groups(compiled.document()));
        Self {
            policy: policy.id,
            name: policy.name,
            server: policy.server_id,
            groups: groups.unwrap_or_default(),
            grants,
        }
    }

    fn counts_sessions(&self) -> bool {
        self.groups.iter().any(|group| group.limit.scope == Scope::Session)
    }

    /// Counters, without those of sessions.
    fn counters(&self) -> usize {
        let of = |group: &Group| match group.limit.scope {
            Scope::Grant | Scope::Session => self.grants.len(),
            Scope::Server | Scope::Workspace => 1,
        };
        self.groups.iter().map(of).sum()
    }

    fn row(
        &self,
        at: usize,
        grant: Option<&(GrantId, String)>,
        session: Option<&str>,
    ) -> LimitView {
        let Group { rules, sentence, limit } = &self.groups[at];
        LimitView {
            key: LimitKey {
                policy: self.policy,
                at,
                grant: grant.map(|(grant, _)| *grant),
                session: session.map(str::to_owned),
            },
            server: self.server,
            policy: self.policy,
            policy_name: self.name.clone(),
            rules: rules.clone(),
            sentence: sentence.clone(),
            counter: limit.counter.clone(),
            window: limit.window,
            reset: limit.reset,
            scope: limit.scope,
            max: limit.max,
            increment_from: limit.increment_from.as_ref().map(ToString::to_string),
            on_unavailable: limit.on_unavailable,
            grant: grant.cloned(),
            session: session.map(str::to_owned),
            reading: None,
        }
    }

    /// The rows of one group, in order.
    fn group<'a>(
        &'a self,
        at: usize,
        sessions: &'a Sessions,
    ) -> Box<dyn Iterator<Item = LimitView> + 'a> {
        let of_session = move |grant: &'a (GrantId, String)| {
            let own = sessions.get(&grant.0).into_iter().flatten();
            let own = own.map(move |session| self.row(at, Some(grant), Some(session)));
            std::iter::once(self.row(at, Some(grant), None)).chain(own)
        };
        match self.groups[at].limit.scope {
            Scope::Server | Scope::Workspace => Box::new(std::iter::once(self.row(at, None, None))),
            Scope::Grant => {
                Box::new(self.grants.iter().map(move |grant| self.row(at, Some(grant), None)))
            }
            Scope::Session => Box::new(self.grants.iter().flat_map(of_session)),
        }
    }
}

impl Survey {
    /// The first counters after `from`, in the order of lists.
    pub(super) fn rows(
        &self,
        sessions: &Sessions,
        from: Option<&LimitKey>,
        most: usize,
    ) -> Vec<LimitView> {
        let groups = self.policies.iter().flat_map(|policy| {
            let begins = from.filter(|from| from.policy == policy.policy).map_or(0, |from| from.at);
            (begins..policy.groups.len()).map(move |at| (policy, at))
        });
        let rows = groups.flat_map(|(policy, at)| policy.group(at, sessions));
        rows.filter(|row| from.is_none_or(|from| row.key > *from)).take(most).collect()
    }
}

/// The limits of a document, those that share a counter and a `max` together.
fn groups(document: &Document) -> Vec<Group> {
    let said = sentences(document);
    let said = |pointer: &str| {
        let of = |one: &&RuleSentence| one.pointer == pointer;
        said.iter().find(of).map(|one| one.text.clone()).unwrap_or_default()
    };
    let mut groups: Vec<Group> = Vec::new();
    for (pointer, limit) in document.limits() {
        let same = |group: &&mut Group| {
            let (a, b) = (&group.limit, limit);
            (&a.counter, a.window, a.reset, a.scope, a.max)
                == (&b.counter, b.window, b.reset, b.scope, b.max)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.rules.push(pointer),
            None => groups.push(Group {
                sentence: said(&pointer),
                rules: vec![pointer],
                limit: limit.clone(),
            }),
        }
    }
    groups
}

impl Control {
    /// Reads policies in use, from the one of `from` on, until they name `enough` counters.
    pub(super) async fn survey(
        &self,
        viewer: &Viewer,
        of: LimitsOf,
        from: Option<&LimitKey>,
        enough: usize,
        most_policies: usize,
    ) -> Result<Survey, ControlError> {
        let (workspace, now) = (viewer.workspace, self.now());
        let most = self.settings().bounds.grants;
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let grants = grants_of(conn, workspace, of, most).await?;
        let live = |grant: &&Grant| {
            grant.revoked_at.is_none() && grant.expires_at.is_none_or(|ends| ends > now)
        };
        let mut used: Vec<_> = grants
            .iter()
            .filter(live)
            .filter_map(|grant| Some((grant.policy_id?, grant.id, grant.label.clone())))
            .filter(|(policy, ..)| of.policy.is_none_or(|wanted| wanted == *policy))
            .filter(|(policy, ..)| from.is_none_or(|from| *policy >= from.policy))
            .collect();
        used.sort_unstable();
        // One question for all of them.
        let one = (of.grant.is_some() || of.policy.is_some()).then(|| grants.first()).flatten();
        let server = of.server.or(one.map(|grant| grant.server_id));
        let known = policies::list(conn, workspace, server, None, i64::MAX).await?;
        let mut known: HashMap<PolicyId, Policy> =
            known.into_iter().map(|policy| (policy.id, policy)).collect();
        let (mut policies, mut left) = (Vec::new(), enough);
        let mut rest = used.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(chunk) = rest.next_if(|_| left > 0 && policies.len() < most_policies) {
            let Some(policy) = known.remove(&chunk[0].0) else { continue };
            let grants = chunk.iter().map(|(_, grant, label)| (*grant, label.clone())).collect();
            let surveyed = Surveyed::of(policy, grants);
            // Of the first policy, some were on the pages before.
            if from.is_none_or(|from| surveyed.policy > from.policy) {
                left = left.saturating_sub(surveyed.counters());
            }
            policies.push(surveyed);
        }
        let partial = rest.peek().is_some();
        tx.commit().await?;
        Ok(Survey { policies, partial })
    }

    /// The sessions that have counters of their own.
    pub(super) async fn sessions(
        &self,
        workspace: WorkspaceId,
        survey: &Survey,
        most: usize,
    ) -> Result<Sessions, Unavailable> {
        let counting = survey.policies.iter().filter(|policy| policy.counts_sessions());
        let grants: Vec<GrantId> =
            counting.flat_map(|policy| policy.grants.iter().map(|(grant, _)| *grant)).collect();
        let found = self.inner.counters.sessions(workspace, &grants, most).await?;
        let mut sessions = Sessions::new();
        for (grant, session) in found {
            sessions.entry(grant).or_default().insert(session);
        }
        Ok(sessions)
    }
}

impl LimitsOf {
    /// Sessions of each grant that are shown.
    pub(super) const fn sessions(self) -> usize {
        if self.grant.is_some() { SESSIONS_OF_ONE } else { SESSIONS_OF_EACH }
    }
}

/// The grants to look at; what is asked for must be there.
async fn grants_of(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    of: LimitsOf,
    most: i64,
) -> Result<Vec<Grant>, ControlError> {
    if let Some(server) = of.server {
        let found = servers::find(conn, workspace, server).await?;
        found.ok_or(ControlError::NotFound("server"))?;
    }
    if let Some(policy) = of.policy {
        let found = policies::find(conn, workspace, policy).await?;
        found.ok_or(ControlError::NotFound("policy"))?;
    }
    if let Some(grant) = of.grant {
        let found = grants::find(conn, workspace, grant).await?;
        let found = found.ok_or(ControlError::NotFound("grant"))?;
        return Ok(if of.server.is_none_or(|server| server == found.server_id) {
            vec![found]
        } else {
            Vec::new()
        });
    }
    let filter = GrantFilter { server: of.server, policy: of.policy, ..GrantFilter::default() };
    Ok(grants::list(conn, workspace, filter, None, most).await?)
}
