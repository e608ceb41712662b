//! Reads clients' configuration files. Values of headers and variables are secrets and stay inside.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use secrecy::SecretString;
use serde_json::{Map, Value};
use sluice_domain::Transport;
use url::Url;

use super::expand::expand;
use super::lenient;

const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// Where the clients put their servers.
const MAPS: &[&[&str]] = &[
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp", "mcpServers"],
    &["context_servers"],
];

/// A server that a client's configuration names.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) file: PathBuf,
    /// The line on which its name stands, from 1.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) how: How,
}

/// How the client reaches it.
pub(super) enum How {
    Remote {
        url: Url,
        headers: Vec<(String, SecretString)>,
        transport: Transport,
    },
    Program {
        command: String,
        arguments: Vec<String>,
        variables: Vec<(String, String)>,
        folder: Option<PathBuf>,
    },
    /// Switched off, or not to be made sense of.
    Not(String),
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl How {
    /// What may be shown: no query, no arguments but the package's name, no values.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Remote { url, .. } => {
                let mut url = url.clone();
                url.set_query(None);
                url.set_fragment(None);
                let _ = url.set_password(None);
                let _ = url.set_username("");
                url.to_string()
            }
            Self::Program { command, .. } => {
                let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
                match self.package() {
                    Some(package) => format!("{program} {package}"),
                    None => program.to_owned(),
                }
            }
            Self::Not(why) => why.clone(),
        }
    }

    /// The package that a package runner is told to run.
    pub(super) fn package(&self) -> Option<&str> {
        let Self::Program { command, arguments, .. } = self else { return None };
        let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
        let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
        let fits = |word: &str| {
            word.len() <= 200
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "@/._:+=-".contains(c))
        };
        let words = || arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        match program {
            "npx" | "uvx" | "bunx" | "pnpx" => words().find(|word| fits(word)),
            // `docker run … IMAGE`: values of options come between, so that only a name with a slash is sure.
            "docker" | "podman" => words().skip(1).find(|word| {
                fits(word)
                    && word.contains('/')
                    && !word.starts_with('/')
                    && !word.contains(['=', ':'])
                    || word.contains("@sha256:")
            }),
            _ => None,
        }
    }
}

/// The servers of one file, in its order.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Configured>> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?.len();
    if size > MOST_BYTES {
        return Err(anyhow!("{shown} is larger than {} MiB", MOST_BYTES / 1024 / 1024));
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let strict = lenient::strict(text);
    // The parser's own words may quote what stands there, which may be a secret.
    let value: Value = serde_json::from_str(&strict).map_err(|error| {
        anyhow!("{shown} is not JSON (line {}, column {})", error.line(), error.column())
    })?;
    let maps = maps(&value);
    if maps.is_empty() {
        return Err(anyhow!("{shown} names no MCP servers"));
    }
    let one = |(name, entry): (&String, &Value)| Configured {
        file: file.to_owned(),
        line: line_of(&strict, name),
        name: name.clone(),
        how: how(entry, of_environment),
    };
    Ok(maps.into_iter().flatten().map(one).collect())
}

#[expect(clippy::disallowed_methods, reason = "the file names which variables it means")]
fn of_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Every map of servers in the file; Claude Code keeps one for each project.
fn maps(value: &Value) -> Vec<&Map<String, Value>> {
    let projects = value.get("projects").and_then(Value::as_object);
    below(value).chain(projects.into_iter().flat_map(Map::values).flat_map(below)).collect()
}

fn below(root: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    MAPS.iter().filter_map(move |path| {
        path.iter().try_fold(root, |value, key| value.get(*key))?.as_object()
    })
}

/// Where the name stands as a key.
fn line_of(text: &str, name: &str) -> usize {
    let key = Value::from(name).to_string();
    let is_key = |at: &usize| text[at + key.len()..].trim_start().starts_with(':');
    let found = text.match_indices(&key).map(|(at, _)| at).find(is_key);
    text[..found.unwrap_or(0)].matches('\n').count() + 1
}

fn how(entry: &Value, variable: impl Fn(&str) -> Option<String> + Copy) -> How {
    let off = |key: &str, value: bool| entry.get(key).and_then(Value::as_bool) == Some(value);
    if off("disabled", true) || off("enabled", false) {
        return How::Not("it is switched off".to_owned());
    }
    let made =
        match ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(*key)?.as_str()) {
            Some(url) => remote(entry, url, variable),
            None => program(entry, variable),
        };
    made.unwrap_or_else(How::Not)
}

fn missing(name: &str) -> String {
    format!("it needs `${{{name}}}`, which is not set here")
}

fn pairs(
    value: Option<&Value>,
    variable: impl Fn(&str) -> Option<String> + Copy,
) -> Result<Vec<(String, String)>, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
        .map(|(name, value)| {
            Ok((name.clone(), expand(value, variable).map_err(|it| missing(&it))?))
        })
        .collect()
}

