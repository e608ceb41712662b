//! Sluice's icons: 16 by 16, one stroke width, drawn for this project.

use super::Html;

/// The paths of an icon; an unknown name is an empty picture, found by the test below.
fn paths(name: &str) -> &'static str {
    match name {
        "home" => "M2.5 7 8 2.5 13.5 7v6.5h-4V10h-3v3.5h-4z",
        "server" => "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
        "policy" => "M3 4h10M3 8h10M3 12h10M6 2.5v3M10 6.5v3M5 10.5v3",
        "key" => "M10.5 2.5a3 3 0 1 1-2.6 4.5L3 12v1.5h2V12h1.5v-1.5L8 9",
        "inbox" => "M2.5 9 4 3h8l1.5 6v4h-11zM2.5 9H6l1 1.5h2L10 9h3.5",
        "log" => "M3 3.5h10M3 6.5h10M3 9.5h7M3 12.5h5",
        "book" => {
            "M8 4C6.5 3 4.5 3 2.5 3.5v9c2-.5 4-.5 5.5.5 1.5-1 3.5-1 5.5-.5v-9C11.5 3 9.5 3 8 4zv9"
        }
        "people" => {
            "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13c.5-2.5 2-3.5 4.5-3.5s4 1 4.5 3.5M10.5 3.2a2.5 2.5 0 0 1 0 4.6M12.2 9.8c1.3.5 2 1.5 2.3 3.2"
        }
        "token" => "M2.5 5 8 2.5 13.5 5v6L8 13.5 2.5 11zM2.5 5 8 7.5 13.5 5M8 7.5v6",
        "gear" => {
            "M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 2v1.5M8 12.5V14M2 8h1.5M12.5 8H14M3.8 3.8l1 1M11.2 11.2l1 1M3.8 12.2l1-1M11.2 4.8l1-1"
        }
        "bell" => "M8 2.5a4 4 0 0 0-4 4v3L2.5 12h11L12 9.5v-3a4 4 0 0 0-4-4zM6.5 14h3",
        "search" => "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2",
        "arrow" => "M3 8h10M9 4l4 4-4 4",
        "chevron" => "M4.5 6.5 8 10l3.5-3.5",
        "check" => "M3 8.5 6.5 12 13 4.5",
        "cross" => "M4 4l8 8M12 4l-8 8",
        "alert" => "M8 2.5 14 13H2zM8 6.5v3M8 11.3v.01",
        "info" => "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5.2v.01",
        "plus" => "M8 3v10M3 8h10",
        "menu" => "M2.5 4h11M2.5 8h11M2.5 12h11",
        "user" => "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM3 13.5c.5-2.7 2.2-4 5-4s4.5 1.3 5 4",
        "out" => "M9.5 3H3v10h6.5M7 8h6.5M11 5.5 13.5 8 11 10.5",
        "read" => {
            "M1.5 8C3 5 5.3 3.5 8 3.5S13 5 14.5 8C13 11 10.7 12.5 8 12.5S3 11 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z"
        }
        "write" => {
            "M3 13l.7-3L10.5 3.2a1.5 1.5 0 0 1 2.2 0 1.5 1.5 0 0 1 0 2.2L6 12.2zM9.5 4.5l2 2"
        }
        "execute" => "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.5H11",
        "destructive" => "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.5 9h6l.5-9M7 7v4M9 7v4",
        "financial" => {
            "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM10 6c-.3-.8-1-1.2-2-1.2-1.2 0-2 .6-2 1.6 0 2.2 4 1 4 3.2 0 1-.8 1.6-2 1.6-1 0-1.8-.4-2.1-1.2M8 3.8v8.4"
        }
        "shield" => "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
        "play" => "M5 3l7.5 5L5 13z",
        "link" => {
            "M6.5 9.5l3-3M7 4.5l1.2-1.2a2.9 2.9 0 0 1 4.1 4.1L11 8.7M9 11.5l-1.2 1.2a2.9 2.9 0 0 1-4.1-4.1L5 7.3"
        }
        "meter" => "M2 12a6 6 0 1 1 12 0M8 12l3-4M8 12h.01",
        "clock" => "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5",
        _ => "",
    }
}

/// An icon beside words; hidden from assistive technology.
pub(crate) fn icon(name: &str) -> Html {
    Html(format!(
        "<svg class=\"i\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path d=\"{}\"/></svg>",
        paths(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets;

    #[test]
    fn every_icon_that_a_template_names_is_drawn() {
        let mut seen = 0;
        for text in assets::template_sources() {
            for (at, _) in text.match_indices("\"|icon") {
                let name = text[..at].rsplit('"').next().unwrap_or_default();
                assert_ne!(paths(name), "", "icon `{name}`");
                seen += 1;
            }
        }
        assert!(seen > 20, "found {seen} icons");
    }
}
