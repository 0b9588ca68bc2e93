"""From the start of a session to its end, and what is left of it."""

import time

from botocore.exceptions import ClientError
from client import DEFAULT, Session, check, data_client, expect, invalid, not_active, refused, tell, token

client = data_client()

ARGUMENTS = {
    "executeCode": {"code": "print(1)"},
    "executeCommand": {"command": "true"},
    "startCommandExecution": {"command": "true"},
    "getTask": {"taskId": "00000000-0000-4000-8000-000000000000"},
    "stopTask": {"taskId": "00000000-0000-4000-8000-000000000000"},
    "writeFiles": {"content": [{"path": "x", "text": "x"}]},
    "readFiles": {"paths": ["x"]},
    "listFiles": {},
    "removeFiles": {"paths": ["x"]},
}


def start(**parameters):
    return client.start_code_interpreter_session(codeInterpreterIdentifier=DEFAULT, **parameters)


def listed(**parameters):
    """Every session, page by page."""
    items, page = [], {}
    while True:
        answer = client.list_code_interpreter_sessions(codeInterpreterIdentifier=DEFAULT, **parameters, **page)
        items += answer["items"]
        check(len(answer["items"]) <= parameters.get("maxResults", 10), "the length of a page", answer)
        if "nextToken" not in answer:
            return items
        page = {"nextToken": answer["nextToken"]}


def is_over(session, reason):
    for tool, arguments in ARGUMENTS.items():
        message = not_active(lambda: session.invoke(tool, **arguments), session.id)
        check(reason in message, f"{tool} says why", message)
    not_active(session.stop, session.id)
    expect(session.get()["status"], "TERMINATED", "its status")
    (item,) = [item for item in listed(status="TERMINATED") if item["sessionId"] == session.id]
    check(item["lastUpdatedAt"] >= item["createdAt"], "its times", item)
    check(session.id not in [item["sessionId"] for item in listed(status="READY")], "it is not listed as ready")


once = token()
first = Session(name="first", sessionTimeoutSeconds=3600, clientToken=once)


def a_started_session_is_what_was_asked_for():
    expect(first.started["codeInterpreterIdentifier"], DEFAULT, "the answer's interpreter")
    check(first.id.isalnum() and len(first.id) <= 40, "the form of its id", first.id)
    got = first.get()
    wanted = {"name": "first", "sessionTimeoutSeconds": 3600, "status": "READY", "sessionId": first.id}
    expect({key: got[key] for key in wanted}, wanted, "what get tells")
    expect(got["createdAt"], first.started["createdAt"], "when it was started")


def a_repeated_start_is_the_same_session():
    again = start(name="first", sessionTimeoutSeconds=3600, clientToken=once)
    expect((again["sessionId"], again["createdAt"]), (first.id, first.started["createdAt"]), "the session of the same token")
    reused = "IdempotentParameterMismatchException"
    invalid(lambda: start(name="second", sessionTimeoutSeconds=3600, clientToken=once), reason=reused)
    invalid(lambda: start(name="first", sessionTimeoutSeconds=1800, clientToken=once), reason=reused)


def the_whole_arn_names_the_interpreter_too():
    arn = f"arn:aws:bedrock-agentcore:eu-central-1:aws:code-interpreter/{DEFAULT}"
    got = client.get_code_interpreter_session(codeInterpreterIdentifier=arn, sessionId=first.id)
    expect((got["sessionId"], got["codeInterpreterIdentifier"]), (first.id, arn), "the session by ARN")


def a_stopped_session_is_gone_for_every_verb():
    once = token()
    stopped = first.stop(clientToken=once)
    expect(stopped["sessionId"], first.id, "what was stopped")
    expect(first.stop(clientToken=once)["sessionId"], first.id, "the same call again")
    refused("ResourceNotFoundException", 404, lambda: first.stop(clientToken=token()), "is not active")
    is_over(first, "Stopped")


def an_expired_session_is_gone_for_every_verb():
    session = Session(name="short", sessionTimeoutSeconds=8)
    began = time.monotonic()
    expect(session.get()["sessionTimeoutSeconds"], 8, "its time limit")
    # It fires whatever the session does.
    patient = data_client(retries={"total_max_attempts": 3})
    while time.monotonic() - began < 60:
        try:
            session.invoke("executeCode", client=patient, code="import time; time.sleep(0.5)")
        except ClientError as error:
            expect(error.response["Error"]["Code"], "ResourceNotFoundException", "the error at its end")
            break
    took = time.monotonic() - began
    check(6 < took < 40, "when it ended", took)
    is_over(session, "SessionTimeout")


def lists_come_in_pages():
    sessions = listed()
    expect(listed(maxResults=1), sessions, "page by page")
    check({"first", "short"} <= {item.get("name") for item in sessions}, "all of them", sessions)
    times = [item["createdAt"] for item in sessions]
    expect(times, sorted(times, reverse=True), "the youngest first")
    expect({item["status"] for item in listed(status="TERMINATED")}, {"TERMINATED"}, "only those")


with first:
    tell(
        [
            a_started_session_is_what_was_asked_for,
            a_repeated_start_is_the_same_session,
            the_whole_arn_names_the_interpreter_too,
            a_stopped_session_is_gone_for_every_verb,
            an_expired_session_is_gone_for_every_verb,
            lists_come_in_pages,
        ]
    )
