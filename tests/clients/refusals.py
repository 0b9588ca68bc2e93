"""Bad input, and what is not here: each is refused by the right name, with a message that says what to do."""

import json
import os
from datetime import timedelta

from botocore.awsrequest import AWSRequest
from client import (
    DEFAULT,
    ENDPOINT,
    Session,
    check,
    control_client,
    data_client,
    expect,
    invalid,
    other_tenant,
    refused,
    send,
    session_path,
    signed,
    tell,
)

client = data_client()
control = control_client()
INVOKE = f"/code-interpreters/{DEFAULT}/tools/invoke"
MISSING = "0123456789abcdef0123456789abcdef"
ROLE = "arn:aws:iam::000000000000:role/x"
CERTIFICATES = [{"location": {"secretsManager": {"secretArn": "arn:aws:secretsmanager:eu-central-1:000000000000:secret:x"}}}]
FILE_SYSTEMS = [
    {
        "efsConfiguration": {
            "accessPointArn": "arn:aws:elasticfilesystem:eu-central-1:000000000000:access-point/fsap-01234567",
            "fileSystemArn": "arn:aws:elasticfilesystem:eu-central-1:000000000000:file-system/fs-01234567",
            "mountPath": "/mnt/data",
        }
    }
]


def list_sessions(client, interpreter=DEFAULT, **parameters):
    return client.list_code_interpreter_sessions(codeInterpreterIdentifier=interpreter, **parameters)


def start(client=client, interpreter=DEFAULT, **parameters):
    return client.start_code_interpreter_session(codeInterpreterIdentifier=interpreter, **parameters)


def invoke(tool, session=MISSING, client=client, interpreter=DEFAULT, **arguments):
    return client.invoke_code_interpreter(codeInterpreterIdentifier=interpreter, sessionId=session, name=tool, arguments=arguments)


def a_wrong_secret_is_refused():
    wrong = data_client(os.environ["AWS_ACCESS_KEY_ID"], "x" * 40)
    refused("InvalidSignatureException", 403, lambda: list_sessions(wrong), "signature we calculated does not match")


def an_unknown_key_is_refused():
    unknown = data_client("CWAKAAAAAAAAAAAAAAAA", "x" * 40)
    refused("UnrecognizedClientException", 403, lambda: list_sessions(unknown), "access key id is unknown")
    with_token = data_client(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], "token")
    refused("UnrecognizedClientException", 403, lambda: list_sessions(with_token), "no session tokens")


def a_stale_clock_is_refused_both_ways():
    for minutes, said in [(-6, "signature expired"), (6, "signature not yet current")]:
        answer = signed("POST", session_path("list"), b"{}", shift=timedelta(minutes=minutes))
        answer.refused("InvalidSignatureException", 403, said)
    for minutes in [-4, 4]:
        answer = signed("POST", session_path("list"), b"{}", shift=timedelta(minutes=minutes))
        expect(answer.status, 200, f"{minutes} minutes off")


def requests_that_are_not_signed_so_are_refused():
    plain = AWSRequest("POST", ENDPOINT + session_path("list"), data=b"{}")
    send(plain).refused("MissingAuthenticationTokenException", 403, "Signature Version 4")
    answer = signed("POST", session_path("list"), b"{}", service="s3")
    answer.refused("InvalidSignatureException", 403, "bedrock-agentcore")


def paths_and_methods_that_nobody_has_are_refused():
    signed("GET", "/browsers").refused("UnknownOperationException", 404)
    signed("GET", session_path("start")).refused("UnknownOperationException", 405, "PUT")


def bodies_that_are_no_requests_are_refused():
    for body in [b"", b"{", b"[]", b"null", b'"x"', b'{"name": "a\xff"}']:
        answer = signed("POST", INVOKE, body, {"x-amzn-code-interpreter-session-id": MISSING})
        expect((answer.status, answer.error), (400, "ValidationException"), f"the answer to {body!r}")
        expect(answer.json()["reason"] in ("CannotParse", "FieldValidationFailed"), True, f"the reason for {body!r}")
    signed("PUT", session_path("start"), b'{"sessionTimeoutSeconds": ').refused("ValidationException", 400, reason="CannotParse")
    signed("PUT", session_path("start"), b'{"sessionTimeoutSeconds": "60"}').refused("ValidationException", 400)


def tools_and_arguments_that_nobody_knows_are_refused():
    invalid(lambda: invoke("fly"), "name", contains="executeCode")
    invalid(lambda: invoke("executeCode"), "arguments.code")
    invalid(lambda: invoke("executeCode", code="1", language="cobol"), "arguments.language", contains="python")
    invalid(lambda: invoke("executeCode", code="1", language="javascript", runtime="deno"), "arguments.runtime", contains="deno")
    invalid(lambda: invoke("executeCode", code="1", language="python", runtime="nodejs"), "arguments.runtime")
    invalid(lambda: invoke("readFiles"), "arguments.paths")
    files = [{"path": "a"}, {"path": "b", "text": "x", "blob": b"x"}]
    invalid(lambda: invoke("writeFiles", content=files), "arguments.content[0]", "arguments.content[1]")
    without_session = {"codeInterpreterIdentifier": DEFAULT, "name": "executeCode", "arguments": {"code": "1"}}
    invalid(lambda: client.invoke_code_interpreter(**without_session), "sessionId", contains="StartCodeInterpreterSession")


