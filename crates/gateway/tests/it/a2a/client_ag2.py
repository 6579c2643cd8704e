"""An agent of AG2 with a tool of its own, whose model is our agent: client_ag2.py BASE_URL, prints ok."""

import asyncio
import os
import sys

from ag2 import Agent, tool
from ag2.a2a import A2AConfig


@tool
async def get_location(accuracy_m: int) -> str:
    """Where the client is."""
    seen.append(accuracy_m)
    return "52.5 north"


seen = []


async def main():
    headers = {"Authorization": f"Bearer {os.environ['TOOLGATE_SECRET_KEY']}"}
    for streaming in (True, False):
        config = A2AConfig(card_url=sys.argv[1], headers=headers, streaming=streaming)
        agent = Agent("traveller", config=config, tools=[get_location])
        reply = await agent.ask('call:get_location input:{"accuracy_m":10} say:there')
        assert reply.body == "there", reply
    assert seen == [10, 10], seen
    print("ok")


asyncio.run(main())
