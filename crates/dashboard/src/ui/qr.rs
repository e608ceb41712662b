//! QR codes as inline SVG: one path, black on white in either theme, with the quiet zone around it that
//! cameras need (ISO/IEC 18004: four modules).

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode};

use super::{Html, escape};

const QUIET: usize = 4;

/// The picture of a text; `None` where it is too long for one.
pub(crate) fn svg(text: &str, label: &str) -> Option<Html> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    let width = code.width();
    let mut path = String::new();
    for (row, modules) in code.to_colors().chunks(width).enumerate() {
        for (start, length) in runs(modules) {
            // Writing to a String cannot fail.
            let _ = write!(path, "M{} {}h{length}v1h-{length}z", start + QUIET, row + QUIET);
        }
    }
    let side = width + 2 * QUIET;
    let label = escape(label);
    Some(Html(format!(
        "<svg class=\"qr\" role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {side} {side}\" \
         shape-rendering=\"crispEdges\"><rect width=\"{side}\" height=\"{side}\" fill=\"#fff\"/>\
         <path d=\"{path}\" fill=\"#000\"/></svg>"
    )))
}

/// Where dark modules begin in a row, and how many stand together.
fn runs(row: &[Color]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (at, color) in row.iter().enumerate() {
        match out.last_mut() {
            _ if *color == Color::Light => {}
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => out.push((at, 1)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dark_module_is_drawn_once_inside_its_quiet_zone() {
        let text = "otpauth://totp/Sluice:ann%40example.test?secret=GEZDGNBVGY3TQOJQ";
        let code = QrCode::with_error_correction_level(text, EcLevel::M).expect("short");
        let dark = code.to_colors().into_iter().filter(|color| *color == Color::Dark).count();
        let Html(svg) = svg(text, "a \"label\"").expect("short");
        let path = svg.split("<path d=\"").nth(1).and_then(|rest| rest.split('"').next());
        let drawn: usize = path
            .expect("a path")
            .split('M')
            .skip(1)
            .map(|run| {
                let (at, rest) = run.split_once('h').expect("a run");
                let (x, y) = at.split_once(' ').expect("a place");
                let length: usize =
                    rest.split_once('v').expect("a length").0.parse().expect("a number");
                let (x, y): (usize, usize) = (x.parse().expect("x"), y.parse().expect("y"));
                let inside = QUIET..code.width() + QUIET;
                assert!(inside.contains(&x) && inside.contains(&(x + length - 1)), "{run}");
                assert!(inside.contains(&y), "{run}");
                length
            })
            .sum();
        assert_eq!(drawn, dark);
        assert!(svg.contains("aria-label=\"a &quot;label&quot;\""));
        assert!(super::svg(&"x".repeat(10_000), "").is_none());
    }
}