def sessions_cannot_be_started_with_what_is_wrong():
    signed("PUT", session_path("start"), b'{"sessionTimeoutSeconds": 0}').refused(
        "ValidationException", 400, "1 to 28800", "FieldValidationFailed", ["sessionTimeoutSeconds"]
    )
    invalid(lambda: start(sessionTimeoutSeconds=28_801), "sessionTimeoutSeconds", contains="28800")
    signed("PUT", session_path("start"), json.dumps({"name": "x" * 101, "clientToken": "short"}).encode()).refused(
        "ValidationException", 400, "", "FieldValidationFailed", ["name", "clientToken"]
    )
    invalid(lambda: list_sessions(client, nextToken="made-up"), "nextToken")


def what_only_aws_has_is_refused_by_its_name():
    invalid(lambda: start(certificates=CERTIFICATES), "certificates", contains="not supported")
    invalid(lambda: start(filesystemConfigurations=FILE_SYSTEMS), "filesystemConfigurations", contains="not supported")

    def create(network=None, **parameters):
        network = network or {"networkMode": "SANDBOX"}
        return lambda: control.create_code_interpreter(name="refused", networkConfiguration=network, **parameters)

    invalid(create(executionRoleArn=ROLE), "executionRoleArn")
    invalid(create(certificates=CERTIFICATES), "certificates")
    invalid(create(filesystemConfigurations=FILE_SYSTEMS), "filesystemConfigurations")
    vpc = {"networkMode": "VPC", "vpcConfig": {"securityGroups": ["sg-01234567"], "subnets": ["subnet-01234567"]}}
    invalid(create(vpc), "networkConfiguration.vpcConfig", "networkConfiguration.networkMode")
    invalid(create({"networkMode": "PUBLIC"}), "networkConfiguration.networkMode", contains="SANDBOX")


def interpreters_that_nobody_has_are_not_found():
    unknown = "unknown-0123456789"
    arn = f"arn:aws:bedrock-agentcore:eu-central-1:000000000000:code-interpreter-custom/{unknown}"
    for identifier in [unknown, arn]:
        refused("ResourceNotFoundException", 404, lambda: start(interpreter=identifier), unknown)
        refused("ResourceNotFoundException", 404, lambda: list_sessions(client, identifier), unknown)
        refused("ResourceNotFoundException", 404, lambda: invoke("listFiles", interpreter=identifier), unknown)
        refused("ResourceNotFoundException", 404, lambda: control.get_code_interpreter(codeInterpreterId=unknown), unknown)
        refused("ResourceNotFoundException", 404, lambda: control.delete_code_interpreter(codeInterpreterId=unknown), unknown)
    invalid(lambda: start(interpreter="no identifier"), "codeInterpreterIdentifier")
    refused("AccessDeniedException", 403, lambda: control.delete_code_interpreter(codeInterpreterId=DEFAULT))


def a_session_of_another_tenant_looks_like_one_that_never_was():
    verbs = {
        "get": lambda id: client.get_code_interpreter_session(codeInterpreterIdentifier=DEFAULT, sessionId=id),
        "stop": lambda id: client.stop_code_interpreter_session(codeInterpreterIdentifier=DEFAULT, sessionId=id),
        "code": lambda id: invoke("executeCode", id, code="1"),
        "command": lambda id: invoke("executeCommand", id, command="true"),
        "files": lambda id: invoke("listFiles", id),
    }
    with Session(other_tenant()) as foreign:
        expect(foreign.python("print(1)"), "1\n", "the other tenant's session")
        for name, verb in verbs.items():
            message = refused("ResourceNotFoundException", 404, lambda: verb(foreign.id))
            never = refused("ResourceNotFoundException", 404, lambda: verb(MISSING))
            expect(message.replace(foreign.id, "ID"), never.replace(MISSING, "ID"), f"{name}: both messages")
        listed = [item["sessionId"] for item in list_sessions(client)["items"]]
        check(foreign.id not in listed, "it is not listed", listed)
        expect(foreign.get()["status"], "READY", "and nothing happened to it")


tell(
    [
        a_wrong_secret_is_refused,
        an_unknown_key_is_refused,
        a_stale_clock_is_refused_both_ways,
        requests_that_are_not_signed_so_are_refused,
        paths_and_methods_that_nobody_has_are_refused,
        bodies_that_are_no_requests_are_refused,
        tools_and_arguments_that_nobody_knows_are_refused,
        sessions_cannot_be_started_with_what_is_wrong,
        what_only_aws_has_is_refused_by_its_name,
        interpreters_that_nobody_has_are_not_found,
        a_session_of_another_tenant_looks_like_one_that_never_was,
    ]
)
