//! A rule as rows of a form, and back. Rows are AND-ed; a row may be an alternative to the one above
//! it, and may be turned round. What rows cannot say is kept in a row as JSON. Pure.

use serde_json::{Map, Value, json};
use sluice_policy::{Op, Path};
use sluice_web::FormFields;

use super::offer::{Kind, Offer};
use super::value;

/// As many as a rule can have.
const MOST: usize = 32;

/// One row of the form, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// An alternative to the row above.
    pub(super) or: bool,
    pub(super) not: bool,
    pub(super) path: String,
    pub(super) op: String,
    pub(super) value: String,
    /// A condition that rows cannot say.
    pub(super) json: Option<String>,
}

/// The form of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RuleForm {
    /// `require`, `deny_if` or `approve_if`.
    pub(super) list: String,
    /// The rule's pointer; empty: a new one.
    pub(super) place: String,
    pub(super) name: String,
    pub(super) on_deny: String,
    pub(super) rows: Vec<Row>,
}

/// What is wrong with a field: its name and words.
pub(super) type Wrong = (String, String);

/// What a path may hold, as far as it is known.
pub(super) fn kinds<'o>(offers: &'o [Offer], path: &str) -> &'o [Kind] {
    offers.iter().find(|offer| offer.path == path).map_or(&[], |offer| offer.kinds.as_slice())
}

impl RuleForm {
    /// A rule of a document.
    pub(super) fn of(list: &str, place: &str, rule: &Value, offers: &[Offer]) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let conditions = rule.get("conditions").and_then(Value::as_array);
        let rows = conditions.into_iter().flatten().flat_map(|one| rows(one, offers)).collect();
        Self {
            list: list.to_owned(),
            place: place.to_owned(),
            name: text("name"),
            on_deny: text("on_deny"),
            rows,
        }
    }

    /// A rule that is to be written, with one row to begin with.
    pub(super) fn fresh(list: &str, offers: &[Offer]) -> Self {
        let first = offers.first();
        let row = Row {
            path: first.map(|offer| offer.path.clone()).unwrap_or_default(),
            op: "eq".to_owned(),
            ..Row::default()
        };
        Self { list: list.to_owned(), rows: vec![row], ..Self::default() }
    }

    /// What was typed; none where the form was not on the page.
    pub(super) fn typed(fields: &FormFields) -> Option<Self> {
        let list = fields.get("r_list");
        if !["require", "deny_if", "approve_if"].contains(&list) {
            return None;
        }
        let there = |index: &usize| {
            fields.0.iter().any(|(name, _)| {
                name == &format!("c{index}_path") || name == &format!("c{index}_json")
            })
        };
        let row = |index: usize| {
            let get = |name: &str| fields.get(&format!("c{index}_{name}")).to_owned();
            let json = fields.0.iter().find(|(name, _)| *name == format!("c{index}_json"));
            Row {
                or: index > 0 && get("join") == "or",
                not: get("not") == "1",
                path: if get("path") == "other" { get("path_text") } else { get("path") },
                op: get("op"),
                value: get("value"),
                json: json.map(|(_, text)| text.clone()),
            }
        };
        Some(Self {
            list: list.to_owned(),
            place: fields.get("r_place").to_owned(),
            name: fields.get("r_name").trim().to_owned(),
            on_deny: fields.get("r_on_deny").trim().to_owned(),
            rows: (0..MOST).take_while(there).map(row).collect(),
        })
    }

    /// Adds a row like the last one, or an alternative to it.
    pub(super) fn grow(&mut self, or: bool, offers: &[Offer]) {
        if self.rows.len() >= MOST {
            return;
        }
        let mut rows = Self::fresh(&self.list, offers).rows;
        if let (Some(row), Some(last)) = (rows.first_mut(), self.rows.last()) {
            row.or = or;
            if last.json.is_none() {
                row.path.clone_from(&last.path);
                row.op.clone_from(&last.op);
            }
        }
        self.rows.append(&mut rows);
    }

    /// Takes a row away; the next one stands for itself where the first of its kind went.
    pub(super) fn drop_row(&mut self, index: usize) {
        if index >= self.rows.len() {
            return;
        }
        let gone = self.rows.remove(index);
        if let Some(next) = self.rows.get_mut(index) {
            next.or &= gone.or;
        }
    }

    /// The rule in the document's words, or every field that is wrong.
    pub(super) fn rule(&self, offers: &[Offer]) -> Result<Value, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut groups: Vec<Vec<Value>> = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            match row.condition(index, offers) {
                Ok(condition) => match groups.last_mut().filter(|_| row.or) {
                    Some(group) => group.push(condition),
                    None => groups.push(vec![condition]),
                },
                Err(more) => wrong.push(more),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let one = |mut group: Vec<Value>| match (group.len(), group.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                group.extend(last);
                json!({"any": group})
            }
        };
        let mut rule = Map::new();
        if !self.name.is_empty() {
            rule.insert("name".to_owned(), json!(self.name));
        }
        let conditions: Vec<Value> = groups.into_iter().map(one).collect();
        rule.insert("conditions".to_owned(), Value::Array(conditions));
        if !self.on_deny.is_empty() {
            rule.insert("on_deny".to_owned(), json!(self.on_deny));
        }
        Ok(Value::Object(rule))
    }
}

