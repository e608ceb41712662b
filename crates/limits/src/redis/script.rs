//! The scripts, and calls of them.

use std::sync::LazyLock;

use redis::{Cmd, ToRedisArgs};

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
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) const fn new(script: &'static Script) -> Self {
        Self { script, keys: Vec::new(), args: Vec::new() }
    }

    pub(crate) fn key(&mut self, key: String) -> &mut Self {
        self.keys.push(key);
        self
    }

    pub(crate) fn arg(&mut self, arg: &impl ToString) -> &mut Self {
        self.args.push(arg.to_string().into_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, arg: &[u8]) -> &mut Self {
        self.args.push(arg.to_vec());
        self
    }

    /// The first key, which tells the shard.
    pub(crate) fn shard(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// By hash: the usual way.
    pub(crate) fn short(&self) -> Cmd {
        self.command("EVALSHA", self.script.hash.as_str())
    }

    /// With the whole text: for a server that does not know the script yet; afterwards it does.
    pub(crate) fn whole(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: impl ToRedisArgs) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for arg in &self.args {
            command.arg(arg.as_slice());
        }
        command
    }
}
