//! Turns names and sentences into folded words that remember where they stood.
//! Accents, case, full-width letters and look-alike letters fold away; invisible characters vanish.

use std::fmt::Write as _;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

/// One word: folded for look-ups, with its place in the original text for quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) range: Range<usize>,
    /// What stands between this word and the next.
    pub(crate) gap: Gap,
}

/// The strongest separator after a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    /// Nothing or blanks.
    Space,
    /// `/`, `|`, `&`, `,` or `;`.
    List,
    /// `:`, brackets, dashes and quotes.
    Break,
    /// A line break or the end of a sentence.
    Stop,
}

/// Characters that take no room: they must not split or hide a word.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Scripts that are written without blanks between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2fdf}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Cyrillic and Greek letters that look like Latin ones.
fn look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' | 'υ' => 'y',
        'х' | 'χ' => 'x',
        'і' | 'ι' => 'i',
        'ѕ' => 's',
        'ј' => 'j',
        'ԁ' => 'd',
        'ԛ' => 'q',
        'ԝ' => 'w',
        'һ' => 'h',
        'ӏ' => 'l',
        'к' | 'κ' => 'k',
        'т' | 'τ' => 't',
        'м' => 'm',
        'п' => 'n',
        'ν' => 'v',
        _ => return None,
    })
}

fn fold_char(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
        return;
    }
    if is_invisible(c) {
        return;
    }
    if is_unspaced(c) {
        out.push(c);
        return;
    }
    for lower in c.to_lowercase() {
        match lower {
            'ß' => out.push_str("ss"),
            'ø' => out.push('o'),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ł' => out.push('l'),
            'ı' => out.push('i'),
            _ => match std::iter::once(lower).nfkd().next() {
                Some(base) if base.is_ascii_alphanumeric() => out.push(base.to_ascii_lowercase()),
                // A mark on its own is part of the letter before it.
                Some('\u{300}'..='\u{36f}') | None => {}
                Some(_) => out.push(lower),
            },
        }
    }
}

/// Folds a piece of text that is known to be one word.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut out);
    }
    let latin = out.bytes().any(|b| b.is_ascii_alphabetic());
    if latin && out.chars().any(|c| look_alike(c).is_some()) {
        out = out.chars().map(|c| look_alike(c).unwrap_or(c)).collect();
    }
    out
}

/// Text with the words that mix alphabets written in Latin letters; all else stays.
pub(crate) fn fold_words(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let latin = word.bytes().any(|b| b.is_ascii_alphabetic());
        if latin && !word.is_ascii() {
            out.extend(word.nfkc().map(|c| look_alike(c).unwrap_or(c)));
        } else if word
            .chars()
            .any(|c| matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}'))
        {
            out.extend(word.nfkc());
        } else {
            out.push_str(word);
        }
    }
    out
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || is_invisible(c) || matches!(c, '\u{300}'..='\u{36f}')
}

/// The words of an identifier: `getUserById`, `pull_request.create`, `HTTPServer-list`.
pub(crate) fn name_words(name: &str) -> Vec<Word> {
    let mut cuts = Vec::new();
    let mut start = None;
    let (mut before, mut last): (Option<char>, Option<char>) = (None, None);
    let mut previous_at = 0;
    for (at, c) in name.char_indices() {
        if !is_word_char(c) {
            cuts.extend(start.take().map(|from| from..at));
            (before, last) = (None, None);
            continue;
        }
        if is_invisible(c) {
            start.get_or_insert(at);
            continue;
        }
        if let (Some(from), Some(left)) = (start, last) {
            let hump = left.is_lowercase() && c.is_uppercase()
                || left.is_numeric() && c.is_uppercase()
                || is_unspaced(left) != is_unspaced(c);
            let acronym_ends =
                before.is_some_and(char::is_uppercase) && left.is_uppercase() && c.is_lowercase();
            if hump {
                cuts.push(from..at);
                start = Some(at);
            } else if acronym_ends && previous_at > from {
                cuts.push(from..previous_at);
                start = Some(previous_at);
            }
        }
        start.get_or_insert(at);
        (before, last) = (last, Some(c));
        previous_at = at;
    }
    cuts.extend(start.map(|from| from..name.len()));
    cuts.into_iter()
        .filter_map(|range| {
            let text = fold(name.get(range.clone())?);
            (!text.is_empty()).then_some(Word { text, range, gap: Gap::Space })
        })
        .collect()
}

