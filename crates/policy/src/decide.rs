//! The decision, in exactly the order of the language's table.

use sluice_domain::{Charge, Code, OnDrift, UnknownTools, ValidateArguments};

use crate::approval;
use crate::call::{CallInput, Settings, ToolFacts};
use crate::charge::{self, Refused};
use crate::compile::{CompiledPolicy, CompiledRule, RuleSet};
use crate::decision::{ApprovalPlan, Decision, StepKind, StepResult, Truth, Verdict};
use crate::document::{Comparison, DefaultAction, Mode, ToolEntry};
use crate::evaluate::{Facts, Over};
use crate::message;
use crate::trace::Trace;

/// Steps of a decision besides those of rules and limits.
const FIXED_STEPS: usize = 6;
/// Bytes of a tool's name; a longer one is no tool's.
const MAX_NAME: usize = 512;

/// The decision about every call of a grant that has no policy.
pub fn decide_without_policy() -> Decision {
    let stop =
        Stop::new(Verdict::Deny, Code::NoPolicy, "(no policy)", message::NO_POLICY.to_owned());
    stop.decision(Trace::default())
}

impl CompiledPolicy {
    /// Decides one call. Limits are decided by the counters: the charges say what to reserve.
    pub fn decide(&self, call: &CallInput<'_>) -> Decision {
        let observing = call.observe || self.mode() == Mode::Observe;
        // A name that is too long for a tool is not compared with patterns.
        let index = if call.tool.len() > MAX_NAME { None } else { self.entry_index(call.tool) };
        let entry = index.and_then(|index| self.rules(index));
        let sets = std::iter::once(&self.all_tools).chain(entry.map(|(rules, _)| rules));
        let (steps, comparisons) = sets.fold((FIXED_STEPS, 0), |(steps, comparisons), set| {
            (steps + set.steps(), comparisons + set.comparisons)
        });
        let mut run = Run {
            policy: self,
            call,
            entry,
            observing,
            trace: Trace::new(&self.texts, steps, comparisons),
            set_aside: None,
            cannot_tell: false,
            schema_note: None,
        };
        match run.steps() {
            Err(stop) => Decision { observing, ..stop.decision(run.trace) },
            Ok(pass) => run.passed(pass),
        }
    }

    /// Whether `tools/list` shows a tool. It agrees with `decide`: what every call would be refused
    /// as hidden, unknown, changed, held or by default is not listed.
    pub fn lists(&self, tool: &str, facts: ToolFacts, settings: Settings, observe: bool) -> bool {
        let observing = observe || self.mode() == Mode::Observe;
        let by_policy = || {
            !self.hides(tool)
                && (self.default() == DefaultAction::Allow || self.entry_index(tool).is_some())
        };
        server_refusal(tool, facts, settings).is_none() && (observing || by_policy())
    }
}

/// What the server's own settings refuse, whatever the policy says.
fn server_refusal(tool: &str, facts: ToolFacts, settings: Settings) -> Option<StepKind> {
    let known = facts.known || settings.unknown_tools == UnknownTools::ByPolicy;
    if !known || tool.len() > MAX_NAME {
        Some(StepKind::UnknownTool)
    } else if facts.changed && settings.on_drift == OnDrift::Deny {
        Some(StepKind::Drift)
    } else if facts.held {
        // Held tools are never listed, and the list and the call agree.
        Some(StepKind::Held)
    } else {
        None
    }
}

/// Why a call does not go on.
struct Stop {
    verdict: Verdict,
    code: Code,
    rule: String,
    message: String,
    counter: Option<String>,
}

impl Stop {
    fn new(verdict: Verdict, code: Code, rule: &str, message: String) -> Self {
        Self { verdict, code, rule: rule.to_owned(), message, counter: None }
    }

    fn decision(self, trace: Trace) -> Decision {
        Decision {
            verdict: self.verdict,
            code: self.code,
            rule: self.rule,
            message: self.message,
            counter: self.counter,
            trace,
            charges: Vec::new(),
            approval: None,
            observing: false,
            observed: false,
            would_be: None,
            cannot_tell: false,
            schema_note: None,
        }
    }
}

/// What a call that no rule refuses asks for.
#[derive(Default)]
struct Pass {
    charges: Vec<Charge>,
    approval: Option<(ApprovalPlan, String)>,
}

struct Run<'r, 'c> {
    policy: &'r CompiledPolicy,
    call: &'r CallInput<'c>,
    entry: Option<(&'r RuleSet, &'r ToolEntry)>,
    observing: bool,
    trace: Trace,
    /// Under `observe`: the first refusal of the policy. Its later steps are not taken.
    set_aside: Option<Stop>,
    cannot_tell: bool,
    schema_note: Option<String>,
}

/// Rules, and what they see of the call.
pub(crate) struct Set<'s, 'r, 'c> {
    pub(crate) rules: &'r RuleSet,
    entry: &'r ToolEntry,
    pub(crate) facts: Facts<'s, 'c>,
}

