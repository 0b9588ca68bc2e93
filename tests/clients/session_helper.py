"""The session helper of AWS's SDK for agents: `bedrock_agentcore.tools`."""

import os

# It reads this when it is imported.
os.environ["BEDROCK_AGENTCORE_DP_ENDPOINT"] = os.environ["BEDROCK_AGENTCORE_CP_ENDPOINT"] = os.environ["ENDPOINT"]

from bedrock_agentcore.tools.code_interpreter_client import CodeInterpreter, code_session
from client import REGION, Result, check, expect, tell

helper = CodeInterpreter(REGION)


def result_of(answer):
    return Result([event["result"] for event in answer["stream"]])


def it_starts_a_session():
    session = helper.start(name="helper", session_timeout_seconds=600)
    got = helper.get_session()
    expect((got["sessionId"], got["name"], got["status"]), (session, "helper", "READY"), "the session")
    check(session in [item["sessionId"] for item in helper.list_sessions(status="READY")["items"]], "it is listed")


def it_runs_code_in_every_language():
    expect(result_of(helper.execute_code("x = 1\nprint(x)")).succeeded().stdout, "1\n", "python")
    expect(result_of(helper.execute_code("print('x' in globals())", clear_context=True)).succeeded().stdout, "False\n", "cleared")
    expect(result_of(helper.execute_code("console.log(1)", language="javascript")).succeeded().stdout, "1\n", "javascript")
    code = "const x: number = 1; console.log(x)"
    expect(result_of(helper.execute_code(code, language="typescript")).succeeded().stdout, "1\n", "typescript")
    expect(result_of(helper.execute_command("echo 1")).succeeded().stdout, "1\n", "a command")


def it_moves_files():
    result_of(helper.upload_file("data.csv", "a,b\n1,2\n", description="Numbers")).succeeded()
    result_of(helper.upload_files([{"path": "x/é.txt", "content": "é"}, {"path": "x/raw", "content": b"\xff\x00"}])).succeeded()
    expect(helper.download_file("data.csv"), "a,b\n1,2\n", "a file")
    expect(helper.download_file("x/raw"), b"\xff\x00", "bytes")
    expect(set(helper.download_files(["data.csv", "x/raw"]).values()), {"a,b\n1,2\n", b"\xff\x00"}, "two files")
    try:
        helper.download_file("missing")
    except FileNotFoundError:
        return
    check(False, "a missing file is FileNotFoundError")


def it_clears_and_stops():
    helper.clear_context()
    check(helper.stop(), "it is stopped")


def its_context_manager_opens_a_session_of_its_own():
    with code_session(REGION) as session:
        expect(result_of(session.execute_code("print('inside')")).succeeded().stdout, "inside\n", "code")


def it_asks_for_interpreters():
    expect(helper.get_code_interpreter("aws.codeinterpreter.v1")["status"], "READY", "the default interpreter")
    listed = helper.list_code_interpreters(interpreter_type="SYSTEM")["codeInterpreterSummaries"]
    expect([item["codeInterpreterId"] for item in listed], ["aws.codeinterpreter.v1"], "interpreters of the system")


tell(
    [
        it_starts_a_session,
        it_runs_code_in_every_language,
        it_moves_files,
        it_clears_and_stops,
        its_context_manager_opens_a_session_of_its_own,
        it_asks_for_interpreters,
    ]
)
