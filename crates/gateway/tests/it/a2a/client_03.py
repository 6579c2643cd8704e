"""The official client of A2A 0.3 against every operation it has: client_03.py BASE_URL, prints ok."""

import asyncio
import os
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)

EXT = "https://toolgate.dev/a2a/client-tools/v1"
TOOLS = [{
    "name": "get_location",
    "description": "Where the client is.",
    "inputSchema": {"type": "object", "properties": {"accuracy_m": {"type": "integer"}}},
}]
CALL = 'call:get_location input:{"accuracy_m":10} say:there'


def said(part, task=None, tools=None):
    metadata = None if tools is None else {EXT: {"tools": tools}}
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=part)], task_id=task, metadata=metadata)


async def task_of(client, message):
    task = None
    async for event in client.send_message(message):
        task = event[0] if isinstance(event, tuple) else event
    return await client.get_task(TaskQueryParams(id=task.id))


def text(task):
    return "".join(part.root.text for artifact in task.artifacts or [] for part in artifact.parts)


async def main():
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {os.environ['TOOLGATE_SECRET_KEY']}"}, timeout=30)
    card = await A2ACardResolver(http, sys.argv[1]).get_agent_card()
    for streaming in (True, False):
        client = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)
        done = await task_of(client, said(TextPart(text="say:hello")))
        assert (done.status.state, text(done)) == (TaskState.completed, "hello"), done
        paused = await task_of(client, said(TextPart(text=CALL), tools=TOOLS))
        assert paused.status.state == TaskState.input_required, paused
        tags = [part.root.metadata[EXT]["toolCall"] for part in paused.status.message.parts if part.root.metadata]
        assert tags[0]["argumentsJson"] == '{"accuracy_m":10}', tags
        result = DataPart(data={"lat": 1}, metadata={EXT: {"toolResult": {"callId": tags[0]["callId"]}}})
        resumed = await task_of(client, said(result, task=paused.id))
        assert (resumed.id, resumed.status.state, text(resumed)) == (paused.id, TaskState.completed, "there"), resumed

        waits = await task_of(client, said(TextPart(text=CALL), tools=TOOLS))
        # A client that does not stream does not subscribe either.
        streams = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        events = streams.resubscribe(TaskIdParams(id=waits.id))
        first = await anext(events)
        assert first[0].status.state == TaskState.input_required, first
        hook = PushNotificationConfig(id="h1", url="http://127.0.0.1:9/hook", token="t")
        await client.set_task_callback(TaskPushNotificationConfig(task_id=waits.id, push_notification_config=hook))
        of = GetTaskPushNotificationConfigParams(id=waits.id, push_notification_config_id="h1")
        assert (await client.get_task_callback(of)).push_notification_config.token == "t"
        canceled = await client.cancel_task(TaskIdParams(id=waits.id))
        assert canceled.status.state == TaskState.canceled, canceled
        rest = [event async for event in events]
        assert rest[-1][0].status.state == TaskState.canceled, rest
        extended = await client.get_card()
        assert extended.name == "default", extended
    print("ok")


asyncio.run(main())
