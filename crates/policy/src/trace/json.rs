//! A trace as JSON: put together from the policy's ready parts for the log, or through `serde`.

use std::fmt;

use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use super::texts::RuleText;
use super::{ConditionTrace, Step, Trace, TraceStep};
use crate::decision::{Found, StepResult};
use crate::json::quote;

/// Which steps are kept.
type Keep = fn(&Step) -> bool;

/// Anything but "passed".
fn stands_out(step: &Step) -> bool {
    step.result != StepResult::Passed
}

impl Trace {
    /// The JSON of [`Serialize`], put together from parts that the policy keeps ready.
    pub fn to_json(&self) -> String {
        let mut out =
            String::with_capacity(64 + 48 * self.steps.len() + 192 * self.conditions.len());
        self.write(&mut out, |_| true, |_| true);
        out
    }

    /// The same in at most `most` bytes: what does not fit loses first the conditions of steps that
    /// let the call go on, then those steps, then all conditions.
    pub fn to_json_within(&self, most: usize) -> Option<String> {
        let mut out = self.to_json();
        let narrower: [(Keep, Keep); 3] =
            [(|_| true, stands_out), (stands_out, |_| true), (stands_out, |_| false)];
        for (steps, conditions) in narrower {
            if out.len() <= most {
                break;
            }
            out.clear();
            self.write(&mut out, steps, conditions);
        }
        (out.len() <= most).then_some(out)
    }

    fn write(&self, out: &mut String, keep: Keep, with_conditions: Keep) {
        out.push('[');
        for step in self.iter().filter(|step| keep(step.step)) {
            if out.len() > 1 {
                out.push(',');
            }
            step.write(out, with_conditions(step.step));
        }
        out.push(']');
    }
}

impl TraceStep<'_> {
    fn write(self, out: &mut String, with_conditions: bool) {
        for piece in ["{\"step\":\"", self.kind().as_str(), "\""] {
            out.push_str(piece);
        }
        out.push_str(self.rule_text().map_or("", RuleText::json));
        for piece in [",\"result\":\"", self.result().as_str(), "\""] {
            out.push_str(piece);
        }
        let mut before = ",\"conditions\":[";
        for condition in self.conditions().take_while(|_| with_conditions) {
            out.push_str(before);
            before = ",";
            condition.write(out);
        }
        out.push_str(if before == "," { "]}" } else { "}" });
    }
}

impl ConditionTrace<'_> {
    fn write(self, out: &mut String) {
        let Some(written) = self.written() else { return };
        out.push_str(&written.json);
        out.push_str(self.result().as_str());
        out.push('"');
        if let Some(why) = self.result().why() {
            for piece in [",\"why\":\"", why, "\""] {
                out.push_str(piece);
            }
        }
        if let Some(Found { kind, bytes }) = self.found() {
            for piece in [",\"found\":{\"type\":\"", kind.as_str(), "\",\"bytes\":"] {
                out.push_str(piece);
            }
            push_number(out, bytes);
            out.push('}');
        }
        if let Some(value) = self.value() {
            out.push_str(",\"value\":");
            out.push_str(&quote(value));
        }
        out.push('}');
    }
}

fn push_number(out: &mut String, number: usize) {
    if number >= 10 {
        push_number(out, number / 10);
    }
    out.push(char::from(b'0' + u8::try_from(number % 10).unwrap_or(0)));
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(Some(self.steps.len()))?;
        self.iter().try_for_each(|step| out.serialize_element(&step))?;
        out.end()
    }
}

impl Serialize for TraceStep<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("TraceStep", 4)?;
        out.serialize_field("step", &self.kind())?;
        if let Some(rule) = self.rule() {
            out.serialize_field("rule", rule)?;
        }
        out.serialize_field("result", &self.result())?;
        let conditions: Vec<ConditionTrace<'_>> = self.conditions().collect();
        if !conditions.is_empty() {
            out.serialize_field("conditions", &conditions)?;
        }
        out.end()
    }
}

impl Serialize for ConditionTrace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ConditionTrace", 8)?;
        out.serialize_field("pointer", self.pointer())?;
        out.serialize_field("path", self.path())?;
        out.serialize_field("op", &self.op())?;
        out.serialize_field("wanted", self.wanted())?;
        out.serialize_field("result", self.result().as_str())?;
        if let Some(why) = self.result().why() {
            out.serialize_field("why", why)?;
        }
        if let Some(found) = &self.found() {
            out.serialize_field("found", found)?;
        }
        if let Some(value) = self.value() {
            out.serialize_field("value", value)?;
        }
        out.end()
    }
}

impl PartialEq for Trace {
    /// The same steps in the same words, whichever policy keeps them.
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl Eq for Trace {}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl fmt::Debug for TraceStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out, true);
        f.write_str(&out)
    }
}

impl fmt::Debug for ConditionTrace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(&out)
    }
}
