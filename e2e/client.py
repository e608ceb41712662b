"""Plays an agent with the Python SDK in its default mode: connects, lists, then calls one tool N times.

PROXY_URL, TOKEN; python client.py TOOL ARGUMENTS-JSON TIMES [auto|legacy]. Prints one JSON object a line.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


async def main(tool: str, arguments: dict, times: int, mode: str) -> None:
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}, timeout=httpx2.Timeout(30, read=300)
    )
    transport = streamable_http_client(os.environ["PROXY_URL"], http_client=http)
    async with Client(transport, mode=mode) as client:
        say(step="initialize", mode=mode)
        listed = await client.list_tools()
        say(step="list", tools=[one.name for one in listed.tools])
        for n in range(1, times + 1):
            answer = await client.call_tool(tool, arguments)
            shown = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
            content = shown.get("content") or [{}]
            say(
                step="call",
                n=n,
                is_error=shown.get("isError", False),
                text=content[0].get("text"),
                meta=shown.get("_meta"),
            )
    say(step="end")


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), (sys.argv[4:] or ["auto"])[0]))
