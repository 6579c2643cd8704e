"""An agent of the framework AG2, served by AG2's own A2A server: what the tests use as a remote agent.

    agent_ag2.py PORT DIRECTORY

Its model is scripted: it calls its tool once, which works until the file `go` is there, and then says what the tool gave.
Every use of the tool is a line of `messages`. AG2 keeps tasks in memory, so a restart knows none.
"""

import asyncio
import sys
from pathlib import Path

import uvicorn
from ag2 import Agent, tool
from ag2.a2a import A2AServer
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig

PORT, DIRECTORY = sys.argv[1:]
FOLDER = Path(DIRECTORY)
LOOK_SECONDS = 0.02


@tool
async def work(hours: int) -> str:
    """Works."""
    with open(FOLDER / "messages", "a") as out:
        out.write(f"{hours}\n")
    while not (FOLDER / "go").exists():
        await asyncio.sleep(LOOK_SECONDS)
    return "worked"


SCRIPT = TestConfig(ToolCallEvent(name="work", arguments='{"hours": 8}'), "All done.")
AGENT = Agent("worker", config=SCRIPT, tools=[work])
APP = A2AServer(AGENT).build_jsonrpc(url=f"http://127.0.0.1:{PORT}")
uvicorn.run(APP, host="127.0.0.1", port=int(PORT), log_level="warning")
