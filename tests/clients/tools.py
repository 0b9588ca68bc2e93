"""Every tool of the API, with real results."""

import time
import uuid

from client import Session, check, data_client, expect, invalid, invoke_by_hand, tell, uri

session = Session(name="all tools")

NAMES = {
    "plain.txt": "plain\n",
    "with space.txt": "a space\n",
    "100%.txt": "a percent sign\n",
    "%41.txt": "what looks like an escape\n",
    "#1?.txt": "a fragment and a query\n",
    "größe/文件 🦀.txt": "größe 文件 🦀\n",
    "sub/folder/binary.bin": bytes(range(256)),
    "invalid.txt": b"\xff\xfe no UTF-8",
    "empty": "",
    "empty.bin": b"",
}


def code_runs_in_the_session():
    result = session.run("print('hello'); 6 * 7", language="python").succeeded()
    expect((result.stdout, result.stderr, result.exit_code), ("hello\n", "", 0), "the streams")
    check("42" in result.text, "the text has the value of the last expression", result.text)
    took = result.structured["executionTime"]
    check(0 < took < 30, "executionTime is in seconds", took)


def an_exception_is_a_result_with_its_traceback():
    result = session.run("def f():\n    raise ValueError('no such thing')\nf()")
    result.failed("Traceback", "ValueError: no such thing")
    expect(result.exit_code, 1, "the exit code")
    check("ValueError" in result.stderr, "stderr has the traceback", result.stderr)
    check("\x1b[" not in result.stderr, "there are no colours", result.stderr)


def commands_have_their_own_exit_codes():
    result = session.command("echo out; echo err >&2; exit 3")
    result.failed("out", "err")
    expect((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 3), "the command")
    result = session.command("for name in a b; do\n  printf '%s\\n' \"$name\"\ndone | sort -r").succeeded()
    expect((result.stdout, result.exit_code), ("b\na\n", 0), "a pipe over several lines")
    expect(session.command("no-such-program").exit_code, 127, "a program that is missing")
    expect(session.command("id -u").stdout, "65532\n", "the user")


def files_are_written_and_read_with_exact_uris():
    result = session.write(NAMES).succeeded()
    check(result.structured == {}, "writeFiles has no structured content", result.structured)
    check(f"{len(NAMES)} files" in result.text, "it says how many", result.text)
    expected = {}
    for path, contents in NAMES.items():
        if isinstance(contents, bytes):
            # Bytes that are text come back as text.
            try:
                contents = contents.decode()
            except UnicodeDecodeError:
                pass
        expected[uri(path)] = contents
    expect(session.read(*NAMES), expected, "what is read is what was written")
    expect(session.read("./plain.txt"), {uri("./plain.txt"): "plain\n"}, "the URI is that of the path as it was asked for")
    code = "import pathlib\nprint(pathlib.Path('sub/folder/binary.bin').read_bytes() == bytes(range(256)))"
    expect(session.python(code), "True\n", "code sees the same files")
    expect(session.command("cat 'with space.txt'").stdout, "a space\n", "and so do commands")


def several_files_are_written_all_or_none():
    session.write({"file": "x"}).succeeded()
    session.write({"first": "1", "file/below": "2", "third": "3"}).failed("file")
    session.invoke("readFiles", paths=["first"]).failed("first")
    session.invoke("readFiles", paths=["third"]).failed("third")


def a_missing_file_is_named_and_the_others_are_read():
    result = session.invoke("readFiles", paths=["plain.txt", "no such file"])
    result.failed("no such file")
    expect([block["resource"]["text"] for block in result.of_type("resource")], ["plain\n"], "the file that is there")


def folders_are_listed_by_either_spelling_and_by_none():
    def names(**arguments):
        result = session.invoke("listFiles", **arguments).succeeded()
        expect([block["type"] for block in result.content], ["resource_link"] * len(result.content), "the blocks")
        return {block["name"]: block for block in result.content}

    root = names()
    check({"plain.txt", "with space.txt", "#1?.txt", "größe", "sub", "empty"} <= set(root), "the root", sorted(root))
    expect(root["plain.txt"]["uri"], uri("plain.txt"), "the URI")
    expect(root["plain.txt"]["size"], 6, "the size")
    expect(root["#1?.txt"]["uri"], uri("#1?.txt"), "the URI of an unusual name")
    check("size" not in root["sub"], "a folder has no size", root["sub"])
    expect(names(path="."), root, "path")
    expect(names(directoryPath=""), root, "directoryPath")
    expect(list(names(path="sub/folder", directoryPath="sub/folder")), ["binary.bin"], "both spellings at once")
    invalid(lambda: names(path="sub", directoryPath="größe"), "arguments.directoryPath")
    session.invoke("listFiles", path="no such folder").failed("no such folder")


def files_and_folders_are_removed():
    result = session.invoke("removeFiles", paths=["with space.txt", "sub"]).succeeded()
    check("2 paths" in result.text, "it says how many", result.text)
    expect(session.command("ls -d 'with space.txt' sub 2>/dev/null | wc -l").stdout, "0\n", "what is left")
    session.invoke("removeFiles", paths=["plain.txt", "no such file"]).failed("no such file")
    expect(session.read("plain.txt"), {uri("plain.txt"): "plain\n"}, "then nothing was removed")


