"""Uses the gateway at argv[1] with the official Python SDK, in the era that argv[2] names."""

import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def agree(context, params):
    assert "risky" in params.message, params.message
    return ElicitResult(action="accept", content={"approve": True})


async def main(url, mode):
    headers = {"Authorization": f"Bearer {os.environ['TOOLGATE_SECRET_KEY']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=agree) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"echo", "risky", "ask_default"} <= set(names), names
            assert names == sorted(names), names
            echoed = await client.call_tool("echo", {"n": 1})
            assert echoed.structured_content == {"n": 1}, echoed
            approved = await client.call_tool("risky", {"n": 2})
            assert approved.content[0].text == '{"n":2}', approved
            asked = await client.call_tool("ask_default", {"message": "hello"})
            assert asked.structured_content["space"].startswith("space_"), asked
            listed = (await client.list_resources()).resources
            notes = [one for one in listed if one.name == "notes.md"]
            read = await client.read_resource(notes[0].uri)
            assert read.contents[0].text == "# hello", read
            prompts = (await client.list_prompts()).prompts
            assert prompts[0].name == "default", prompts
    print("ok")


asyncio.run(main(*sys.argv[1:]))