impl Row {
    fn condition(&self, index: usize, offers: &[Offer]) -> Result<Value, Wrong> {
        let wrong = |field: &str, words: &str| (format!("c{index}_{field}"), words.to_owned());
        if let Some(text) = &self.json {
            return serde_json::from_str(text)
                .map_err(|error| wrong("json", &format!("This is not JSON: {error}.")));
        }
        let path = self.path.trim();
        Path::parse(path).map_err(|why| wrong("path", &crate::faults::sentence(&why)))?;
        let op: Op = self.op.parse().map_err(|()| wrong("op", "Choose an operator."))?;
        let value =
            value::read(&self.value, op, kinds(offers, path)).map_err(|why| wrong("value", why))?;
        let comparison = json!({"path": path, "op": op.as_str(), "value": value});
        Ok(if self.not { json!({"not": comparison}) } else { comparison })
    }
}

/// The rows that say a condition.
fn rows(condition: &Value, offers: &[Offer]) -> Vec<Row> {
    if let Some(row) = plain(condition, offers) {
        return vec![row];
    }
    let group = condition.get("any").and_then(Value::as_array).filter(|group| group.len() > 1);
    let all: Option<Vec<Row>> =
        group.and_then(|group| group.iter().map(|one| plain(one, offers)).collect());
    match all {
        Some(mut rows) => {
            for row in rows.iter_mut().skip(1) {
                row.or = true;
            }
            rows
        }
        None => vec![Row { json: Some(condition.to_string()), ..Row::default() }],
    }
}

