"""Plays an agent whose call a person is asked about, with the Python SDK as it comes: no time-out is
set, and one that can opens pages for its user.

PROXY_URL, TOKEN; python approval.py TOOL auto|legacy [opens]. Each line of its input is the arguments of
a call that is to be made, as JSON; a line of its output says what came of it.
"""

import asyncio
import json
import os
import sys
import time

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


async def open_page(context: object, params: object) -> ElicitResult:
    say(step="page", mode=params.mode, url=params.url)
    return ElicitResult(action="accept")


async def call(client: Client, tool: str, arguments: dict) -> None:
    started = time.monotonic()
    try:
        answer = await client.call_tool(tool, arguments)
        shown = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        content = shown.get("content") or [{}]
        told = {"is_error": shown.get("isError", False), "text": content[0].get("text"), "meta": shown.get("_meta")}
    except Exception as error:  # whatever it is, the test is told
        told = {"failed": repr(error)}
    say(step="call", seconds=time.monotonic() - started, **told)


async def main(tool: str, mode: str, opens: bool) -> None:
    # The time-outs are those of the client that the SDK makes where it is given none.
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}, timeout=httpx2.Timeout(30, read=300)
    )
    transport = streamable_http_client(os.environ["PROXY_URL"], http_client=http)
    callback = {"elicitation_callback": open_page} if opens else {}
    async with Client(transport, mode=mode, **callback) as client:
        say(step="ready", mode=mode)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await call(client, tool, json.loads(line))


asyncio.run(main(sys.argv[1], sys.argv[2], "opens" in sys.argv[3:]))
