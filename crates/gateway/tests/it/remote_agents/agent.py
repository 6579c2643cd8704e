"""A small agent on the official A2A SDK for Python, of either version: what the tests use as a remote agent.

    agent.py PORT DIRECTORY BINDING...        BINDING: jsonrpc, rest, polling (no streaming)

What it does is the first word of a message. Tasks are kept in DIRECTORY, so a restart knows them; `slow` works until the
file `go` is there. Every message that arrives is a line of `messages`, every cancel a line of `cancels`.
"""

import asyncio
import sys
from pathlib import Path

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)

PORT, DIRECTORY, *BINDINGS = sys.argv[1:]
FOLDER = Path(DIRECTORY)
URL = f"http://127.0.0.1:{PORT}"
IS_V1 = hasattr(Part, "DESCRIPTOR")
LOOK_SECONDS = 0.02

if IS_V1:
    from a2a.types import AgentInterface
    from google.protobuf import json_format
    from google.protobuf.struct_pb2 import Value
    from starlette.applications import Starlette

    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes

    WORKING, SUBMITTED, DONE = (
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_SUBMITTED,
        TaskState.TASK_STATE_COMPLETED,
    )

    def text(words):
        return Part(text=words)

    def data(json):
        return Part(data=json_format.Parse(json, Value()), media_type="application/json")

    def file(content, name):
        return Part(raw=content, filename=name, media_type="text/plain")

    def words_of(message):
        return next((part.text for part in message.parts if part.HasField("text")), "")

    def stored(task):
        return task.SerializeToString()

    def loaded(content):
        return Task.FromString(content)

else:
    import base64
    import json as jsonlib

    from a2a.server.apps import A2AStarletteApplication
    from a2a.types import DataPart, FilePart, FileWithBytes, TextPart

    WORKING, SUBMITTED, DONE = TaskState.working, TaskState.submitted, TaskState.completed

    def text(words):
        return Part(root=TextPart(text=words))

    def data(json):
        return Part(root=DataPart(data=jsonlib.loads(json)))

    def file(content, name):
        held = FileWithBytes(bytes=base64.b64encode(content).decode(), name=name, mime_type="text/plain")
        return Part(root=FilePart(file=held))

    def words_of(message):
        return next((part.root.text for part in message.parts if part.root.kind == "text"), "")

    def stored(task):
        return task.model_dump_json().encode()

    def loaded(content):
        return Task.model_validate_json(content)


def note(name, line):
    with open(FOLDER / name, "a") as out:
        out.write(line + "\n")


class Store(TaskStore):
    """Tasks as files."""

    async def save(self, task, context=None):
        part = FOLDER / f"{task.id}.part"
        part.write_bytes(stored(task))
        part.rename(FOLDER / f"{task.id}.task")

    async def get(self, task_id, context=None):
        path = FOLDER / f"{task_id}.task"
        return loaded(path.read_bytes()) if path.exists() else None

    async def list(self, params, context=None):
        raise NotImplementedError

    async def delete(self, task_id, context=None):
        (FOLDER / f"{task_id}.task").unlink(missing_ok=True)


STORE = Store()


async def permission():
    while not (FOLDER / "go").exists():
        await asyncio.sleep(LOOK_SECONDS)


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        message = context.message
        # The scripted model of the tests cannot write a space.
        words = words_of(message).replace("+", " ")
        note("messages", f"{message.message_id} {words}")
        if context.current_task is None:
            state = TaskStatus(state=SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, status=state, history=[message])
            )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        say = lambda words: updater.new_agent_message([text(words)])
        if context.current_task is not None:
            return await updater.complete(say(f"You said {words}."))
        word, _, rest = words.partition(" ")
        if word == "slow":
            await updater.start_work(say("Thinking about it."))
            await permission()
            await updater.add_artifact([text("It took a while.")], name="answer")
            await updater.complete()
        elif word == "ask":
            await updater.requires_input(say(rest or "Which city?"))
        elif word == "form":
            form = '{"type": "object", "properties": {"seat": {"type": "string"}}, "required": ["seat"]}'
            await updater.requires_input(updater.new_agent_message([text("Where?"), data(form)]))
        elif word == "auth":
            await updater.requires_auth(say(rest))
        elif word == "fail":
            await updater.failed(say("The oven is broken."))
        elif word == "reject":
            await updater.reject(say("Not my business."))
        elif word == "data":
            await updater.add_artifact([data('{"count": 3, "ratio": 0.5}')])
            await updater.complete()
        elif word == "file":
            await updater.add_artifact([text("Here."), file(b"by the agent", "note.txt")])
            await updater.complete()
        elif word == "headers":
            headers = context.call_context.state["headers"]
            await updater.complete(say(f"You are {headers.get('authorization')}."))
        else:
            await updater.complete(say(f"Echo: {words}"))

    async def cancel(self, context, event_queue):
        note("cancels", context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def carry_on(path):
    """Finishes a task that a restart has interrupted."""
    task = loaded(path.read_bytes())
    if task.status.state in (WORKING, SUBMITTED):
        await permission()
        message = TaskUpdater(None, task.id, task.context_id).new_agent_message([text("Done after a restart.")])
        status = TaskStatus(state=DONE, message=message)
        if IS_V1:
            task.status.CopyFrom(status)
        else:
            task.status = status
        await STORE.save(task)


def card():
    common = {
        "name": "Sample Agent",
        "description": "Does what the first word says.",
        "version": "1",
        "capabilities": AgentCapabilities(streaming="polling" not in BINDINGS),
        "default_input_modes": ["text/plain", "application/json"],
        "default_output_modes": ["text/plain"],
        "skills": [AgentSkill(id="echo", name="Echo", description="Says it again.", tags=["echo"])],
    }
    if not IS_V1:
        return AgentCard(**common, url=f"{URL}/")
    interfaces = []
    if "rest" in BINDINGS:
        interfaces.append(AgentInterface(url=f"{URL}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"))
    if "jsonrpc" in BINDINGS:
        interfaces.append(AgentInterface(url=f"{URL}/", protocol_binding="JSONRPC", protocol_version="1.0"))
    return AgentCard(**common, supported_interfaces=interfaces)


def app():
    if not IS_V1:
        handler = DefaultRequestHandler(agent_executor=Agent(), task_store=STORE)
        return A2AStarletteApplication(agent_card=card(), http_handler=handler).build()
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=STORE, agent_card=card())
    routes = create_agent_card_routes(card())
    if "jsonrpc" in BINDINGS:
        routes += create_jsonrpc_routes(handler, "/")
    if "rest" in BINDINGS:
        routes += create_rest_routes(handler, path_prefix="/rest")
    return Starlette(routes=routes)


async def main():
    tasks = [asyncio.create_task(carry_on(path)) for path in FOLDER.glob("*.task")]
    server = uvicorn.Server(uvicorn.Config(app(), host="127.0.0.1", port=int(PORT), log_level="warning"))
    await server.serve()
    for task in tasks:
        task.cancel()


asyncio.run(main())