def no_path_leaves_the_session():
    for path in ["../x", "/etc/passwd", "a/../../x", ""]:
        invalid(lambda path=path: session.write({path: "x"}), "arguments.content[0].path")
    session.python("import os\nos.symlink('/etc', 'out'); os.symlink('/etc/passwd', 'file-out')")
    for path in ["../x", "/etc/passwd", "out/passwd", "file-out"]:
        invalid(lambda path=path: session.read(path), "arguments", contains=path)
    for path in ["..", "/", "out"]:
        invalid(lambda path=path: session.invoke("listFiles", path=path), "arguments", contains=path)
    for path in ["../x", "/", "out/passwd", "."]:
        invalid(lambda path=path: session.invoke("removeFiles", paths=[path]), "arguments")
    invalid(lambda: session.write({"out/x": "x"}), "arguments", contains="out")
    # The link itself may go, and what it points to stays.
    session.invoke("removeFiles", paths=["out", "file-out"]).succeeded()
    expect(session.command("test -f /etc/passwd").exit_code, 0, "the file outside")


def until(task, wanted):
    for _ in range(200):
        result = session.invoke("getTask", taskId=task)
        status = result.structured["taskStatus"]
        check(status in ("submitted", "working", wanted), f"the task becomes {wanted}", result.structured)
        if status == wanted:
            return result
        time.sleep(0.1)
    check(False, f"the task becomes {wanted}", result.structured)


def start(command):
    result = session.invoke("startCommandExecution", command=command).succeeded()
    check(result.structured["taskStatus"] in ("submitted", "working"), "it has begun", result.structured)
    uuid.UUID(result.structured["taskId"])
    return result.structured["taskId"]


def commands_run_in_the_background():
    task = start("echo one; sleep 1; echo two; echo err >&2")
    expect(session.python("print('meanwhile')"), "meanwhile\n", "the session is free")
    result = until(task, "completed")
    expect((result.stdout, result.stderr, result.exit_code), ("one\ntwo\n", "err\n", 0), "what it told")
    check(result.structured["executionTime"] >= 1, "its time", result.structured)
    expect(until(task, "completed").structured, result.structured, "asking again changes nothing")
    failed = until(start("echo before; exit 4"), "failed").failed("before")
    expect(failed.exit_code, 4, "the exit code of one that failed")


def tasks_are_stopped_and_only_once():
    task = start("sleep 300")
    session.invoke("stopTask", taskId=task).succeeded()
    result = until(task, "canceled")
    expect((result.is_error, result.exit_code), (False, None), "what was stopped did not fail")
    session.invoke("stopTask", taskId=task).failed("ended")
    session.invoke("getTask", taskId=str(uuid.uuid4())).failed("no task")
    invalid(lambda: session.invoke("getTask", taskId="../status"), "arguments.taskId")
    sleeping = "import glob\nprint(sum(b'sleep\\x00300' in open(path, 'rb').read() for path in glob.glob('/proc/[0-9]*/cmdline')))"
    expect(session.python(sleeping), "0\n", "what is left of it")


def a_call_that_the_sdk_repeats_runs_once():
    impatient = data_client(read_timeout=2, retries={"total_max_attempts": 5})
    code = "import time\nopen('log', 'a').write('ran\\n')\nprint('begun')\ntime.sleep(4)\nprint('done')"
    result = session.invoke("executeCode", client=impatient, code=code).succeeded()
    expect(result.stdout, "begun\ndone\n", "the answer to the repeated call is the whole one")
    expect(session.read("log"), {uri("log"): "ran\n"}, "how often it ran")
    command = "echo ran >> log-of-commands; sleep 4; echo done"
    result = session.invoke("executeCommand", client=impatient, command=command).succeeded()
    expect(result.stdout, "done\n", "a command's answer")
    expect(session.read("log-of-commands"), {uri("log-of-commands"): "ran\n"}, "how often the command ran")


def an_invocation_id_stands_for_one_call():
    name = str(uuid.uuid4())
    code = {"code": "open('counter', 'a').write('x'); print(open('counter').read())"}
    first = invoke_by_hand(session, "executeCode", code, amz_sdk_invocation_id=name).result().succeeded()
    again = invoke_by_hand(session, "executeCode", code, amz_sdk_invocation_id=name).result().succeeded()
    expect((first.stdout, again.stdout), ("x\n", "x\n"), "both answers")
    other = invoke_by_hand(session, "executeCode", {"code": "print(1)"}, amz_sdk_invocation_id=name)
    other.refused("ValidationException", 400, reason="IdempotentParameterMismatchException")


with session:
    tell(
        [
            code_runs_in_the_session,
            an_exception_is_a_result_with_its_traceback,
            commands_have_their_own_exit_codes,
            files_are_written_and_read_with_exact_uris,
            several_files_are_written_all_or_none,
            a_missing_file_is_named_and_the_others_are_read,
            folders_are_listed_by_either_spelling_and_by_none,
            files_and_folders_are_removed,
            no_path_leaves_the_session,
            commands_run_in_the_background,
            tasks_are_stopped_and_only_once,
            a_call_that_the_sdk_repeats_runs_once,
            an_invocation_id_stands_for_one_call,
        ]
    )
