"""Interpreters of one's own: create, get, list, delete, and a session in one."""

import time

from client import DEFAULT, Session, check, control_client, expect, invalid, refused, tell, token

control = control_client()
once = token()
SANDBOX = {"networkMode": "SANDBOX"}
created = {}


def create(**parameters):
    return control.create_code_interpreter(networkConfiguration=SANDBOX, clientToken=once, **parameters)


def get(identifier):
    return control.get_code_interpreter(codeInterpreterId=identifier)


def listed(**parameters):
    items, page = [], {}
    while True:
        answer = control.list_code_interpreters(**parameters, **page)
        items += answer["codeInterpreterSummaries"]
        if "nextToken" not in answer:
            return [item["codeInterpreterId"] for item in items]
        page = {"nextToken": answer["nextToken"]}


def everybody_has_the_systems_interpreter():
    got = get(DEFAULT)
    expect((got["codeInterpreterId"], got["status"]), (DEFAULT, "READY"), "the interpreter")
    expect(got["networkConfiguration"], SANDBOX, "its network")
    check(got["codeInterpreterArn"].endswith(f":code-interpreter/{DEFAULT}"), "its ARN", got["codeInterpreterArn"])
    expect(listed(type="SYSTEM"), [DEFAULT], "the interpreters of the system")


def an_interpreter_is_created_once():
    created.update(create(name="my_own", description="For tests", tags={"team": "tests"}))
    expect(created["ResponseMetadata"]["HTTPStatusCode"], 202, "the status")
    identifier = created["codeInterpreterId"]
    check(identifier.startswith("my_own-") and len(identifier) == len("my_own-") + 10, "the form of its id", identifier)
    again = create(name="my_own", description="For tests", tags={"team": "tests"})
    expect(again["codeInterpreterId"], identifier, "the interpreter of the same token")
    invalid(lambda: create(name="my_own", description="Another"), reason="IdempotentParameterMismatchException")


def it_becomes_ready_and_is_listed():
    identifier = created["codeInterpreterId"]
    for _ in range(300):
        got = get(identifier)
        if got["status"] != "CREATING":
            break
        time.sleep(0.2)
    expect((got["status"], got["name"], got["description"]), ("READY", "my_own", "For tests"), "what get tells")
    expect(got["codeInterpreterArn"], created["codeInterpreterArn"], "its ARN")
    expect(listed(type="CUSTOM"), [identifier], "the interpreters of one's own")
    expect(set(listed()), {identifier, DEFAULT}, "all interpreters")
    expect(listed(maxResults=1), listed(), "page by page")


def sessions_are_opened_by_its_id_and_its_arn():
    with Session(interpreter=created["codeInterpreterArn"]) as session:
        expect(session.started["codeInterpreterIdentifier"], created["codeInterpreterArn"], "the identifier as it was given")
        expect(session.python("print('mine')"), "mine\n", "code")
        session.interpreter = created["codeInterpreterId"]
        expect(session.python("print('by id')"), "by id\n", "code")
        session.interpreter = DEFAULT
        refused("ResourceNotFoundException", 404, session.get, "is not active")
        session.interpreter = created["codeInterpreterId"]
        # Nobody could stop the session any more.
        delete = lambda: control.delete_code_interpreter(codeInterpreterId=session.interpreter)
        refused("ConflictException", 409, delete, "stop them first")


def a_deleted_interpreter_is_gone():
    identifier = created["codeInterpreterId"]
    answer = control.delete_code_interpreter(codeInterpreterId=identifier, clientToken=token())
    expect(answer["ResponseMetadata"]["HTTPStatusCode"], 202, "the status")
    expect((answer["codeInterpreterId"], answer["status"]), (identifier, "DELETING"), "what delete tells")
    for _ in range(300):
        if identifier not in listed():
            break
        time.sleep(0.2)
    refused("ResourceNotFoundException", 404, lambda: get(identifier), identifier)
    refused("ResourceNotFoundException", 404, lambda: Session(interpreter=identifier), identifier)


tell(
    [
        everybody_has_the_systems_interpreter,
        an_interpreter_is_created_once,
        it_becomes_ready_and_is_listed,
        sessions_are_opened_by_its_id_and_its_arn,
        a_deleted_interpreter_is_gone,
    ]
)