fn gap_of(c: char, next: Option<char>) -> Gap {
    match c {
        '\n' | '\r' | '。' | '！' | '？' | ';' => Gap::Stop,
        '.' | '!' | '?'
            if next.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | ')' | '*')) =>
        {
            Gap::Stop
        }
        '/' | '|' | '&' | ',' | '，' | '、' => Gap::List,
        c if c.is_whitespace() => Gap::Space,
        '\'' | '’' | '*' | '_' | '`' => Gap::Space,
        _ => Gap::Break,
    }
}

/// The words of running text, at most `most`.
pub(crate) fn sentence_words(text: &str, most: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    let mut unspaced = false;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        // `don't`, `user's`
        let inner =
            matches!(c, '\'' | '’') && start.is_some() && next.is_some_and(char::is_alphabetic);
        if is_word_char(c) || inner {
            if let Some(from) = start.filter(|_| is_unspaced(c) != unspaced && !is_invisible(c)) {
                push_word(&mut words, text, from..at);
                start = None;
            }
            if !is_invisible(c) {
                unspaced = is_unspaced(c);
            }
            start.get_or_insert(at);
            continue;
        }
        if let Some(from) = start.take() {
            push_word(&mut words, text, from..at);
        }
        if let Some(word) = words.last_mut() {
            word.gap = word.gap.max(gap_of(c, next));
        }
        if words.len() >= most {
            return words;
        }
    }
    if let Some(from) = start {
        push_word(&mut words, text, from..text.len());
    }
    words
}

fn push_word(words: &mut Vec<Word>, text: &str, range: Range<usize>) {
    let folded = text.get(range.clone()).map(fold).unwrap_or_default();
    if !folded.is_empty() {
        words.push(Word { text: folded, range, gap: Gap::Space });
    }
}

/// At most `most` bytes of `text`, cut at a character border.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// A quote for people: one line, at most 160 bytes, invisible characters written out.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::new();
    for c in cut(text.trim(), 160).chars() {
        if is_invisible(c) || (c.is_control() && !c.is_whitespace()) {
            // Writing to a String cannot fail.
            let _ = write!(out, "U+{:04X}", u32::from(c));
        } else if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> String {
        name_words(name).into_iter().map(|word| word.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_fall_into_words() {
        for (name, words) in [
            ("getUserById", "get user by id"),
            ("pull_request.create", "pull request create"),
            ("HTTPServer-list", "http server list"),
            ("sql_server_firewall-rule_create", "sql server firewall rule create"),
            ("executePython", "execute python"),
            ("e2b__run", "e2b run"),
            ("Crear-Pedido", "crear pedido"),
            ("LöschenDatei", "loschen datei"),
            ("删除文件", "删除文件"),
            ("db删除", "db 删除"),
            ("удалить_файл", "удалить файл"),
            ("dеlete_file", "delete file"),
            ("de\u{200b}lete", "delete"),
            ("ｄｅｌｅｔｅ", "delete"),
            ("", ""),
            ("___", ""),
        ] {
            assert_eq!(names(name), words, "{name}");
        }
    }

    #[test]
    fn sentences_know_their_separators() {
        let words = sentence_words("Get, create or delete v1.2 users.\nThen don't", 50);
        let shown: Vec<_> = words.iter().map(|w| (w.text.as_str(), w.gap)).collect();
        assert_eq!(shown[0], ("get", Gap::List));
        assert_eq!(shown[6], ("users", Gap::Stop));
        assert_eq!(shown.last(), Some(&("don't", Gap::Space)));
    }

    #[test]
    fn quotes_show_what_cannot_be_seen() {
        assert_eq!(quote("a\u{200b}b\n\n  c\u{7}"), "aU+200Bb cU+0007");
    }
}
