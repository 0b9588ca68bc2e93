"""What the programs beside this one share: clients as their users make them, and checks that end a program at the first wrong thing.

ENDPOINT and AWS's own variables say where the gateway is and whose key is used. OTHER_ACCESS_KEY_ID and OTHER_SECRET_ACCESS_KEY are the
key of another tenant.
"""

import json
import os
import sys
import time
import traceback
import uuid
from datetime import timedelta
from urllib.parse import quote

import boto3
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

ENDPOINT = os.environ["ENDPOINT"]
REGION = os.environ["AWS_REGION"]
DEFAULT = "aws.codeinterpreter.v1"
# A call that fails is not hidden by one that is repeated.
ONCE = {"total_max_attempts": 1}


class Wrong(Exception):
    """Something is not as it should be."""


def expect(actual, expected, what):
    """Fails unless both are equal."""
    if actual != expected:
        raise Wrong(f"{what}: it should be {short(expected)}, and is {short(actual)}")


def check(holds, what, shown=""):
    """Fails unless it holds."""
    if not holds:
        raise Wrong(f"{what}: {short(shown)}")


def short(value):
    text = repr(value)
    return text if len(text) <= 2000 else f"{text[:1000]} … {text[-900:]}"


def tell(steps):
    """Runs the steps of a program, each a function whose name says what it shows."""
    for step in steps:
        began = time.monotonic()
        name = step.__name__.replace("_", " ")
        try:
            step()
        except Wrong as wrong:
            sys.exit(f"WRONG: {name}: {wrong}")
        except Exception:
            traceback.print_exc()
            sys.exit(f"WRONG: {name}: an error that was not expected")
        print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)


def data_client(access_key=None, secret=None, token=None, **config):
    """The client of sessions."""
    return client("bedrock-agentcore", access_key, secret, token, **config)


def control_client(access_key=None, secret=None, **config):
    """The client of interpreters."""
    return client("bedrock-agentcore-control", access_key, secret, None, **config)


def client(service, access_key, secret, token, **config):
    config = {"retries": ONCE, "read_timeout": 300, **config}
    return boto3.client(
        service,
        endpoint_url=ENDPOINT,
        region_name=REGION,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(**config),
    )


def other_tenant():
    """The client of another tenant."""
    return data_client(os.environ["OTHER_ACCESS_KEY_ID"], os.environ["OTHER_SECRET_ACCESS_KEY"])


class Result:
    """What a tool answered: its events put together."""

    def __init__(self, events):
        self.events = events
        check(events, "a stream without any result is no answer")
        self.content = [block for event in events for block in event["content"]]
        self.structured = dict(events[-1].get("structuredContent", {}))
        for stream in ("stdout", "stderr"):
            parts = [event["structuredContent"][stream] for event in events if stream in event.get("structuredContent", {})]
            if parts:
                self.structured[stream] = "".join(parts)
        check("isError" in events[-1], "isError is always there", events[-1])
        self.is_error = events[-1]["isError"]

    stdout = property(lambda self: self.structured.get("stdout"))
    stderr = property(lambda self: self.structured.get("stderr"))
    exit_code = property(lambda self: self.structured.get("exitCode"))
    text = property(lambda self: "".join(block["text"] for block in self.content if block["type"] == "text"))

    def of_type(self, kind):
        return [block for block in self.content if block["type"] == kind]

    def succeeded(self, what="the tool"):
        check(self.is_error is False, f"{what} succeeds", (self.text, self.structured))
        return self

    def failed(self, *words):
        check(self.is_error is True, "the tool fails", (self.text, self.structured))
        said = self.text + (self.stderr or "")
        for word in words:
            check(word in said, f"the failure names {word!r}", said)
        return self


