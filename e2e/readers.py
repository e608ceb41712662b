"""Reads messages and event streams as Python servers and clients do, for a comparison with Sluice's own readers.

A line of JSON in, {"message": base64} or {"events": [base64 piece, ...]}; a line of JSON out.
"""

import json
import struct
import sys
from base64 import b64decode

import httpx2

VERSION = "io.modelcontextprotocol/protocolVersion"
PATHS = {
    "id": ["id"],
    "method": ["method"],
    "name": ["params", "name"],
    "arguments": ["params", "arguments"],
    "uri": ["params", "uri"],
    "task": ["params", "taskId"],
    "version": ["params", "_meta", VERSION],
    "token": ["params", "_meta", "progressToken"],
    "state": ["params", "requestState"],
}
MISSING = object()


def tree(value: object) -> object:
    """A value with its kinds spelt out; numbers as the sixteen hexadecimal digits of a double."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        try:
            double = float(value)
        except OverflowError:
            double = float("inf") if value > 0 else float("-inf")
        return {"number": struct.pack(">d", double).hex()}
    if isinstance(value, list):
        return [tree(inner) for inner in value]
    return {"members": [[name, tree(inner)] for name, inner in value.items()]}


def message(data: bytes) -> dict:
    whole = json.loads(data.decode("utf-8"))
    out = {}
    for slot, path in PATHS.items():
        found = whole
        for name in path:
            found = found.get(name, MISSING) if isinstance(found, dict) else MISSING
        if found is not MISSING:
            out[slot] = tree(found)
    return out


def events(pieces: list) -> list:
    head = {"content-type": "text/event-stream; charset=utf-8"}
    request = httpx2.Request("GET", "http://localhost/")
    response = httpx2.Response(200, headers=head, content=(b64decode(p) for p in pieces), request=request)
    return [[event.event, event.data] for event in httpx2.EventSource(response)]


for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = events(asked["events"]) if "events" in asked else message(b64decode(asked["message"]))
    except (ValueError, RecursionError, AttributeError):
        answer = None
    print(json.dumps(answer))