impl<'s, 'r, 'c> Set<'s, 'r, 'c> {
    fn new((rules, entry): (&'r RuleSet, &'r ToolEntry), call: &'s CallInput<'c>) -> Self {
        Self { rules, entry, facts: Facts::new(rules, call) }
    }
}

impl<'r, 'c> Run<'r, 'c> {
    fn steps(&mut self) -> Result<Pass, Stop> {
        self.hidden()?;
        self.server()?;
        self.named()?;
        if self.set_aside.is_some() {
            self.schema()?;
            return Ok(Pass::default());
        }
        let policy = self.policy;
        let sets: Vec<_> = std::iter::once((&policy.all_tools, &policy.document.all_tools))
            .chain(self.entry)
            .map(|rules| Set::new(rules, self.call))
            .collect();
        self.require(&sets)?;
        self.deny_if(&sets)?;
        self.schema()?;
        if self.set_aside.is_some() {
            return Ok(Pass::default());
        }
        let charges = self.charges(&sets)?;
        if self.set_aside.is_some() {
            return Ok(Pass::default());
        }
        let approval = self.approve_if(&sets);
        Ok(Pass { charges, approval })
    }

    fn step(&mut self, step: StepKind, result: StepResult) {
        self.trace.step(step, None, result);
    }

    /// A refusal of the policy: final, or under `observe` set aside.
    fn refuse(&mut self, stop: Stop) -> Result<(), Stop> {
        if self.observing {
            self.set_aside.get_or_insert(stop);
            return Ok(());
        }
        Err(stop)
    }

    fn hidden(&mut self) -> Result<(), Stop> {
        let tool = self.call.tool;
        if tool.len() > MAX_NAME || !self.policy.hides(tool) {
            self.step(StepKind::Hide, StepResult::Passed);
            return Ok(());
        }
        self.step(StepKind::Hide, StepResult::Refused);
        let message = message::unknown_tool(tool);
        self.refuse(Stop::new(Verdict::Hide, Code::UnknownTool, "(hidden)", message))
    }

    fn server(&mut self) -> Result<(), Stop> {
        let CallInput { tool, facts, settings, .. } = *self.call;
        let refused = server_refusal(tool, facts, settings);
        for step in [StepKind::UnknownTool, StepKind::Drift, StepKind::Held] {
            let result =
                if refused == Some(step) { StepResult::Refused } else { StepResult::Passed };
            self.step(step, result);
            if result == StepResult::Refused {
                break;
            }
        }
        let (verdict, code, rule, message) = match refused {
            None => return Ok(()),
            Some(StepKind::Drift) => {
                (Verdict::Deny, Code::ToolChanged, "(drift)", message::changed(tool))
            }
            Some(StepKind::Held) => {
                (Verdict::Deny, Code::ToolChanged, "(held)", message::held(tool))
            }
            Some(_) => {
                (Verdict::Hide, Code::UnknownTool, "(unknown tool)", message::unknown_tool(tool))
            }
        };
        Err(Stop::new(verdict, code, rule, message))
    }

    fn named(&mut self) -> Result<(), Stop> {
        if self.set_aside.is_some() {
            return Ok(());
        }
        if self.entry.is_some() || self.policy.default() == DefaultAction::Allow {
            self.step(StepKind::Default, StepResult::Passed);
            return Ok(());
        }
        self.step(StepKind::Default, StepResult::Refused);
        let message = message::default_deny(self.call.tool);
        self.refuse(Stop::new(Verdict::Deny, Code::DefaultDeny, "(default deny)", message))
    }

    fn rule_step(&mut self, step: StepKind, rule: &CompiledRule, result: StepResult) {
        self.cannot_tell |= result == StepResult::CannotTell;
        self.trace.step(step, Some(rule.number), result);
    }

