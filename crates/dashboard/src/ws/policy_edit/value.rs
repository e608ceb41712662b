//! The value of a comparison as a line of text, and back. What is shown is read as the same value.

use serde_json::{Number, Value};
use sluice_policy::Op;

use super::offer::Kind;

/// Reads what was typed as the value of `op` on something of these kinds; an error says what to type.
pub(super) fn read(text: &str, op: Op, kinds: &[Kind]) -> Result<Value, &'static str> {
    match op {
        Op::Lt | Op::Lte | Op::Gt | Op::Gte => number(text).ok_or("Give a number."),
        Op::LengthLte => number(text)
            .filter(|number| number.to_string().bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or("Give a whole number from 0."),
        Op::Regex | Op::StartsWith | Op::EndsWith => Ok(Value::String(string(text))),
        Op::Exists => match text.trim() {
            "" | "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("Give true or false."),
        },
        Op::In | Op::NotIn => list(text, kinds),
        Op::Eq | Op::Neq | Op::Contains => Ok(any(text, kinds)),
    }
}

/// The same value as a line.
pub(super) fn show(value: &Value, op: Op, kinds: &[Kind]) -> String {
    let plain = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if matches!(op, Op::In | Op::NotIn) => {
            let shown: Vec<String> = items.iter().map(|item| show(item, Op::Eq, kinds)).collect();
            shown.join(", ")
        }
        other => other.to_string(),
    };
    // A field of a form keeps one line; blanks at its ends are not seen.
    let visible = plain.trim() == plain && !plain.contains(char::is_control);
    if visible && read(&plain, op, kinds).as_ref() == Ok(value) { plain } else { value.to_string() }
}

fn number(text: &str) -> Option<Value> {
    serde_json::from_str::<Number>(text.trim()).ok().map(Value::Number)
}

/// As typed, or a JSON string.
fn string(text: &str) -> String {
    let quoted = text.trim();
    let read = quoted.starts_with('"').then(|| serde_json::from_str::<String>(quoted).ok());
    read.flatten().unwrap_or_else(|| text.to_owned())
}

fn any(text: &str, kinds: &[Kind]) -> Value {
    if !kinds.is_empty() && kinds.iter().all(|kind| *kind == Kind::Text) && text.trim() != "null" {
        return Value::String(string(text));
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// A JSON list, or parts between commas.
fn list(text: &str, kinds: &[Kind]) -> Result<Value, &'static str> {
    if text.trim_start().starts_with('[') {
        let list = serde_json::from_str::<Vec<Value>>(text);
        return list.map(Value::Array).map_err(|_| "This list is not JSON.");
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    Ok(Value::Array(parts.map(|part| any(part, kinds)).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_is_read_as_the_same_value() {
        let texts = [
            "", "a", " a", "5", "true", "null", "\"q\"", "a,b", "[1]", "[", "é\n", "{}", "a\"b",
            "\"", "-0",
        ];
        let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
        for text in ["5", "1.50", "-0", "1e400", "123456789012345678901234567890"] {
            values.push(serde_json::from_str(text).expect("a number"));
        }
        values.extend([json!(true), json!(null), json!([]), json!({"a": [1, "x"]})]);
        let kinds: [&[Kind]; 5] =
            [&[], &[Kind::Text], &[Kind::Number], &[Kind::Text, Kind::Number], &[Kind::List]];
        for kinds in kinds {
            for value in &values {
                for op in [Op::Eq, Op::Neq, Op::Contains] {
                    // A field that holds texts alone can be compared with nothing else but null.
                    if kinds == [Kind::Text] && !value.is_string() && !value.is_null() {
                        continue;
                    }
                    let shown = show(value, op, kinds);
                    assert_eq!(read(&shown, op, kinds).as_ref(), Ok(value), "{shown} {kinds:?}");
                    assert!(!shown.contains('\n'));
                }
                for list in [json!([value]), json!([value, "x", value]), json!([])] {
                    let shown = show(&list, Op::In, kinds);
                    assert_eq!(
                        read(&shown, Op::In, kinds).as_ref(),
                        Ok(&list),
                        "{shown} {kinds:?}"
                    );
                }
                if value.is_string() {
                    let shown = show(value, Op::Regex, kinds);
                    assert_eq!(read(&shown, Op::Regex, kinds).as_ref(), Ok(value), "{shown}");
                }
                if value.is_number() {
                    let shown = show(value, Op::Lt, kinds);
                    assert_eq!(read(&shown, Op::Lt, kinds).as_ref(), Ok(value), "{shown}");
                }
            }
        }
    }

    #[test]
    fn people_type_texts_as_texts_and_numbers_as_numbers() {
        assert_eq!(read("5", Op::Eq, &[Kind::Text]), Ok(json!("5")));
        assert_eq!(read("5", Op::Eq, &[Kind::Number]), Ok(json!(5)));
        assert_eq!(read("eur", Op::Eq, &[]), Ok(json!("eur")));
        assert_eq!(read("eur, usd", Op::In, &[Kind::Text]), Ok(json!(["eur", "usd"])));
        assert_eq!(read("[\"a,b\"]", Op::In, &[]), Ok(json!(["a,b"])));
        assert_eq!(read("", Op::Exists, &[]), Ok(json!(true)));
        assert!(read("ten", Op::Lte, &[Kind::Number]).is_err());
        assert!(
            read("1.5", Op::LengthLte, &[]).is_err() && read("-1", Op::LengthLte, &[]).is_err()
        );
        assert!(read("[1", Op::In, &[]).is_err() && read("yes", Op::Exists, &[]).is_err());
    }
}
