"""A workspace with something of everything, made over the API, and the upstream that it needs."""

import http.server
import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request

TOOL = "read_file"
TOOLS = [
    {"name": TOOL, "description": "Read a file", "inputSchema": {"type": "object"}},
    {"name": "delete_file", "description": "Delete a file for good", "inputSchema": {"type": "object"}},
    {"name": "send_money", "description": "Send money", "inputSchema": {"type": "object"}},
]
OPEN = {"version": "1", "default": "allow", "tools": {
    TOOL: {"limits": [{"counter": "reads", "window": "hour", "max": 1000, "scope": "grant"}]},
    "send_money": {"approve_if": [{"conditions": []}], "approval": {"hold": "0s", "expires": "7d"}},
}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Upstream(http.server.BaseHTTPRequestHandler):
    """An MCP server that answers with plain JSON; also takes webhooks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(405, None)

    do_DELETE = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            message = json.loads(body)
        except ValueError:
            message = {}
        if not isinstance(message, dict) or "id" not in message:
            return self.answer(202, None)
        answers = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "files", "version": "1"}},
            "tools/list": {"tools": TOOLS},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        result = answers.get(message.get("method"), {})
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def answer(self, status, body):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if text:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def upstream():
    """Starts it; gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/mcp"


def sent(method, url, token, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method, headers={
        "Authorization": f"Bearer {token}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {url}: {error.code} {error.read().decode()}") from None
    return json.loads(text) if text else None


def token(binary, data, email, environment):
    command = [binary, "admin", "api-token", "--email", email, "--workspace", "acme", "--create",
               "--role", "admin", "--data-dir", str(data)]
    made = subprocess.run(command, env=environment, check=True, capture_output=True)
    return json.loads(made.stdout)["token"]


def call(proxy, secret, tool, arguments):
    """One tool call of an agent."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    sent("POST", proxy, secret, hello, {"MCP-Protocol-Version": "2025-06-18"})


def seed(binary, data, base, address, environment):
    """Makes everything; gives what is needed to name it."""
    tokens = [token(binary, data, "ann@example.test", environment) for _ in range(6)]
    token(binary, data, "bob@example.test", environment)
    root = f"{base}/api/v1/workspaces/acme"

    def do(method, path, body=None):
        return sent(method, root + path, tokens[0], body)

    servers = [do("POST", "/servers", {"name": name, "upstream_url": address}) for name in ("files", "spare")]
    server = servers[0]["id"]
    do("POST", f"/servers/{server}/refresh")
    policies = []
    for name in ("open", "spare"):
        policies.append(do("POST", f"/servers/{server}/policies", {"name": name, "document": OPEN}))
    grants = []
    for label in ("agent", "spare"):
        made = {"label": label, "policy_id": policies[0]["id"]}
        grants.append(do("POST", f"/servers/{server}/grants", made))
    for number in range(6):
        call(servers[0]["proxy_url"], grants[0]["token"], "send_money", {"amount": number})
    call(servers[0]["proxy_url"], grants[0]["token"], TOOL, {"path": "a"})
    approvals = do("GET", "/approvals?status=pending")["items"]
    assert len(approvals) == 6, approvals
    do("POST", f"/approvals/{approvals[5]['id']}/approve", {"allow_for": "24h"})
    endpoints = []
    for name in ("hooks", "spare"):
        endpoints.append(do("POST", "/notification-endpoints", {"name": name, "kind": "webhook", "url": address}))
    members = {member["email"]: member["id"] for member in do("GET", "/members")["items"]}
    return {
        "ws": "acme", "tool": TOOL, "tokens": tokens,
        "servers": servers, "policies": policies, "grants": grants, "endpoints": endpoints,
        "approvals": approvals, "calls": waited_for(do, "/calls"),
        "exceptions": do("GET", "/approval-exceptions")["items"],
        "deliveries": [do("POST", f"/notification-endpoints/{endpoints[0]['id']}/test")],
        "log-filters": [do("POST", "/log-filters", {"name": "refused", "query": "outcome=denied"})],
        "members": [{"id": members["bob@example.test"]}],
        "invites": [do("POST", "/invites", {"email": "new@example.test", "role": "viewer"})],
        "api-tokens": [do("POST", "/api-tokens", {"label": "spare", "role": "viewer"})],
    }


def waited_for(do, path):
    """The log is written in batches."""
    while not (found := do("GET", path)["items"]):
        pass
    return found


KINDS = {"notification-endpoints": "endpoints", "notification-deliveries": "deliveries",
         "approval-exceptions": "exceptions"}
DECISIONS = {"approve": 0, "deny": 1, "reveal": 2, "events": 3}


def id_of(seeded, method, path):
    """What stands for `{id}`: what is deleted is something that nothing else needs."""
    parts = path.split("/")
    if "{id}" not in parts:
        return None
    kind = parts[parts.index("{id}") - 1]
    # A domain needs a confirmed address, which no script can have: its ids are chance, and so 404.
    objects = seeded.get(KINDS.get(kind, kind))
    if objects is None and kind == "join-domains":
        return None
    place = DECISIONS.get(parts[-1], 4) if kind == "approvals" else 0
    if method == "delete" and len(objects) > 1:
        place = 1
    return objects[place]["id"]


def checked_by_itself(method, path):
    """Bodies hold texts with rules of their own (policies, files, names, addresses, times to come), and these
    queries rules between two fields, which no schema can say: a good refusal of one is 422 and nothing else."""
    queries = [("delete", "/workspaces/{ws}"), ("get", "/workspaces/{ws}/usage")]
    return method in ("post", "put", "patch") or (method, path) in queries