fn remote(
    entry: &Value,
    url: &str,
    variable: impl Fn(&str) -> Option<String> + Copy,
) -> Result<How, String> {
    let url = expand(url, variable).map_err(|name| missing(&name))?;
    let url = Url::parse(&url).map_err(|_| "its `url` is no address".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its `url` is neither `https` nor `http`".to_owned());
    }
    let headers = pairs(entry.get("headers"), variable)?;
    let transport =
        match entry.get("type").or_else(|| entry.get("transport")).and_then(Value::as_str) {
            Some("sse") => Transport::Sse,
            Some("http" | "streamable-http" | "streamableHttp") => Transport::StreamableHttp,
            _ => Transport::Auto,
        };
    let headers =
        headers.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect();
    Ok(How::Remote { url, headers, transport })
}

fn program(entry: &Value, variable: impl Fn(&str) -> Option<String> + Copy) -> Result<How, String> {
    let texts = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let command = entry.get("command");
    let (command, arguments, inner) = match command {
        Some(Value::String(command)) => (command.clone(), texts(entry.get("args")), entry),
        // Zed writes an object, others a list.
        Some(Value::Object(object)) => {
            let path = object.get("path").and_then(Value::as_str).unwrap_or_default();
            (path.to_owned(), texts(object.get("args")), command.unwrap_or(entry))
        }
        Some(list @ Value::Array(_)) => {
            let mut words = texts(Some(list)).into_iter();
            (words.next().unwrap_or_default(), words.collect(), entry)
        }
        _ => return Err("it has neither `url` nor `command`".to_owned()),
    };
    if command.is_empty() {
        return Err("its `command` is empty".to_owned());
    }
    let fill = |text: &String| expand(text, variable).map_err(|name| missing(&name));
    let variables = inner.get("env").or_else(|| entry.get("env"));
    Ok(How::Program {
        command: fill(&command)?,
        arguments: arguments.iter().map(fill).collect::<Result<_, _>>()?,
        variables: pairs(variables, variable)?,
        folder: entry
            .get("cwd")
            .and_then(Value::as_str)
            .map(|folder| fill(&folder.to_owned()))
            .transpose()?
            .map(PathBuf::from),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn every_clients_shape_is_read() {
        for (entry, shown) in [
            (
                json!({"command": "npx", "args": ["-y", "@a/b@1.0.0", "--key=s3cret"]}),
                "npx @a/b@1.0.0",
            ),
            (
                json!({"command": {"path": "/usr/bin/uvx", "args": ["mcp-server-git"]}}),
                "uvx mcp-server-git",
            ),
            (json!({"type": "local", "command": ["node", "server.js", "s3cret"]}), "node"),
            (
                json!({"command": "docker", "args": ["run", "-i", "-e", "KEY=s3cret", "ghcr.io/a/b"]}),
                "docker ghcr.io/a/b",
            ),
            (
                json!({"type": "http", "url": "https://mcp.example.com/mcp?key=s3cret"}),
                "https://mcp.example.com/mcp",
            ),
            (
                json!({"serverUrl": "https://user:s3cret@mcp.example.com/sse"}),
                "https://mcp.example.com/sse",
            ),
            (json!({"httpUrl": "http://localhost:1/mcp"}), "http://localhost:1/mcp"),
            (json!({"command": "x", "disabled": true}), "it is switched off"),
            (
                json!({"command": "x", "env": {"A": "${input:a}"}}),
                "it needs `${input:a}`, which is not set here",
            ),
            (json!({"url": "file:///etc/passwd"}), "its `url` is neither `https` nor `http`"),
            (json!({"url": "no"}), "its `url` is no address"),
            (json!({"args": []}), "it has neither `url` nor `command`"),
            (json!({"command": []}), "its `command` is empty"),
            (json!(7), "it has neither `url` nor `command`"),
        ] {
            let how = how(&entry, none);
            assert_eq!(how.shown(), shown, "{entry}");
            assert!(!format!("{how:?}").contains("s3cret"), "{entry}");
        }
    }

    #[test]
    fn maps_of_all_clients_are_found_and_names_have_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.json");
        let text = "{\n // one\n \"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n },\n \"projects\": {\"/p\": {\"mcpServers\": {\n\"b\": {\"command\": \"y\"}}}},\n \"mcp\": {\"servers\": {\"c\": {\"url\": \"https://c.example\"}}},\n}";
        std::fs::write(&file, text).expect("written");
        let found = read(&file).expect("reads");
        let shown: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.line)).collect();
        assert_eq!(shown, [("a", 4), ("c", 8), ("b", 7)]);
    }

    #[test]
    fn what_is_no_configuration_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.json");
        for (text, words) in [
            ("{}", "names no MCP servers"),
            ("{\"k\": s3cret}", "is not JSON (line 1"),
            ("[]", "names no MCP servers"),
        ] {
            std::fs::write(&file, text).expect("written");
            let error = format!("{:#}", read(&file).expect_err(text));
            assert!(error.contains(words) && !error.contains("s3cret"), "{error}");
        }
        assert!(read(&folder.path().join("none.json")).is_err());
    }
}
