//! The scripts, and calls of them.

use std::fmt;
use std::io::Write as _;
use std::sync::LazyLock;

use redis::Cmd;

/// A script as it is stored in Redis under its hash.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: LazyLock<String>,
}

macro_rules! script {
    ($name:ident, $flags:literal, $($file:literal),+) => {
        pub(crate) static $name: Script = Script {
            text: concat!("#!lua", $flags, "\n", $(include_str!(concat!("../lua/", $file))),+),
            hash: LazyLock::new(|| redis::Script::new($name.text).get_hash().to_owned()),
        };
    };
}

// Without `allow-oom` a script is refused as a whole, before its first line, when memory is full.
script!(BOOK, "", "common.lua", "book.lua");
script!(REFUND, " flags=allow-oom", "common.lua", "refund.lua");
script!(READ, " flags=no-writes", "common.lua", "read.lua");
script!(SESSIONS, " flags=no-writes", "common.lua", "sessions.lua");
script!(RESET, " flags=allow-oom", "common.lua", "reset.lua");
script!(BIND, "", "bind.lua");
script!(DISPLACE, "", "displace.lua");
script!(TOUCH, "", "touch.lua");
script!(PEEK, " flags=no-writes", "peek.lua");
script!(UNBIND, " flags=allow-oom", "unbind.lua");
script!(COUNT, " flags=no-writes", "count.lua");
script!(PUSH, "", "push.lua");

/// One call of a script. Repeating it is safe: every script is idempotent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Words,
    args: Words,
}

/// Many small texts in one piece of memory: a call has some dozens of them.
#[derive(Debug, Clone, Default)]
struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    fn with_room(words: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(words) }
    }

    fn push(&mut self, word: &dyn fmt::Display) {
        // Memory takes what is written.
        let _ = write!(self.bytes, "{word}");
        self.ends.push(self.bytes.len());
    }

    fn push_bytes(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl Call {
    pub(crate) fn new(script: &'static Script) -> Self {
        Self { script, keys: Words::with_room(8, 768), args: Words::with_room(32, 192) }
    }

    pub(crate) fn key(&mut self, key: &impl fmt::Display) -> &mut Self {
        self.keys.push(key);
        self
    }

    pub(crate) fn arg(&mut self, arg: &impl fmt::Display) -> &mut Self {
        self.args.push(arg);
        self
    }

    pub(crate) fn bytes(&mut self, arg: &[u8]) -> &mut Self {
        self.args.push_bytes(arg);
        self
    }

    /// The first key, which tells the shard.
    pub(crate) fn shard(&self) -> &str {
        self.keys.iter().next().and_then(|key| std::str::from_utf8(key).ok()).unwrap_or_default()
    }

    /// By hash: the usual way.
    pub(crate) fn short(&self) -> Cmd {
        self.command("EVALSHA", self.script.hash.as_str())
    }

    /// With the whole text: for a server that does not know the script yet; afterwards it does.
    pub(crate) fn whole(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let words = 3 + self.keys.ends.len() + self.args.ends.len();
        let bytes = name.len() + script.len() + self.keys.bytes.len() + self.args.bytes.len() + 8;
        let mut command = Cmd::with_capacity(words, bytes);
        command.arg(name).arg(script).arg(self.keys.ends.len());
        for word in self.keys.iter().chain(self.args.iter()) {
            command.arg(word);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;

    #[test]
    fn a_call_is_its_script_its_keys_and_its_arguments_in_their_order() {
        let mut call = Call::new(&COUNT);
        call.key(&"sluice:{w}:a").arg(&-17_i128).key(&"").bytes(&[0, 255]).arg(&"");
        let command = call.short();
        let words: Vec<Vec<u8>> = command
            .args_iter()
            .map(|word| match word {
                Arg::Simple(word) => word.to_vec(),
                _ => Vec::new(),
            })
            .collect();
        let hash = COUNT.hash.as_bytes();
        let expected: [&[u8]; 8] =
            [b"EVALSHA", hash, b"2", b"sluice:{w}:a", b"", b"-17", &[0, 255], b""];
        assert_eq!(words, expected);
        assert_eq!(call.shard(), "sluice:{w}:a");
        assert_eq!(Call::new(&COUNT).shard(), "");
    }
}
