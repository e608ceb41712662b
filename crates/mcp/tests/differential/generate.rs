//! Messages and streams: mostly sound, with the spellings that readers disagree on.

/// Small numbers, the same on every run (the `SplitMix64` of many libraries).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).expect("small");
        usize::try_from((z ^ (z >> 31)) % bound).expect("small")
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

const SPACE: &[&str] = &["", "", "", " ", "\n", "\t", "\r\n  "];
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1",
    "1.0",
    "1e2",
    "1E+2",
    "0.1",
    "5e-324",
    "1e400",
    "-1E400",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "2.2250738585072011e-308",
    "1e-400",
];
const TEXTS: &[&str] = &[
    r#""""#,
    r#""a""#,
    r#""é 世界 😀""#,
    r#""\u00e9\ud83d\ude00""#,
    r#""\"\\\/\b\f\n\r\t""#,
    r#""\u0000""#,
    r#""}{][,:""#,
    r#""tools/call""#,
    "\"\u{7f}\u{2028}\"",
    r#""1""#,
    r#""null""#,
];
const NAMES: &[&str] = &[
    r#""a""#,
    r#""name""#,
    r#""Name""#,
    r#""\u006eame""#,
    r#""arguments""#,
    r#""""#,
    r#""__proto__""#,
    r#""a\u0000""#,
    r#""method""#,
    r#""id""#,
    r#""params""#,
    r#""x-vendor""#,
    r#""é""#,
];
const METHODS: &[&str] = &[
    r#""tools/call""#,
    r#""tools/call""#,
    r#""tools\/call""#,
    r#""t\u006fols/call""#,
    r#""Tools/call""#,
    r#""tools/call ""#,
    r#""tools/list""#,
    r#""prompts/get""#,
    r#""resources/read""#,
    r#""tasks/get""#,
    r#""notifications/cancelled""#,
    r#""acme/x""#,
    "7",
    "null",
];
const TRAPS: &[(&str, &str)] = &[
    (r#""Method""#, r#""tools/list""#),
    (r#""method""#, r#""tools/list""#),
    (r#""meth\u006fd""#, r#""tools/list""#),
    ("\"param\u{17f}\"", "{}"),
    (r#""params""#, "[]"),
    (r#""result""#, "{}"),
    (r#""vendor""#, "1.0"),
    (r#""ID""#, "2"),
    (r#""id ""#, "2"),
    (r#""jsonrpc""#, r#""2.0""#),
    (r#""id\u0000""#, "3"),
    (r#""x""#, "[{}]"),
];
const PARAM_TRAPS: &[(&str, &str)] = &[
    (r#""name""#, r#""danger""#),
    (r#""n\u0061me""#, r#""danger""#),
    (r#""NAME""#, r#""danger""#),
    (r#""arguments""#, "{}"),
    (r#""Arguments""#, r#"{"a":1}"#),
    (r#""task""#, r#"{"ttl":1}"#),
    ("\"ta\u{17f}\u{212a}\"", "{}"),
    (r#""uri""#, r#""file:///x""#),
    (r#""taskId""#, r#""t""#),
    (r#""_meta""#, "{}"),
    (r#""requestState""#, r#""s""#),
    (r#""vendor""#, "null"),
];

/// Spellings that the scanner refuses wherever they stand.
const BAD_TEXT: &str = r#""\ud800""#;
const BAD_NAME: &str = r#""$serde_json::private::Number""#;

fn text(random: &mut Random) -> String {
    if random.one_in(60) { BAD_TEXT.to_owned() } else { random.pick(TEXTS).to_owned() }
}

fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth < 4 { 9 } else { 6 }) {
        0 => (*random.pick(&["null", "true", "false"])).to_owned(),
        1..=3 => random.pick(NUMBERS).to_owned(),
        4 | 5 => text(random),
        6 => {
            let count = random.below(4);
            let items: Vec<String> = (0..count).map(|_| value(random, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => members(random, depth + 1),
    }
}

/// An object of a few members, whose names are seldom equal.
fn members(random: &mut Random, depth: usize) -> String {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for _ in 0..random.below(4) {
        let name = if random.one_in(60) { BAD_NAME } else { random.pick(NAMES) };
        if random.one_in(30) || pairs.iter().all(|(other, _)| *other != name) {
            let value = value(random, depth);
            pairs.push((name.to_owned(), value));
        }
    }
    object(random, pairs)
}

/// Pairs in any order, with space where space may be.
fn object(random: &mut Random, mut pairs: Vec<(String, String)>) -> String {
    let mut out = "{".to_owned();
    while !pairs.is_empty() {
        let at = random.below(pairs.len());
        let (name, value) = pairs.swap_remove(at);
        for part in [random.pick(SPACE), &name, random.pick(SPACE), ":", random.pick(SPACE), &value]
        {
            out.push_str(part);
        }
        out.push_str(random.pick(SPACE));
        if !pairs.is_empty() {
            out.push(',');
        }
    }
    out + "}"
}

fn trap(random: &mut Random, pairs: &mut Vec<(String, String)>, traps: &[(&str, &str)]) {
    if random.one_in(8) {
        let (name, value) = traps[random.below(traps.len())];
        pairs.push((name.to_owned(), value.to_owned()));
    }
}

fn params(random: &mut Random) -> String {
    let pair = |name: &str, value: String| (format!("\"{name}\""), value);
    let mut pairs = Vec::new();
    if !random.one_in(8) {
        pairs.push(pair("name", text(random)));
    }
    if !random.one_in(4) {
        let arguments = members(random, 1);
        pairs.push(pair("arguments", arguments));
    }
    if random.one_in(3) {
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        pairs.push(pair(
            "_meta",
            format!(
                "{{{version},\"progressToken\":{}}}",
                random.pick(&["7", "-1", r#""t""#, r#""u""#, "1.5"])
            ),
        ));
    }
    if random.one_in(4) {
        pairs.push(pair(random.pick(&["uri", "taskId", "requestState"]), text(random)));
    }
    trap(random, &mut pairs, PARAM_TRAPS);
    object(random, pairs)
}

/// A message of a client.
pub(crate) fn message(random: &mut Random) -> String {
    let pair = |name: &str, value: &str| (format!("\"{name}\""), value.to_owned());
    let mut pairs = vec![pair("jsonrpc", r#""2.0""#)];
    if !random.one_in(6) {
        pairs.push(pair(
            "id",
            random.pick(&["1", "-5", r#""x""#, r#""\u0061""#, "9223372036854775808"]),
        ));
    }
    if random.one_in(8) {
        pairs.push(pair(random.pick(&["result", "error"]), "{}"));
    } else {
        let params = params(random);
        pairs.push(pair("method", random.pick(METHODS)));
        pairs.push(pair("params", &params));
    }
    trap(random, &mut pairs, TRAPS);
    object(random, pairs)
}

const LINES: &[&str] = &[
    "data:",
    "data",
    "data: ",
    "id: 5",
    "id:",
    "id",
    ": comment",
    ":",
    "event: message",
    "event: endpoint",
    "event",
    "retry: 10",
    "database: x",
    "Data: x",
    "data : x",
    " data: x",
    "data:\u{feff}",
    "x",
    "\u{feff}",
];
const ENDS: &[&str] = &["\n", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\r\r", "\n\r\n"];

/// A stream of events; its first byte says how it is cut.
pub(crate) fn stream(random: &mut Random) -> Vec<u8> {
    let mut out = vec![u8::try_from(random.below(16)).expect("a byte")];
    for _ in 0..random.below(12) {
        if random.one_in(2) {
            out.extend(format!("data: {}", message(random).replace(['\n', '\r'], " ")).bytes());
        } else {
            out.extend(random.pick(LINES).bytes());
        }
        out.extend(random.pick(ENDS).bytes());
    }
    out
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "1e999",
    "-",
    "0",
    ".",
    "\u{feff}",
    "\u{17f}",
    " ",
    "\n",
    "\r",
    "\t",
    "\0",
    "é",
    "\\u006e",
    "/*",
    "'",
    "NaN",
    "\"\":0,",
    "\"name\":\"x\",",
    "data:",
];

/// Cuts, adds, changes or repeats a little.
pub(crate) fn edit(random: &mut Random, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    let until = (at + 1 + random.below(12)).min(bytes.len());
    match random.below(4) {
        0 => drop(bytes.drain(at..until)),
        1 => drop(bytes.splice(at..at, random.pick(PIECES).bytes())),
        2 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
        _ => {
            let copy = bytes[at..until].to_vec();
            bytes.splice(until..until, copy);
        }
    }
}
