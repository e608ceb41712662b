"""A small Python MCP server whose tools an agent could run away with. Nothing is executed: each tool
answers with what it was given and counts how often it was reached.

python python_server.py PORT
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer(name="python-sandbox", version="1.0.0")
reached = {"executePython": 0, "list_files": 0, "delete_file": 0}


@server.tool()
def executePython(code: str) -> str:
    """Run Python code in a sandbox and return what it prints."""
    reached["executePython"] += 1
    return f"ran {len(code)} characters, run {reached['executePython']}"


@server.tool()
def list_files(path: str) -> str:
    """List the files of a folder."""
    reached["list_files"] += 1
    return f"files of {path}: none"


@server.tool()
def delete_file(path: str) -> str:
    """Delete a file for good."""
    reached["delete_file"] += 1
    return f"{path} deleted"


@server.tool()
def reached_counts() -> dict[str, int]:
    """Get how often each tool was reached."""
    return reached


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
