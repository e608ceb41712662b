//! Where clients keep their MCP configuration.

use std::path::PathBuf;

/// Below the home directory.
const AT_HOME: &[&str] = &[
    ".claude.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
    ".config/zed/settings.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    "Library/Application Support/Code/User/mcp.json",
    "AppData/Roaming/Claude/claude_desktop_config.json",
    "AppData/Roaming/Code/User/mcp.json",
];

/// In a project.
const HERE: &[&str] =
    &[".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json"];

/// Those that are there.
pub(super) fn existing() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let home = home.map(PathBuf::from);
    let here = HERE.iter().map(PathBuf::from);
    let at_home = home.iter().flat_map(|home| AT_HOME.iter().map(|place| home.join(place)));
    here.chain(at_home).filter(|file| file.is_file()).collect()
}
