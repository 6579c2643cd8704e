"""The official client of A2A 1.0 against every operation: client.py BASE_URL BINDING, prints ok."""

import asyncio
import os
import sys
import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict

EXT = "https://toolgate.dev/a2a/client-tools/v1"
BASE, BINDING = sys.argv[1], sys.argv[2]


def said(*parts, task="", tools=None):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, task_id=task)
    if tools is not None:
        message.extensions.append(EXT)
        ParseDict({EXT: {"tools": tools}}, message.metadata)
    return message


def request(message, **configuration):
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


TOOLS = [{
    "name": "get_location",
    "description": "Where the client is.",
    "inputSchema": {"type": "object", "properties": {"accuracy_m": {"type": "integer", "minimum": 1}}},
}]
CALL = 'call:get_location input:{"accuracy_m":10} say:there'


async def connect(streaming):
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {os.environ['TOOLGATE_SECRET_KEY']}"}, timeout=30)
    config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[BINDING])
    return await create_client(BASE, client_config=config)


async def task_of(client, asked):
    """The task after the last event."""
    task = None
    async for event in client.send_message(asked):
        kind = event.WhichOneof("payload")
        if kind == "task":
            task = event.task
        elif kind == "status_update":
            task.status.CopyFrom(event.status_update.status)
    return await client.get_task(GetTaskRequest(id=task.id))


def text(task):
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def call_of(task):
    for part in task.status.message.parts:
        tag = MessageToDict(part.metadata).get(EXT, {})
        if "toolCall" in tag:
            return tag["toolCall"]
    raise AssertionError(task)


def result(call, task):
    part = ParseDict({"data": {"lat": 52.52, "floor": 3}, "metadata": {EXT: {"toolResult": {"callId": call}}}}, Part())
    return said(part, task=task)


async def main():
    for streaming in (True, False):
        client = await connect(streaming)
        done = await task_of(client, request(said(Part(text="say:hello"))))
        assert done.status.state == TaskState.TASK_STATE_COMPLETED, done
        assert text(done) == "hello", done

        paused = await task_of(client, request(said(Part(text=CALL), tools=TOOLS)))
        assert paused.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, paused
        call = call_of(paused)
        assert call["argumentsJson"] == '{"accuracy_m":10}', call
        listed = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_INPUT_REQUIRED, page_size=5))
        assert listed.tasks[0].id == paused.id and listed.total_size >= 1, listed
        resumed = await task_of(client, request(result(call["callId"], paused.id)))
        assert (resumed.id, resumed.status.state) == (paused.id, TaskState.TASK_STATE_COMPLETED), resumed
        assert text(resumed) == "there", resumed

        waits = await task_of(client, request(said(Part(text=CALL), tools=TOOLS)))
        # A client that does not stream does not subscribe either.
        streams = client if streaming else await connect(True)
        events = streams.subscribe(SubscribeToTaskRequest(id=waits.id))
        first = await anext(events)
        assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, first
        hook = TaskPushNotificationConfig(task_id=waits.id, id="h1", url="http://127.0.0.1:9/hook", token="t")
        made = await client.create_task_push_notification_config(hook)
        assert (made.id, made.url) == ("h1", hook.url), made
        of = GetTaskPushNotificationConfigRequest(task_id=waits.id, id="h1")
        assert (await client.get_task_push_notification_config(of)).token == "t"
        of = ListTaskPushNotificationConfigsRequest(task_id=waits.id)
        assert len((await client.list_task_push_notification_configs(of)).configs) == 1
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=waits.id, id="h1"))
        assert len((await client.list_task_push_notification_configs(of)).configs) == 0
        canceled = await client.cancel_task(CancelTaskRequest(id=waits.id))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED, canceled
        rest = [event async for event in events]
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, rest
        card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
        assert card.name == "default", card
        try:
            await client.get_task(GetTaskRequest(id="run_00000000000000000000000000"))
            raise AssertionError("a task that is not there was found")
        except Exception as error:
            assert "TaskNotFound" in type(error).__name__, repr(error)
    print("ok")


asyncio.run(main())
