//! `${NAME}` in configuration files, as clients fill it in.

/// Fills in variables of the environment; the name of one that cannot be filled in is the error.
pub(super) fn expand(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else { break };
        let inner = &rest[start + 2..start + 2 + length];
        filled.push_str(&rest[..start]);
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner.strip_prefix("env:").unwrap_or(inner), None),
        };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = if is_name { variable(name) } else { None };
        match value.or_else(|| default.map(str::to_owned)) {
            Some(value) => filled.push_str(&value),
            None => return Err(inner.chars().filter(|c| !c.is_control()).take(60).collect()),
        }
        rest = &rest[start + 2 + length + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_or_named() {
        let variable = |name: &str| (name == "KEY").then(|| "k${KEY}".to_owned());
        for (text, expected) in [
            ("plain $KEY {KEY}", Ok("plain $KEY {KEY}")),
            ("a ${KEY} b", Ok("a k${KEY} b")),
            ("${env:KEY}", Ok("k${KEY}")),
            ("${NONE:-x}", Ok("x")),
            ("${NONE}", Err("NONE")),
            ("${input:token}", Err("input:token")),
            ("${", Ok("${")),
            ("${}", Err("")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(expand(text, variable), expected, "{text}");
        }
    }
}
