"""The bench's run as a DBOS workflow: ask the model, wait for whoever executes the call, ask the model again."""

import json
import sys

import httpx
import uvicorn
from dbos import DBOS, SetWorkflowID
from fastapi import FastAPI, Request

port, model, database = int(sys.argv[1]), sys.argv[2], sys.argv[3]
WAIT_SECONDS = 120

app = FastAPI()
DBOS(config={"name": "bench", "system_database_url": database, "run_admin_server": False, "log_level": "WARNING"})
client = httpx.AsyncClient(timeout=WAIT_SECONDS, limits=httpx.Limits(max_connections=None))


@DBOS.step()
async def ask(messages):
    """One step of the model, stored as one value."""
    body = {"model": "stub", "stream": True, "messages": messages}
    answer = await client.post(f"{model}/chat/completions", json=body)
    lines = [line[6:] for line in answer.text.split("\n") if line.startswith("data: {")]
    deltas = [(json.loads(line).get("choices") or [{}])[0].get("delta", {}) for line in lines]
    text = "".join(delta.get("content") or "" for delta in deltas)
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls") or []]
    call = {
        "id": "".join(piece.get("id") or "" for piece in pieces),
        "name": "".join(piece["function"].get("name") or "" for piece in pieces),
        "arguments": "".join(piece["function"].get("arguments") or "" for piece in pieces),
    }
    return {"text": text, "call": call if pieces else None}


@DBOS.workflow()
async def run(prompt):
    user = {"role": "user", "content": prompt}
    call = (await ask([user]))["call"]
    await DBOS.set_event_async("call", call)
    result = await DBOS.recv_async("result", timeout_seconds=WAIT_SECONDS)
    function = {"name": call["name"], "arguments": call["arguments"]}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": call["id"], "type": "function", "function": function}]}
    told = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}
    return {"text": (await ask([user, asked, told]))["text"]}


@app.get("/healthz")
async def healthz():
    return "ok"


@app.post("/runs/{id}")
async def start(id: str, request: Request):
    with SetWorkflowID(id):
        await DBOS.start_workflow_async(run, (await request.json())["prompt"])
    return await DBOS.get_event_async(id, "call", timeout_seconds=WAIT_SECONDS)


@app.post("/runs/{id}/result")
async def result(id: str, request: Request):
    await DBOS.send_async(id, await request.json(), "result")
    handle = await DBOS.retrieve_workflow_async(id)
    return await handle.get_result()


if __name__ == "__main__":
    DBOS.launch()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
