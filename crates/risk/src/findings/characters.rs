//! Characters that take no room on a screen, turn its direction, or only look like other letters.

use super::FindingKind;

type Sign = (FindingKind, String);

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}')
}

/// Invisible whatever stands around it.
fn is_always_odd(c: char) -> bool {
    matches!(c,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{fff9}'..='\u{fffb}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Signs in running text, where emoji and scripts that need joiners are at home.
pub(super) fn in_text(text: &str) -> Vec<Sign> {
    if text.is_ascii() {
        return Vec::new();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut signs = Vec::new();
    if let Some(at) = (0..chars.len()).find(|at| is_hidden_at(&chars, *at)) {
        signs.push((FindingKind::InvisibleCharacters, around(&chars, at)));
    }
    let foreign = chars.iter().any(|c| is_right_to_left(*c));
    let turns = |c: char| matches!(c, '\u{202d}' | '\u{202e}') || is_bidi(c) && !foreign;
    if let Some(at) = chars.iter().position(|c| turns(*c)) {
        signs.push((FindingKind::BidirectionalCharacters, around(&chars, at)));
    }
    signs.extend(tags(&chars).map(|words| (FindingKind::TagCharacters, words)));
    signs
}

/// Signs in an identifier, where none of this belongs.
pub(super) fn in_name(name: &str) -> Vec<Sign> {
    if name.is_ascii() {
        return Vec::new();
    }
    let chars: Vec<char> = name.chars().collect();
    let mut signs = Vec::new();
    let hidden = |c: &char| crate::text::is_invisible(*c) && !is_bidi(*c) && !is_tag(*c);
    // Emoji and joined scripts need these even in names.
    let needed = |at: usize| {
        matches!(chars[at], '\u{200c}' | '\u{200d}' | '\u{fe0f}') && !is_hidden_at(&chars, at)
    };
    if let Some(at) = (0..chars.len()).find(|at| hidden(&chars[*at]) && !needed(*at)) {
        signs.push((FindingKind::InvisibleCharacters, around(&chars, at)));
    }
    if let Some(at) = chars.iter().position(|c| is_bidi(*c)) {
        signs.push((FindingKind::BidirectionalCharacters, around(&chars, at)));
    }
    signs.extend(tags(&chars).map(|words| (FindingKind::TagCharacters, words)));
    if mixes_alphabets(name) {
        signs.push((FindingKind::LookAlikeLetters, name.to_owned()));
    }
    signs
}

fn is_hidden_at(chars: &[char], at: usize) -> bool {
    let (c, before, after) = (chars[at], at.checked_sub(1).map(|it| chars[it]), chars.get(at + 1));
    let inside_word = before.is_some_and(|it| it.is_ascii_alphanumeric())
        && after.is_some_and(char::is_ascii_alphanumeric);
    if is_always_odd(c) {
        return true;
    }
    match c {
        // One between words is a line-break hint; inside a word, or in a row, it hides something.
        '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{feff}' | '\u{ad}' => {
            let row = after.is_some_and(|it| matches!(it, '\u{200b}' | '\u{200c}' | '\u{feff}'));
            inside_word && c != '\u{ad}' || row && before.is_some_and(|it| it.is_ascii())
        }
        c if is_selector(c) => after.is_some_and(|it| is_selector(*it)),
        _ => false,
    }
}

/// The text that tag characters spell, except in the flags of regions.
fn tags(chars: &[char]) -> Option<String> {
    let at = (0..chars.len()).find(|at| {
        let flag = chars[..*at].iter().rev().find(|c| !is_tag(**c)) == Some(&'\u{1f3f4}');
        is_tag(chars[*at]) && !flag
    })?;
    let spelt: String = chars[at..]
        .iter()
        .take_while(|c| is_tag(**c))
        .filter_map(|c| char::from_u32(u32::from(*c) - 0xe0000))
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    Some(format!("spells \u{201c}{spelt}\u{201d}"))
}

fn around(chars: &[char], at: usize) -> String {
    chars[at.saturating_sub(20)..chars.len().min(at + 20)].iter().collect()
}

/// Latin and Cyrillic or Greek letters in one word.
fn mixes_alphabets(name: &str) -> bool {
    name.split(|c: char| !c.is_alphabetic()).any(|word| {
        let latin = word.chars().any(|c| c.is_ascii_alphabetic());
        let other =
            word.chars().any(|c| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}'));
        latin && other
    })
}
