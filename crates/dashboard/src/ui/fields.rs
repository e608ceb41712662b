//! Form rows: label, hint, the field with what was typed, and the error tied to it.

use askama::Template;

use crate::filters;

/// One labelled field. The error is read out with the field (`aria-describedby`).
#[derive(Debug, Clone, Default, Template)]
#[template(path = "parts/field.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is one trait of a field, as in HTML")]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) label: String,
    /// `text`, `email`, `password`, `url`, `number`, `search`, `datetime-local`, or `textarea`.
    pub(crate) kind: &'static str,
    pub(crate) value: String,
    pub(crate) hint: String,
    pub(crate) error: Option<String>,
    pub(crate) autocomplete: &'static str,
    pub(crate) placeholder: String,
    pub(crate) required: bool,
    /// Whether it is needed depends on other fields.
    pub(crate) depends: bool,
    pub(crate) max_length: usize,
    pub(crate) rows: u8,
    /// Monospace, for JSON.
    pub(crate) code: bool,
    /// Focus goes here when the page opens.
    pub(crate) focus: bool,
}

impl askama::filters::HtmlSafe for Field {}

impl Field {
    /// A field of `kind`.
    pub(crate) fn new(kind: &'static str, name: &str, label: &str) -> Self {
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            kind,
            autocomplete: "off",
            rows: 4,
            ..Self::default()
        }
    }

    /// One line of text.
    pub(crate) fn text(name: &str, label: &str) -> Self {
        Self::new("text", name, label)
    }

    /// Several lines of text.
    pub(crate) fn area(name: &str, label: &str, rows: u8) -> Self {
        Self { rows, ..Self::new("textarea", name, label) }
    }

    pub(crate) fn value(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub(crate) fn placeholder(mut self, text: impl Into<String>) -> Self {
        self.placeholder = text.into();
        self
    }

    pub(crate) fn complete(mut self, token: &'static str) -> Self {
        self.autocomplete = token;
        self
    }

    pub(crate) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(crate) fn depends(mut self) -> Self {
        self.depends = true;
        self
    }

    pub(crate) fn max(mut self, length: usize) -> Self {
        self.max_length = length;
        self
    }

    pub(crate) fn code(mut self) -> Self {
        self.code = true;
        self
    }

    pub(crate) fn focus(mut self) -> Self {
        self.focus = true;
        self
    }

    pub(crate) fn error(mut self, error: Option<String>) -> Self {
        self.focus |= error.is_some();
        self.error = error;
        self
    }

    fn described_by(&self) -> String {
        let mut ids = Vec::new();
        if self.error.is_some() {
            ids.push(format!("{}-error", self.name));
        }
        if !self.hint.is_empty() {
            ids.push(format!("{}-hint", self.name));
        }
        ids.join(" ")
    }
}

/// One option of a [`Select`].
#[derive(Debug, Clone)]
pub(crate) struct Option_ {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) selected: bool,
}

/// A labelled choice of one.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/select.html")]
pub(crate) struct Select {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) hint: String,
    pub(crate) error: Option<String>,
    pub(crate) options: Vec<Option_>,
}

impl askama::filters::HtmlSafe for Select {}

impl Select {
    /// Options as (value, label); `chosen` is selected.
    pub(crate) fn new<V: AsRef<str>, L: AsRef<str>>(
        name: &str,
        label: &str,
        options: impl IntoIterator<Item = (V, L)>,
        chosen: &str,
    ) -> Self {
        let options = options
            .into_iter()
            .map(|(value, label)| Option_ {
                selected: value.as_ref() == chosen,
                value: value.as_ref().to_owned(),
                label: label.as_ref().to_owned(),
            })
            .collect();
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            hint: String::new(),
            error: None,
            options,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// A field that is typed into, or a choice.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Field(Field),
    Select(Select),
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field(field) => field.fmt(f),
            Self::Select(select) => select.fmt(f),
        }
    }
}

impl askama::filters::HtmlSafe for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_kept_and_escaped_and_the_error_is_tied_to_the_field() {
        let field = Field::text("name", "Name")
            .value("\"><img src=x onerror=alert(1)>")
            .hint("Up to 60 characters.")
            .error(Some("The name is taken.".to_owned()));
        let html = field.to_string();
        assert!(!html.contains("<img"), "{html}");
        assert!(html.contains("aria-describedby=\"name-error name-hint\""), "{html}");
        assert!(html.contains("aria-invalid=\"true\""), "{html}");
        assert!(html.contains("id=\"name-error\""), "{html}");
    }

    #[test]
    fn a_text_area_keeps_its_first_empty_line() {
        let html = Field::area("text", "Text", 4).value("\n\nx</textarea>").to_string();
        assert!(html.contains(">\n\n\nx&#60;/textarea&#62;</textarea>"), "{html}");
    }

    #[test]
    fn the_chosen_option_is_selected() {
        let html = Select::new("a", "A", [("x", "X"), ("y", "Y")], "y").to_string();
        assert!(html.contains("<option value=\"y\" selected>Y</option>"), "{html}");
    }
}
