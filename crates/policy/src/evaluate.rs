//! The truth of conditions: three values (and, in simulation, "cannot tell"),
//! and the two readings of `[*]`.

use chrono::{Datelike, Timelike};
use sluice_domain::{Category, Severity};

use crate::call::CallInput;
use crate::compile::{CompiledRule, RuleSet, Source, Test};
use crate::decision::Truth;
use crate::extract::walk;
use crate::item::Item;
use crate::matcher::Matcher;
use crate::path::{Context, Segment};
use crate::trace::Trace;

/// What `[*]` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// In `require`.
    Every,
    /// In `deny_if` and `approve_if`.
    Any,
}

impl Over {
    const fn swapped(self) -> Self {
        match self {
            Self::Every => Self::Any,
            Self::Any => Self::Every,
        }
    }
}

const HOURS: [&str; 24] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
    "17", "18", "19", "20", "21", "22", "23",
];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// What a rule set may look at in one call.
pub(crate) struct Facts<'f, 'c> {
    call: &'f CallInput<'c>,
    pub(crate) slots: Vec<Item<'c>>,
}

impl<'f, 'c> Facts<'f, 'c> {
    pub(crate) fn new(set: &RuleSet, call: &'f CallInput<'c>) -> Self {
        let slots = set.paths.extract(&call.arguments);
        Self { call, slots }
    }

    /// All conditions AND-ed; what was compared goes into `trace`.
    pub(crate) fn rule(&self, rule: &CompiledRule, over: Over, trace: &mut Trace) -> Truth {
        let mut truth = Truth::True;
        for test in &rule.tests {
            truth = and(truth, self.test(test, over, trace));
            if truth == Truth::False {
                break;
            }
        }
        truth
    }

    fn test(&self, test: &Test, over: Over, trace: &mut Trace) -> Truth {
        match test {
            Test::Compare { source, matcher, number } => {
                let (result, item) = self.compare(source, matcher, over);
                trace.condition(*number, result, &item, self.call.show_values);
                result
            }
            Test::Any(tests) => {
                let mut truth = Truth::False;
                for test in tests {
                    truth = or(truth, self.test(test, over, trace));
                    if truth == Truth::True {
                        break;
                    }
                }
                truth
            }
            Test::Not(test) => match self.test(test, over.swapped(), trace) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                other => other,
            },
        }
    }

    /// The truth, and the item that settled it.
    fn compare(&self, source: &Source, matcher: &Matcher, over: Over) -> (Truth, Item<'c>) {
        let (item, rest) = match source {
            Source::Context(context) => (self.context(*context), &[] as &[Segment]),
            Source::Slot(slot, rest) => {
                (self.slots.get(*slot).copied().unwrap_or(Item::Missing), rest.as_slice())
            }
        };
        if rest.is_empty() {
            return (self.tested(matcher, &item), item);
        }
        let (combine, settled): (fn(Truth, Truth) -> Truth, Truth) = match over {
            Over::Every => (and, Truth::False),
            Over::Any => (or, Truth::True),
        };
        let mut outcome: Option<(Truth, Item<'c>)> = None;
        walk(item, rest, self.call.arguments.is_recorded(), &mut |found| {
            let truth = self.tested(matcher, &found);
            let (before, shown) = outcome.unwrap_or((truth, found));
            let after = combine(before, truth);
            outcome = Some((after, if after == before { shown } else { found }));
            after != settled
        });
        outcome.unwrap_or((matcher.test(&Item::Missing), Item::Missing))
    }

    fn tested(&self, matcher: &Matcher, item: &Item<'c>) -> Truth {
        if self.call.arguments.is_recorded() {
            matcher.test_recorded(item)
        } else {
            matcher.test(item)
        }
    }

    fn context(&self, context: Context) -> Item<'c> {
        let text = |text: Option<&'c str>| text.map_or(Item::Missing, Item::Plain);
        let call = self.call;
        match context {
            Context::ToolName => Item::Plain(call.tool),
            Context::ToolCategory => text(call.facts.category.map(Category::as_str)),
            Context::ToolSeverity => text(call.facts.severity.map(Severity::as_str)),
            Context::GrantLabel => Item::Plain(call.grant_label),
            Context::ClientName => text(call.client_name),
            Context::HourUtc => {
                let hour = usize::try_from(call.now.hour()).unwrap_or(0);
                HOURS.get(hour).map_or(Item::Missing, |hour| Item::Number(hour))
            }
            Context::WeekdayUtc => {
                let day = usize::try_from(call.now.weekday().num_days_from_monday()).unwrap_or(0);
                text(WEEKDAYS.get(day).copied())
            }
        }
    }
}

const fn rank(truth: Truth) -> u8 {
    match truth {
        Truth::True => 0,
        Truth::Missing => 1,
        Truth::WrongType => 2,
        Truth::CannotTell => 3,
        Truth::False => 4,
    }
}

/// False if one is; else what is undecidable, a wrong type before a missing value; else true.
const fn and(a: Truth, b: Truth) -> Truth {
    if rank(a) >= rank(b) { a } else { b }
}

const fn or_rank(truth: Truth) -> u8 {
    match truth {
        Truth::False => 0,
        Truth::True => 4,
        other => rank(other),
    }
}

/// True if one is; else what is undecidable; else false.
const fn or(a: Truth, b: Truth) -> Truth {
    if or_rank(a) >= or_rank(b) { a } else { b }
}