class Session:
    """A session, started when it is made and stopped at the end of its `with` block."""

    def __init__(self, client=None, interpreter=DEFAULT, **parameters):
        self.client = client or data_client()
        self.interpreter = interpreter
        # A start may wait for a pod longer than one call does; the SDK repeats it, with its client token.
        starter = client or data_client(retries={"total_max_attempts": 4})
        self.started = starter.start_code_interpreter_session(codeInterpreterIdentifier=interpreter, **parameters)
        self.id = self.started["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        except ClientError:
            pass

    def stop(self, **parameters):
        return self.client.stop_code_interpreter_session(**self.named(), **parameters)

    def get(self):
        return self.client.get_code_interpreter_session(**self.named())

    def named(self):
        return {"codeInterpreterIdentifier": self.interpreter, "sessionId": self.id}

    def invoke(self, tool, client=None, **arguments):
        answer = (client or self.client).invoke_code_interpreter(**self.named(), name=tool, arguments=arguments)
        expect(answer["sessionId"], self.id, "the answer's session")
        events = list(answer["stream"])
        for event in events:
            expect(list(event), ["result"], "members of an event")
        return Result([event["result"] for event in events])

    def run(self, code, **arguments):
        return self.invoke("executeCode", code=code, **arguments)

    def python(self, code):
        """What Python code prints, which must succeed."""
        return self.run(code).succeeded(code).stdout

    def command(self, command):
        return self.invoke("executeCommand", command=command)

    def write(self, files):
        content = [{"path": path, "blob" if isinstance(contents, bytes) else "text": contents} for path, contents in files.items()]
        return self.invoke("writeFiles", content=content)

    def read(self, *paths):
        """Contents by URI: text, or bytes where there is no text."""
        result = self.invoke("readFiles", paths=list(paths)).succeeded("reading")
        files = {}
        for block in result.of_type("resource"):
            resource = block["resource"]
            check(("text" in resource) != ("blob" in resource), "exactly one of text and blob", list(resource))
            files[resource["uri"]] = resource.get("text", resource.get("blob"))
        return files


def uri(path):
    """As RFC 3986 has it."""
    return "file:///" + quote(path, safe="/-._~")


def refused(name, status, call, contains="", reason=None, fields=None):
    """Makes a call that the service must refuse in this way; gives its message."""
    try:
        answer = call()
    except ClientError as error:
        response = error.response
    else:
        raise Wrong(f"{name} {status} was expected, and the call succeeded: {short(answer)}")
    actual = (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"])
    message = response["Error"]["Message"]
    expect(actual, (name, status), f"the error ({message})")
    told(message, contains, response, reason, fields)
    return message


def told(message, contains, body, reason, fields):
    check(message != "", "an error has a message", body)
    check(contains in message, f"the message names {contains!r}", message)
    if reason is not None:
        expect(body.get("reason"), reason, f"the reason ({message})")
    if fields is not None:
        expect([field["name"] for field in body.get("fieldList", [])], fields, f"the fields ({message})")


def invalid(call, *fields, contains="", reason="FieldValidationFailed"):
    """Makes a call that is refused for these of its members."""
    return refused("ValidationException", 400, call, contains, reason, list(fields))


def not_active(call, session):
    """Makes a call for which the session is gone."""
    message = refused("ResourceNotFoundException", 404, call, "is not active")
    check(session in message, "the message names the session", message)
    return message


def token():
    return str(uuid.uuid4())


class Answer:
    """The answer to a request that was signed by hand."""

    def __init__(self, response):
        self.status = response.status_code
        self.error = response.headers.get("x-amzn-errortype")
        self.content = response.content

    def json(self):
        return json.loads(self.content)

    def result(self):
        expect(self.status, 200, f"the status ({self.content[:500]!r})")
        buffer = EventStreamBuffer()
        buffer.add_data(self.content)
        return Result([json.loads(event.payload) for event in buffer])

    def refused(self, name, status, contains="", reason=None, fields=None):
        expect((self.error, self.status), (name, status), f"the error ({self.content[:500]!r})")
        told(self.json()["message"], contains, self.json(), reason, fields)


def signed(method, path, body=b"", headers=None, shift=timedelta(), secret=None, service="bedrock-agentcore"):
    """Sends a request that no SDK would send, signed with botocore."""
    request = AWSRequest(method, ENDPOINT + path, data=body, headers={"content-type": "application/json", **(headers or {})})
    key = Credentials(os.environ["AWS_ACCESS_KEY_ID"], secret or os.environ["AWS_SECRET_ACCESS_KEY"])
    now = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *parameters: now(*parameters) + shift
    try:
        botocore.auth.SigV4Auth(key, service, REGION).add_auth(request)
    finally:
        botocore.auth.get_current_datetime = now
    return send(request)


def send(request):
    return Answer(URLLib3Session(timeout=300).send(request.prepare()))


def session_path(verb, interpreter=DEFAULT):
    return f"/code-interpreters/{interpreter}/sessions/{verb}"


def invoke_by_hand(session, tool, arguments, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return signed(
        "POST",
        f"/code-interpreters/{session.interpreter}/tools/invoke",
        json.dumps({"name": tool, "arguments": arguments}).encode(),
        {"x-amzn-code-interpreter-session-id": session.id, **headers},
    )
