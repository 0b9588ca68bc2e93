"""The native API from end to end, with nothing but the standard library.

Reads ENDPOINT (http://host:port), TOKEN (of a user with all rights on codesessions), NAMESPACE, INTERPRETER, and, if it is to see
a refusal by RBAC, OTHER_TOKEN (of a user without any). Prints a line for each step; the first one that fails ends it.
"""

import hashlib
import http.client
import json
import os
import threading
import time
import urllib.parse
import uuid

ENDPOINT = urllib.parse.urlsplit(os.environ["ENDPOINT"])
TOKEN = os.environ["TOKEN"]
SESSIONS = f"/v1/namespaces/{os.environ['NAMESPACE']}/interpreters/{os.environ['INTERPRETER']}/sessions"
MEBIBYTE = 1024 * 1024
# Longest that a single answer may keep us waiting, a start without a warm pod included.
PATIENCE = 120


def connect():
    return http.client.HTTPConnection(ENDPOINT.hostname, ENDPOINT.port or 80, timeout=PATIENCE)


def send(method, path, body=None, headers=None, token=TOKEN):
    """Sends a request and gives the open answer. A body that is no bytes and no iterator is sent as JSON."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
    connection = connect()
    connection.request(method, path, body=body, headers=headers)
    return connection.getresponse()


def call(method, path, body=None, status=200, headers=None, token=TOKEN):
    """Sends a request that has to be answered with this status, and gives the JSON of the answer."""
    answer = send(method, path, body, headers, token)
    text = answer.read()
    assert answer.status == status, (method, path, answer.status, text[:2000])
    return json.loads(text) if text else None


def refused(method, path, status, code, body=None, headers=None, token=TOKEN):
    problem = call(method, path, body, status, headers, token)
    assert problem["code"] == code and problem["status"] == status and problem["detail"], problem


def events(answer):
    """The events of a stream, as they come: (id, event, data)."""
    assert answer.status == 200, (answer.status, answer.read()[:2000])
    assert answer.headers["Content-Type"].startswith("text/event-stream"), answer.headers
    fields = {}
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}


def run(path, body, **options):
    """Runs something to its end: what it printed, and how it ended."""
    told = list(events(send("POST", path, body, **options)))
    assert [number for number, _, _ in told] == list(range(1, len(told) + 1)), told
    assert told[-1][1] == "finished", told[-1]
    printed = "".join(data["text"] for _, kind, data in told if kind == "output" and data["stream"] == "stdout")
    return printed, told[-1][2], told


def step(text):
    print(f"ok {text}", flush=True)


def open_session(key, **wanted):
    return call("POST", SESSIONS, wanted, 201, {"Idempotency-Key": key})


def path_of(session):
    return f"{SESSIONS}/{session['id']}"


def opening():
    key = str(uuid.uuid4())
    first = open_session(key, name="story", sessionTimeoutSeconds=900)
    assert first["state"] == "Ready" and first["name"] == "story" and first["requestedBy"], first
    again = open_session(key, name="story", sessionTimeoutSeconds=900)
    assert again["id"] == first["id"], (first, again)
    refused("POST", SESSIONS, 409, "KeyReused", {"name": "other"}, {"Idempotency-Key": key})
    assert call("GET", path_of(first))["id"] == first["id"]
    listed, token = [], ""
    while token is not None:
        query = urllib.parse.urlencode({"maxResults": 50, **({"nextToken": token} if token else {})})
        page = call("GET", f"{SESSIONS}?{query}")
        listed += [item["id"] for item in page["items"]]
        token = page.get("nextToken")
    assert first["id"] in listed, listed
    step("one key opens one session")
    return path_of(first)


def executing(session):
    printed, end, _ = run(f"{session}/execute", {"code": "x = 20\nprint('a', x)\nx + 1"})
    assert printed == "a 20\n" and end["outcome"] == "completed" and end["exitCode"] == 0, (printed, end)
    assert run(f"{session}/execute", {"code": "print(x * 2)"})[0] == "40\n"
    _, end, told = run(f"{session}/execute", {"code": "1 / 0"})
    assert end["outcome"] == "failed", end
    assert any(kind == "error" and data["name"] == "ZeroDivisionError" for _, kind, data in told), told
    _, end, _ = run(f"{session}/execute", {"code": "print(x)", "clearContext": True})
    assert end["outcome"] == "failed", end
    printed, _, _ = run(f"{session}/execute", {"code": "import os; print(os.environ['A'])", "environment": {"A": "b"}})
    assert printed == "b\n", printed
    step("code keeps its variables, and its errors are told")

    # The code ends only once somebody has seen its first line and made a file.
    code = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('gone on')"
    seen = events(send("POST", f"{session}/execute", {"code": code, "timeoutMs": PATIENCE * 1000}))
    printed = ""
    while "begun\n" not in printed:
        printed += next(seen)[2]["text"]
    call("PUT", f"{session}/file?path=go", b"")
    rest = list(seen)
    assert "gone on\n" in "".join(data.get("text", "") for _, _, data in rest), rest
    assert rest[-1][2]["outcome"] == "completed", rest
    step("output is seen before the code ends")

    key = str(uuid.uuid4())
    count = "import pathlib\np = pathlib.Path('count')\np.write_text(p.read_text() + 'x' if p.exists() else 'x')\nprint(p.read_text())"
    ran = [run(f"{session}/execute", {"code": count}, headers={"Idempotency-Key": key})[0] for _ in range(2)]
    assert ran == ["x\n", "x\n"], ran
    step("a repeated execution runs once and is told again")


def cancelling(session):
    key = str(uuid.uuid4())
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    answer = send("POST", f"{session}/execute", {"code": code}, {"Idempotency-Key": key})
    assert answer.headers["Execution-Id"] == key, answer.headers
    seen = events(answer)
    assert next(seen)[2]["text"] == "begun\n"
    call("POST", f"{session}/executions/{key}/cancel", status=204)
    end = list(seen)[-1]
    assert end[1] == "finished" and end[2]["outcome"] == "cancelled", end
    assert run(f"{session}/execute", {"code": "print('usable')"})[0] == "usable\n"
    step("cancelled code ends, and the session is usable")

    _, end, _ = run(f"{session}/execute", {"code": "import time; time.sleep(600)", "timeoutMs": 1000})
    assert end["outcome"] == "timedOut", end
    _, end, _ = run(f"{session}/command", {"command": "sleep 600", "timeoutMs": 1000})
    assert end["outcome"] == "timedOut", end
    begin = time.monotonic()
    _, end, _ = run(f"{session}/command", {"command": "sleep 600"})
    assert end["outcome"] == "timedOut" and time.monotonic() - begin >= 30, end
    refused("POST", f"{session}/command", 400, "InvalidRequest", {"command": "true", "timeoutMs": 0})
    refused("POST", f"{session}/command", 400, "InvalidRequest", {"command": "true", "timeoutMs": 28_800_001})
    step("time limits hold, that of 30 seconds for commands without one included")

    call("POST", f"{session}/restart", {"language": "python"}, 204)
    assert run(f"{session}/execute", {"code": "print('x' in globals())"})[0] == "False\n"
    step("a restarted language has forgotten its variables")


def going_away(session):
    connection = connect()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    connection.request("POST", f"{session}/execute", json.dumps({"code": code}), headers)
    answer = connection.getresponse()
    assert next(events(answer))[2]["text"] == "begun\n"
    answer.close()
    connection.close()
    # It waits behind the one that nobody listens to, and gets its turn when that was interrupted.
    assert run(f"{session}/execute", {"code": "print('usable')"})[0] == "usable\n"
    step("code whose caller went away is interrupted, and the session is usable")


def commands(session):
    printed, end, _ = run(f"{session}/command", {"command": "echo $A; exit 3", "environment": {"A": "b"}})
    assert printed == "b\n" and end["exitCode"] == 3 and end["outcome"] == "failed", (printed, end)
    task = call("POST", f"{session}/tasks", {"command": "echo done"}, 202)
    deadline = time.monotonic() + PATIENCE
    while task["state"] in ("submitted", "working") and time.monotonic() < deadline:
        time.sleep(0.1)
        task = call("GET", f"{session}/tasks/{task['id']}")
    assert task["state"] == "completed" and task["stdout"].split() == ["done"], task
    endless = call("POST", f"{session}/tasks", {"command": "sleep 600"}, 202)
    call("POST", f"{session}/tasks/{endless['id']}/stop")
    while endless["state"] in ("submitted", "working") and time.monotonic() < deadline:
        time.sleep(0.1)
        endless = call("GET", f"{session}/tasks/{endless['id']}")
    assert endless["state"] == "canceled", endless
    refused("GET", f"{session}/tasks/{uuid.uuid4()}", 404, "UnknownTask")
    step("commands run in front and in the background")


def inputs(session):
    names = ["a b", "100%", "#1", "what?", "größe", "plain.csv"]
    staged = [{"name": name, "text": f"text of {name}"} for name in names]
    staged.append({"name": "bytes", "bytes": "AP8KDQ=="})
    told = call("POST", f"{session}/inputs", {"inputs": staged})
    assert sorted(item["name"] for item in told) == sorted([*names, "bytes"]), told
    quoted = urllib.parse.quote("one by itself #?", safe="")
    call("PUT", f"{session}/inputs/{quoted}", b"streamed")
    code = "import json, os\nprint(json.dumps({n: open(p, 'rb').read().hex() for n, p in json.loads(os.environ['AF_STAGED_INPUTS']).items()}))"
    # The runtime can be changed by the code that it runs: so the variable is there again each time.
    for _ in range(2):
        printed, _, _ = run(f"{session}/execute", {"code": code})
        found = {name: bytes.fromhex(contents) for name, contents in json.loads(printed).items()}
        expected = {name: f"text of {name}".encode() for name in names}
        assert found == {**expected, "bytes": b"\0\xff\n\r", "one by itself #?": b"streamed"}, found
        run(f"{session}/execute", {"code": "import os; del os.environ['AF_STAGED_INPUTS']"})
    printed, _, _ = run(f"{session}/command", {"command": "printenv AF_STAGED_INPUTS"})
    assert sorted(json.loads(printed)) == sorted([*names, "bytes", "one by itself #?"]), printed
    call("DELETE", f"{session}/inputs/bytes", status=204)
    printed, _, _ = run(f"{session}/command", {"command": "printenv AF_STAGED_INPUTS"})
    assert "bytes" not in json.loads(printed), printed
    refused("PUT", f"{session}/inputs/..%2Fescape", 400, "InvalidRequest", b"x")
    step("staged inputs are found by everything that runs")


def files(session):
    # Parts that differ, so that a lost or doubled one shows.
    parts = 120
    part = lambda number: hashlib.sha256(str(number).encode()).digest() * (MEBIBYTE // 32)
    sent = hashlib.sha256()

    def body():
        for number in range(parts):
            bytes_ = part(number)
            sent.update(bytes_)
            yield bytes_

    # An iterator goes out in chunks, without a length being known.
    written = call("PUT", f"{session}/file?path=big/file.bin", body())
    assert written == {"files": 1, "bytes": parts * MEBIBYTE}, written
    printed, _, _ = run(f"{session}/command", {"command": "sha256sum big/file.bin"})
    assert printed.split()[0] == sent.hexdigest(), printed
    answer = send("GET", f"{session}/file?path=big/file.bin")
    assert answer.status == 200 and int(answer.headers["Content-Length"]) == parts * MEBIBYTE, answer.headers
    received = hashlib.sha256()
    while chunk := answer.read(MEBIBYTE):
        received.update(chunk)
    assert received.hexdigest() == sent.hexdigest()
    step("a file of 120 MiB goes in and out whole")

    printed, _, _ = run(f"{session}/execute", {"code": "open('made by code.bin', 'wb').write(bytes(range(256)))"})
    listed = {entry["path"]: entry for entry in call("GET", f"{session}/files")}
    assert listed["made by code.bin"] == {"path": "made by code.bin", "kind": "file", "size": 256}, listed
    assert send("GET", f"{session}/file?path=made%20by%20code.bin").read() == bytes(range(256))
    call("POST", f"{session}/remove", {"paths": ["made by code.bin", "big"]}, 204)
    refused("GET", f"{session}/file?path=big/file.bin", 404, "NotFound")
    refused("PUT", f"{session}/file?path=../escape", 400, "InvalidPath", b"x")
    step("what code has made is listed, read back and removed")

    size = 3 * MEBIBYTE
    _, end, told = run(f"{session}/execute", {"code": f"import sys; _ = sys.stdout.write('x' * {size})"})
    assert end["stdout"]["totalBytes"] == size, end["stdout"]
    came = sum(len(data["text"]) for _, kind, data in told if kind == "output")
    assert came == MEBIBYTE, came
    whole = send("GET", f"{session}/file?path={urllib.parse.quote(end['stdout']['file'])}").read()
    assert whole == b"x" * size
    step("output that is too long for events is whole in its file")


def refusals(session):
    refused("GET", session, 401, "Unauthenticated", token=None)
    refused("GET", session, 401, "Unauthenticated", token="not-a-token")
    if other := os.environ.get("OTHER_TOKEN"):
        refused("GET", session, 403, "Forbidden", token=other)
        refused("POST", SESSIONS, 403, "Forbidden", {}, token=other)
    refused("GET", f"{SESSIONS}/{'0' * 32}", 404, "SessionNotFound")
    refused("GET", SESSIONS.replace(os.environ["INTERPRETER"], "no-such-interpreter"), 404, "InterpreterNotFound")
    refused("POST", f"{session}/execute", 400, "InvalidRequest", b"{", {"Content-Type": "application/json"})
    refused("POST", f"{session}/execute", 400, "InvalidRequest", {"code": "1", "speed": 9})
    document = call("GET", "/openapi.json", token=None)
    assert document["openapi"].startswith("3.1"), document["openapi"]
    step("what is wrong is refused by name")


def many():
    """Two sessions at once do not see each other."""
    sessions = [path_of(open_session(str(uuid.uuid4()))) for _ in range(2)]
    printed = {}

    def use(session):
        run(f"{session}/execute", {"code": f"mine = {session!r}; open('mine', 'w').write(mine)"})
        printed[session] = run(f"{session}/execute", {"code": "print(mine == open('mine').read(), mine)"})[0]

    threads = [threading.Thread(target=use, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert printed == {session: f"True {session}\n" for session in sessions}, printed
    for session in sessions:
        stopping(session)
    step("two sessions never see each other")


def stopping(session):
    call("DELETE", session, status=204)
    call("DELETE", session, status=204)
    deadline = time.monotonic() + PATIENCE
    while call("GET", session)["state"] != "Terminated":
        assert time.monotonic() < deadline, "a stopped session does not end"
        time.sleep(0.1)
    refused("POST", f"{session}/execute", 410, "SessionEnded", {"code": "1"})


def main():
    session = opening()
    executing(session)
    cancelling(session)
    going_away(session)
    commands(session)
    inputs(session)
    files(session)
    refusals(session)
    many()
    stopping(session)
    step("a stopped session says so")
    print("the native story ended well")


if __name__ == "__main__":
    main()
