//! `/cards/{server}/{tool}`: the picture that social sites show beside a link to a tool. They take no SVG, so it is
//! drawn here: bounded in size, a few at a time, and kept for a while.

use std::sync::{Arc, LazyLock};

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont as _, point};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use moka::sync::Cache;
use sluice_domain::{Category, Severity};
use tokio::sync::Semaphore;

use crate::DashboardState;
use crate::assets;
use crate::catalogue;
use crate::desk::refuse;
use crate::errors;
use crate::visitor::Visitor;

const WIDTH: usize = 1_200;
const HEIGHT: usize = 630;
const LEFT: f32 = 90.0;
/// Bytes of pictures that are kept.
const KEPT: u64 = 16 << 20;
/// Pictures that are drawn at once; who comes then is shown the common one.
const AT_ONCE: usize = 2;

type Colour = [u8; 3];
const PAPER: Colour = [0xfb, 0xfa, 0xf8];
const INK: Colour = [0x24, 0x22, 0x1f];
const MUTED: Colour = [0x5d, 0x59, 0x53];
const BRAND: Colour = [0x0b, 0x6e, 0x7c];

/// What a picture says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Card {
    name: String,
    server: String,
    category: Category,
    severity: Severity,
    poisoned: bool,
}

static CARDS: LazyLock<Cache<Card, Bytes>> = LazyLock::new(|| {
    let weigher = |card: &Card, png: &Bytes| {
        u32::try_from(png.len() + card.name.len() + card.server.len() + 64).unwrap_or(u32::MAX)
    };
    Cache::builder().weigher(weigher).max_capacity(KEPT).build()
});
static DRAWING: Semaphore = Semaphore::const_new(AT_ONCE);

struct Canvas {
    font: FontRef<'static>,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new() -> Option<Self> {
        let font = FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR).ok()?;
        Some(Self { font, pixels: PAPER.repeat(WIDTH * HEIGHT) })
    }

    /// Puts a colour over a pixel; `cover`: from 0 to 1.
    fn dot(&mut self, (x, y): (usize, usize), colour: Colour, cover: f32) {
        if x >= WIDTH || y >= HEIGHT {
            return;
        }
        let at = (y * WIDTH + x) * 3;
        for (under, over) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            let mixed = f32::from(*under) * (1.0 - cover) + f32::from(over) * cover;
            *under = to_byte(mixed);
        }
    }

    fn bar(
        &mut self,
        (left, top): (usize, usize),
        (right, bottom): (usize, usize),
        colour: Colour,
    ) {
        for y in top..bottom {
            for x in left..right {
                self.dot((x, y), colour, 1.0);
            }
        }
    }

    /// Writes a line; gives where it ends.
    fn line(&mut self, text: &str, (left, baseline): (f32, f32), size: f32, colour: Colour) -> f32 {
        let font = self.font.clone();
        let scaled = font.as_scaled(PxScale::from(size));
        let mut x = left;
        for c in text.chars() {
            let mut glyph = scaled.scaled_glyph(c);
            let advance = scaled.h_advance(glyph.id);
            glyph.position = point(x, baseline);
            x += advance;
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let bounds = outline.px_bounds();
            outline.draw(|across, down, cover| {
                let at = (place(bounds.min.x, across), place(bounds.min.y, down));
                if let (Some(x), Some(y)) = at {
                    self.dot((x, y), colour, cover.clamp(0.0, 1.0));
                }
            });
        }
        x
    }

    fn png(&self) -> Option<Bytes> {
        let mut out = Vec::new();
        let (width, height) = (u32::try_from(WIDTH).ok()?, u32::try_from(HEIGHT).ok()?);
        let mut encoder = png::Encoder::new(&mut out, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(&self.pixels).ok()?;
        writer.finish().ok()?;
        Some(Bytes::from(out))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a byte holds"
)]
fn to_byte(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

/// A pixel's place, if it is not before the canvas.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and of a glyph on a canvas"
)]
fn place(origin: f32, offset: u32) -> Option<usize> {
    let place = f64::from(origin) + f64::from(offset);
    (0.0..10_000.0).contains(&place).then_some(place as usize)
}

const fn colour(severity: Severity) -> Colour {
    match severity {
        Severity::Low => [0x2f, 0x6b, 0x3c],
        Severity::Medium => [0x8a, 0x5a, 0x00],
        Severity::High => [0xa8, 0x40, 0x12],
        Severity::Critical => [0x9e, 0x1c, 0x2f],
    }
}