/// A comparison, or the opposite of one, that a row says without loss.
fn plain(condition: &Value, offers: &[Offer]) -> Option<Row> {
    let (not, comparison) = match condition.get("not") {
        Some(inner) => (true, inner),
        None => (false, condition),
    };
    let text = |key: &str| comparison.get(key).and_then(Value::as_str);
    let (path, op) = (text("path")?, text("op")?);
    let parsed: Op = op.parse().ok()?;
    let implied = Value::Bool(true);
    let wanted = comparison.get("value").or((parsed == Op::Exists).then_some(&implied))?;
    let kinds = kinds(offers, path);
    let shown = value::show(wanted, parsed, kinds);
    (value::read(&shown, parsed, kinds).as_ref() == Ok(wanted)).then(|| Row {
        or: false,
        not,
        path: path.to_owned(),
        op: op.to_owned(),
        value: shown,
        json: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ws::policy_edit::offer::offers;

    fn fields(form: &RuleForm) -> FormFields {
        let mut out = vec![("r_list".to_owned(), form.list.clone())];
        out.push(("r_name".to_owned(), form.name.clone()));
        out.push(("r_on_deny".to_owned(), form.on_deny.clone()));
        out.push(("r_place".to_owned(), form.place.clone()));
        for (index, row) in form.rows.iter().enumerate() {
            let mut put = |name: &str, value: &str| {
                out.push((format!("c{index}_{name}"), value.to_owned()));
            };
            if let Some(json) = &row.json {
                put("json", json);
            } else {
                put("path", &row.path);
                put("op", &row.op);
                put("value", &row.value);
            }
            put("join", if row.or { "or" } else { "and" });
            put("not", if row.not { "1" } else { "" });
        }
        FormFields(out)
    }

    #[test]
    fn any_rule_is_read_into_rows_and_written_back_as_it_was() {
        let schema = json!({"properties": {"n": {"type": "number"}, "s": {"type": "string"}}});
        let offers = offers(Some(&schema));
        for text in [
            r#"{"conditions":[]}"#,
            r#"{"name":"n","conditions":[{"path":"args.n","op":"lte","value":1.50}],"on_deny":"No \"more\"."}"#,
            r#"{"conditions":[{"path":"args.n","op":"gt","value":1},{"not":{"path":"args.s","op":"eq","value":"5"}}]}"#,
            r#"{"conditions":[{"any":[{"path":"args.s","op":"in","value":["a","b,c"]},{"not":{"path":"args.x","op":"exists","value":false}}]},{"path":"args.y","op":"eq","value":null}]}"#,
            r#"{"conditions":[{"any":[{"path":"args.s","op":"eq","value":"a"}]}]}"#,
            r#"{"conditions":[{"not":{"any":[{"path":"args.s","op":"eq","value":"a"},{"path":"args.s","op":"eq","value":"b"}]}}]}"#,
            r#"{"conditions":[{"any":[{"any":[{"path":"args.a","op":"exists","value":true}]},{"path":"args.b","op":"regex","value":"^a\n"}]}]}"#,
            r#"{"conditions":[{"path":"args.s","op":"eq","value":5},{"path":"args[\"odd key\"]","op":"contains","value":{"a":[1]}}]}"#,
            r#"{"conditions":[{"path":"tool.severity","op":"not_in","value":["Critical"]}]}"#,
        ] {
            let rule: Value = serde_json::from_str(text).expect("JSON");
            let form = RuleForm::of("require", "/tools/t/require/0", &rule, &offers);
            assert_eq!(form.rule(&offers).as_ref(), Ok(&rule), "{form:#?}");
            let typed = RuleForm::typed(&fields(&form)).expect("a form");
            assert_eq!(typed.rule(&offers).as_ref(), Ok(&rule), "{typed:#?}");
        }
        // What is left out means true, and is written.
        let rule = json!({"conditions": [{"path": "args.a", "op": "exists"}]});
        let form = RuleForm::of("require", "", &rule, &offers);
        assert_eq!(form.rule(&offers).expect("a rule")["conditions"][0]["value"], true);
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let offers = offers(None);
        let row = |path: &str, op: &str, value: &str| Row {
            path: path.to_owned(),
            op: op.to_owned(),
            value: value.to_owned(),
            ..Row::default()
        };
        let form = RuleForm {
            rows: vec![
                row("amount", "eq", "1"),
                row("args.a", "like", "1"),
                row("args.a", "lte", "ten"),
                Row { json: Some("{".to_owned()), ..Row::default() },
            ],
            ..RuleForm::default()
        };
        let wrong = form.rule(&offers).expect_err("four fields");
        let names: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c0_path", "c1_op", "c2_value", "c3_json"]);
    }

    #[test]
    fn rows_come_and_go() {
        let offers = offers(None);
        let mut form = RuleForm::fresh("deny_if", &offers);
        form.grow(true, &offers);
        form.grow(false, &offers);
        let ors: Vec<bool> = form.rows.iter().map(|row| row.or).collect();
        assert_eq!(ors, [false, true, false]);
        form.drop_row(0);
        assert_eq!(form.rows.iter().map(|row| row.or).collect::<Vec<_>>(), [false, false]);
        form.drop_row(9);
        for _ in 0..50 {
            form.grow(false, &offers);
        }
        assert_eq!(form.rows.len(), MOST);
    }
}
