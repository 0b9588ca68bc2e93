"""The MCP server from end to end, with the official client library (`mcp` of PyPI, version 2.3).

Reads ENDPOINT (http://host:port), TOKEN (of a user with all rights on codesessions), NAMESPACE and INTERPRETER. Tells the story once
with each way in which a client and a server may agree on a version of the protocol. Prints a line for each step; the first one that
fails ends it.
"""

import asyncio
import base64
import os

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

URL = f"{os.environ['ENDPOINT']}/mcp/{os.environ['NAMESPACE']}/{os.environ['INTERPRETER']}"
# A start without a warm pod takes a while.
TIMEOUT = httpx2.Timeout(30, read=120)
TOOLS = [
    "close_session",
    "execute_code",
    "list_files",
    "open_session",
    "read_file",
    "remove_files",
    "run_command",
    "write_file",
]


def connection(token):
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(headers=headers, timeout=TIMEOUT)


async def call(client, tool, failed=False, **arguments):
    result = await client.call_tool(tool, arguments)
    assert bool(result.is_error) == failed, (tool, arguments, result)
    return result


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def story(client):
    assert client.server_info.name == "codeworkspace" and "open_session" in client.instructions
    assert sorted(tool.name for tool in (await client.list_tools()).tools) == TOOLS

    opened = await call(client, "open_session", name="mcp story", timeout_seconds=900)
    session = opened.structured_content["id"]
    assert opened.structured_content["state"] == "Ready", opened
    print("ok a session is open", flush=True)

    await call(client, "execute_code", session=session, code="x = 20")
    ran = await call(client, "execute_code", session=session, code="print('a')\nx + 1")
    assert ran.structured_content["stdout"] == "a\n" and ran.structured_content["exitCode"] == 0, ran
    assert text(ran) == "a\n\n21", ran
    wrong = await call(client, "execute_code", failed=True, session=session, code="1 / 0")
    assert "ZeroDivisionError" in text(wrong), wrong
    slow = await call(client, "execute_code", failed=True, session=session, code="while True: pass", timeout_ms=1000)
    assert "longer than its limit of 1000 ms" in text(slow), slow
    print("ok code keeps its variables, and its faults are results", flush=True)

    ran = await call(client, "run_command", session=session, command="echo b; exit 3", failed=True)
    assert ran.structured_content["stdout"] == "b\n" and ran.structured_content["exitCode"] == 3, ran
    print("ok commands run", flush=True)

    name = "folder/a b #1 100%?.txt"
    await call(client, "write_file", session=session, path=name, text="größe\n")
    read = await call(client, "read_file", session=session, path=name)
    assert read.content[0].resource.text == "größe\n", read
    data = base64.b64encode(bytes(range(256))).decode()
    await call(client, "write_file", session=session, path="folder/bytes", base64=data)
    read = await call(client, "read_file", session=session, path="folder/bytes")
    assert read.content[0].resource.blob == data, read
    listed = await call(client, "list_files", session=session, path="folder")
    assert [(link.name, link.size) for link in listed.content] == [("a b #1 100%?.txt", 8), ("bytes", 256)], listed
    await call(client, "remove_files", session=session, paths=["folder"])
    gone = await call(client, "read_file", failed=True, session=session, path="folder/bytes")
    assert "folder/bytes" in text(gone), gone
    escape = await call(client, "write_file", failed=True, session=session, path="../escape", text="")
    assert escape.structured_content["code"] == "InvalidPath", escape
    print("ok files go in and out", flush=True)

    unknown = await call(client, "execute_code", failed=True, session="0" * 32, code="1")
    assert unknown.structured_content["code"] == "SessionNotFound", unknown
    misspelled = await call(client, "run_command", failed=True, session=session, comand="ls")
    assert misspelled.structured_content["code"] == "InvalidRequest", misspelled
    await call(client, "close_session", session=session)
    await call(client, "close_session", session=session)
    closed = await call(client, "execute_code", failed=True, session=session, code="1")
    assert closed.structured_content["code"] == "SessionEnded", closed
    print("ok refusals are results, and a closed session says so", flush=True)


async def main():
    for mode in ("legacy", "auto"):
        async with connection(os.environ["TOKEN"]) as http:
            async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
                print(f"ok connected, {mode}: {client.protocol_version}", flush=True)
                await story(client)
    async with connection("not-a-token") as http:
        answer = await http.post(URL, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert answer.status_code == 401 and answer.json()["code"] == "Unauthenticated", answer.text
    print("the story of MCP ended well")


if __name__ == "__main__":
    asyncio.run(main())