/// At most `lines` lines of `width` characters; what does not fit ends in `…`.
fn wrapped(text: &str, width: usize, lines: usize) -> Vec<String> {
    let shown: Vec<char> = text.chars().take(width * lines + 1).collect();
    let whole = shown.len() <= width * lines;
    let mut rows: Vec<String> =
        shown.chunks(width).take(lines).map(|row| row.iter().collect()).collect();
    if let (false, Some(last)) = (whole, rows.last_mut()) {
        last.pop();
        last.push('…');
    }
    rows
}

fn draw(card: &Card) -> Option<Bytes> {
    let mut canvas = Canvas::new()?;
    canvas.bar((90, 92), (102, 140), BRAND);
    canvas.line("Sluice", (122.0, 132.0), 48.0, INK);
    let size = if card.name.chars().count() > 46 { 52.0 } else { 72.0 };
    let width = if size < 60.0 { 32 } else { 23 };
    let mut baseline = 270.0;
    for row in wrapped(&card.name, width, 2) {
        canvas.line(&row, (LEFT, baseline), size, INK);
        baseline += size * 1.2;
    }
    let risk = format!("{}, {}", card.category, card.severity);
    let end = canvas.line(&risk, (LEFT, baseline + 20.0), 48.0, colour(card.severity));
    if card.poisoned {
        canvas.line(
            "looks poisoned",
            (end + 40.0, baseline + 20.0),
            48.0,
            colour(Severity::Critical),
        );
    }
    let of = wrapped(&format!("of {}", card.server), 52, 1);
    canvas.line(of.first().map_or("", String::as_str), (LEFT, baseline + 90.0), 32.0, MUTED);
    canvas.bar((0, HEIGHT - 14), (WIDTH, HEIGHT), colour(card.severity));
    canvas.png()
}

/// The kept picture, or a new one; `None`: others are being drawn.
async fn drawn(card: Card) -> Option<Bytes> {
    if let Some(kept) = CARDS.get(&card) {
        return Some(kept);
    }
    let permit = DRAWING.try_acquire().ok()?;
    let card = Arc::new(card);
    let drawing = Arc::clone(&card);
    let png = tokio::task::spawn_blocking(move || draw(&drawing)).await.ok()??;
    drop(permit);
    CARDS.insert(Card::clone(&card), png.clone());
    Some(png)
}

pub(crate) async fn get(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path((slug, name)): Path<(String, String)>,
) -> Response {
    let server = match catalogue::find(state.control(), &slug).await {
        Ok(Some(server)) => server,
        Ok(None) => return errors::not_found(visitor),
        Err(error) => return refuse(error),
    };
    let Some(tool) = server.tool(&name) else { return errors::not_found(visitor) };
    let card = Card {
        name: sluice_risk::catalogue::registry::clean(&name, 120),
        server: server.entry.owner_name.clone(),
        category: tool.rating.category,
        severity: tool.rating.severity,
        poisoned: !tool.findings.is_empty(),
    };
    match drawn(card).await {
        Some(png) => {
            let kept = "public, max-age=86400";
            ([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, kept)], png).into_response()
        }
        None => Redirect::temporary(&assets::url("card.png")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, severity: Severity) -> Card {
        Card {
            name: name.to_owned(),
            server: "example/server".to_owned(),
            category: Category::Execute,
            severity,
            poisoned: false,
        }
    }

    /// Width, height and pixels.
    fn read(png: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("fits")];
        let info = reader.next_frame(&mut pixels).expect("a picture");
        (info.width, info.height, pixels)
    }

    #[test]
    fn a_picture_says_the_tool_and_its_severity_and_nothing_breaks_it() {
        let (width, height, high) =
            read(&draw(&card("execute_code", Severity::High)).expect("draws"));
        assert_eq!((width, height), (1_200, 630));
        let foot = |pixels: &[u8]| pixels[pixels.len() - 3..].to_vec();
        assert_eq!(foot(&high), colour(Severity::High));
        let (_, _, low) = read(&draw(&card("execute_code", Severity::Low)).expect("draws"));
        assert_eq!(foot(&low), colour(Severity::Low));
        let (_, _, other) = read(&draw(&card("read_file", Severity::High)).expect("draws"));
        assert!(high != other && high.iter().any(|byte| *byte < 0x40), "the name is written");
        for odd in [
            "",
            "💣\u{202e}\u{0}",
            &"x".repeat(5_000),
            &"查询天气".repeat(40),
            "\u{300}".repeat(500).as_str(),
        ] {
            let png = draw(&card(odd, Severity::Critical)).expect("draws");
            assert!(png.len() < 400_000, "{} bytes", png.len());
        }
    }

    #[test]
    fn long_names_are_cut_where_they_no_longer_fit() {
        assert_eq!(wrapped("abcdef", 3, 2), ["abc", "def"]);
        assert_eq!(wrapped("abcdefg", 3, 2), ["abc", "de…"]);
        assert_eq!(wrapped("", 3, 2), Vec::<String>::new());
    }
}