    fn require(&mut self, sets: &[Set<'_, 'r, 'c>]) -> Result<(), Stop> {
        let may_show = may_show(self.policy);
        for set in sets {
            for (rule, written) in set.rules.require.iter().zip(&set.entry.require) {
                let result = match set.facts.rule(rule, Over::Every, &mut self.trace) {
                    Truth::True => StepResult::Passed,
                    Truth::CannotTell => StepResult::CannotTell,
                    _ => StepResult::Refused,
                };
                let (tool, tested) = (self.call.tool, &self.trace);
                let refused = (result == StepResult::Refused)
                    .then(|| message::require_failed(tool, written, tested, &may_show));
                self.rule_step(StepKind::Require, rule, result);
                if let Some(message) = refused {
                    let code = Code::RequireFailed;
                    return self.refuse(Stop::new(Verdict::Deny, code, &rule.pointer, message));
                }
            }
        }
        Ok(())
    }

    fn deny_if(&mut self, sets: &[Set<'_, 'r, 'c>]) -> Result<(), Stop> {
        if self.set_aside.is_some() {
            return Ok(());
        }
        let may_show = may_show(self.policy);
        for set in sets {
            for (rule, written) in set.rules.deny_if.iter().zip(&set.entry.deny_if) {
                let result = match set.facts.rule(rule, Over::Any, &mut self.trace) {
                    Truth::True | Truth::WrongType => StepResult::Refused,
                    Truth::CannotTell => StepResult::CannotTell,
                    Truth::False | Truth::Missing => StepResult::Passed,
                };
                let (tool, tested) = (self.call.tool, &self.trace);
                let refused = (result == StepResult::Refused)
                    .then(|| message::deny_if_matched(tool, written, tested, &may_show));
                self.rule_step(StepKind::DenyIf, rule, result);
                if let Some(message) = refused {
                    let code = Code::DenyIfMatched;
                    return self.refuse(Stop::new(Verdict::Deny, code, &rule.pointer, message));
                }
            }
        }
        Ok(())
    }

    /// The server's own check of the arguments; `observe` does not set it aside.
    fn schema(&mut self) -> Result<(), Stop> {
        let validate = self.call.settings.validate_arguments;
        if validate == ValidateArguments::Off {
            return Ok(());
        }
        let Some(problem) = (self.call.schema_problem)() else {
            self.step(StepKind::Schema, StepResult::Passed);
            return Ok(());
        };
        if self.call.arguments.keeps_less() {
            // Of a record with marks nothing is said: neither that it fits, nor that it does not.
            self.step(StepKind::Schema, StepResult::CannotTell);
            self.cannot_tell |= validate == ValidateArguments::Deny;
            return Ok(());
        }
        if validate == ValidateArguments::Log {
            self.step(StepKind::Schema, StepResult::Noted);
            self.schema_note = Some(problem);
            return Ok(());
        }
        self.step(StepKind::Schema, StepResult::Refused);
        let message = message::schema(self.call.tool, &problem);
        Err(Stop::new(Verdict::Deny, Code::ArgumentsInvalid, "(schema)", message))
    }

    fn charges(&mut self, sets: &[Set<'_, 'r, 'c>]) -> Result<Vec<Charge>, Stop> {
        match charge::gather(self.call.tool, sets, &mut self.trace) {
            Ok((charges, all_told)) => {
                self.cannot_tell |= !all_told;
                Ok(charges)
            }
            Err(refused) => {
                let Refused { code, rule, message, counter } = refused;
                let stop = Stop::new(Verdict::Deny, code, &rule, message);
                self.refuse(Stop { counter, ..stop })?;
                Ok(Vec::new())
            }
        }
    }

    fn approve_if(&mut self, sets: &[Set<'_, 'r, 'c>]) -> Option<(ApprovalPlan, String)> {
        for set in sets {
            for (rule, written) in set.rules.approve_if.iter().zip(&set.entry.approve_if) {
                let result = match set.facts.rule(rule, Over::Any, &mut self.trace) {
                    Truth::True | Truth::WrongType => StepResult::Parks,
                    Truth::CannotTell => StepResult::CannotTell,
                    Truth::False | Truth::Missing => StepResult::Passed,
                };
                self.rule_step(StepKind::ApproveIf, rule, result);
                if result == StepResult::Parks {
                    let may_show = may_show(self.policy);
                    let message = message::needs_approval(self.call.tool, written, &may_show);
                    let blocks = sets.iter().filter_map(|set| set.entry.approval.as_ref());
                    return Some((approval::plan(&rule.pointer, written, blocks), message));
                }
            }
        }
        None
    }

    fn passed(self, pass: Pass) -> Decision {
        let observing = self.observing;
        let schema_note = self.schema_note;
        if let Some(stop) = self.set_aside {
            let would_be = Some(stop.verdict);
            let decision = stop.decision(self.trace);
            let verdict = Verdict::Forward;
            return Decision {
                verdict,
                would_be,
                observed: true,
                observing,
                schema_note,
                ..decision
            };
        }
        let (verdict, code, rule, message, approval) = match pass.approval {
            None => (Verdict::Forward, Code::Allowed, String::new(), String::new(), None),
            Some((plan, message)) => {
                let rule = plan.rule.clone();
                (Verdict::Approve, Code::ApprovalPending, rule, message, Some(plan))
            }
        };
        let observed = observing && verdict == Verdict::Approve;
        Decision {
            verdict: if observed { Verdict::Forward } else { verdict },
            code,
            rule,
            message,
            charges: pass.charges,
            approval,
            counter: None,
            observing,
            observed,
            would_be: observed.then_some(verdict),
            cannot_tell: self.cannot_tell,
            schema_note,
            trace: self.trace,
        }
    }
}

/// Which values an agent may be told.
fn may_show(policy: &CompiledPolicy) -> impl Fn(&Comparison) -> bool {
    |comparison| policy.may_show(comparison)
}
