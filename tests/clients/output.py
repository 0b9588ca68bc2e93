"""What code prints and shows: exactly, however much, and whatever it is."""

import hashlib
import json

from client import Session, check, expect, invalid, signed, tell, uri

MEBIBYTE = 1024 * 1024
# The limit of AWS for the body of one call.
MOST = 100_000_000
session = Session(name="output")


def stdout_is_what_was_printed():
    texts = ["", "no line end", "a\r\nb\tc\n", "größe 文件 🦀\n", "\n\n", '"\\ \x00\x1b[31mred\x1b[0m\n']
    for text in texts:
        code = f"import sys\n_ = sys.stdout.write({text!r})"
        expect(session.python(code), text, "python")
        expect(session.run(f"process.stdout.write({json.dumps(text)}); undefined", language="javascript").stdout, text, "javascript")
    result = session.run("import sys\nfor i in range(3):\n    print(i)\n    print(-i, file=sys.stderr)")
    expect((result.stdout, result.stderr), ("0\n1\n2\n", "0\n-1\n-2\n"), "two streams")
    # What a child writes comes by another way, so only its own order is certain.
    printed = session.python("import subprocess\nprint('a', flush=True)\n_ = subprocess.run(['sh', '-c', 'echo b; echo c'])\nprint('d')")
    expect(sorted(printed.splitlines()), ["a", "b", "c", "d"], "what a child prints")
    check(printed.index("b") < printed.index("c"), "in its order", printed)


def pictures_tables_and_json_are_blocks_of_their_own():
    result = session.run("import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()").succeeded()
    (image,) = result.of_type("image")
    expect(image["mimeType"], "image/png", "the type of a plot")
    check(image["data"].startswith(b"\x89PNG\r\n\x1a\n"), "the picture is a PNG", image["data"][:20])

    result = session.run("import pandas as pd\npd.DataFrame({'city': ['Zürich', 'Oslo'], 'people': [434, 717]})").succeeded()
    (table,) = [block["resource"] for block in result.of_type("resource")]
    expect(table["mimeType"], "text/html", "the type of a table")
    check("<table" in table["text"] and "Zürich" in table["text"], "the table", table["text"])
    check("Oslo" in result.text, "people read it as text", result.text)
    expect(result.stdout, "", "what was printed")

    result = session.run("from IPython.display import JSON, Markdown, display\ndisplay(JSON({'a': [1, None]}))\ndisplay(Markdown('*b*'))")
    shown = {block["resource"]["mimeType"]: block["resource"]["text"] for block in result.succeeded().of_type("resource")}
    expect(json.loads(shown["application/json"]), {"a": [1, None]}, "JSON")
    expect(shown["text/markdown"], "*b*", "Markdown")

    result = session.run("({ city: 'Oslo', people: [717] })", language="javascript").succeeded()
    (value,) = [block["resource"] for block in result.of_type("resource")]
    expect((value["mimeType"], json.loads(value["text"])), ("application/json", {"city": "Oslo", "people": [717]}), "a value")


def whole(result, stream, total):
    """Checks how a stream is told that does not travel as it is, and gives the path of the whole of it."""
    (link,) = [block for block in result.of_type("resource_link") if block["name"] == stream]
    expect(link["size"], total, "the size of the whole")
    path = link["uri"].removeprefix("file:///")
    said = [block["text"] for block in result.of_type("text")]
    check(any(str(total) in text and path in text for text in said), "a marker says so", said[-1])
    return path


def cut(result, stream, total):
    """The same for one that is longer than a mebibyte."""
    check(len(result.structured[stream].encode()) <= MEBIBYTE, "at most a mebibyte travels", len(result.structured[stream]))
    return whole(result, stream, total)


def output_of_more_than_a_mebibyte_is_marked_and_whole_in_a_file():
    whole = "".join(f"{number}\n" for number in range(250_000))
    result = session.run("for number in range(250_000):\n    print(number)").succeeded()
    path = cut(result, "stdout", len(whole))
    check(whole.startswith(result.stdout), "what travels is the beginning", result.stdout[-100:])
    check(len(result.stdout) > MEBIBYTE - 10, "and not less than that", len(result.stdout))
    expect(session.read(path), {uri(path): whole}, "the whole")
    short = session.run(f"print('x' * ({MEBIBYTE} - 1))").succeeded()
    expect((len(short.stdout), short.of_type("resource_link")), (MEBIBYTE, []), "exactly a mebibyte is not cut")


def a_hundred_megabytes_arrive_whole_in_the_file():
    line = "0123456789" * 100
    result = session.run(f"for _ in range(100_000):\n    print({line[:-1]!r})").succeeded()
    path = cut(result, "stdout", MOST)
    wanted = hashlib.sha256((line[:-1] + "\n").encode() * 100_000).hexdigest()
    expect(session.command(f"sha256sum < {path}; wc -c < {path}").stdout, f"{wanted}  -\n{MOST}\n", "the file")
    result = session.invoke("readFiles", paths=[path])
    result.failed(str(MOST))
    parts = hashlib.sha256()
    for number in range(10):
        session.command(f"tail -c +{number * 10_000_000 + 1} {path} | head -c 10000000 > part").succeeded()
        (part,) = session.read("part").values()
        parts.update(part.encode())
    expect(parts.hexdigest(), wanted, "the whole, read in parts")
    session.invoke("removeFiles", paths=[path, "part"]).succeeded()

    result = session.command(f"head -c {MOST} /dev/zero | tr '\\0' x >&2").succeeded()
    path = cut(result, "stderr", MOST)
    expect(session.command(f"wc -c < {path}").stdout, f"{MOST}\n", "the file of a command's stderr")
    session.invoke("removeFiles", paths=[path]).succeeded()


def noise_is_answered():
    result = session.run("import os, sys\n_ = os.write(1, bytes(range(256)) * 10)\n_ = sys.stdout.write('end\\n')").succeeded()
    check("end\n" in result.stdout, "what is no noise", result.stdout[-20:])
    result = session.command("head -c 300000 /dev/urandom; echo; echo end").succeeded()
    check(result.stdout.endswith("\nend\n"), "what follows noise", result.stdout[-20:])
    whole(result, "stdout", 300_005)
    result = session.command(r"printf '\xff\xfeA\n'").succeeded()
    path = whole(result, "stdout", 4)
    expect((result.stdout, session.read(path)), ("\ufffd\ufffdA\n", {uri(path): b"\xff\xfeA\n"}), "a short one")
    code = "process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0x41, 0x0a])); undefined"
    result = session.run(code, language="javascript").succeeded()
    expect(result.stdout, "\ufffd\ufffd\x00A\n", "bytes that are no UTF-8")


def write_request(size):
    """A request of this many bytes that writes a file of all that has room in it."""
    head = b'{"name":"writeFiles","arguments":{"content":[{"path":"large","text":"'
    tail = b'"}]}}'
    body = head + b"x" * (size - len(head) - len(tail)) + tail
    path = f"/code-interpreters/{session.interpreter}/tools/invoke"
    return len(body) - len(head) - len(tail), signed("POST", path, body, {"x-amzn-code-interpreter-session-id": session.id})


def a_body_has_at_most_a_hundred_million_bytes():
    written, answer = write_request(MOST)
    answer.result().succeeded()
    expect(session.command("wc -c < large").stdout, f"{written}\n", "what was written")
    session.invoke("removeFiles", paths=["large"]).succeeded()
    _, answer = write_request(MOST + 1)
    answer.refused("ValidationException", 400, str(MOST), "FieldValidationFailed")
    # The same by boto3, which makes a little more of it.
    invalid(lambda: session.write({"large": "x" * MOST}), contains=str(MOST))


with session:
    tell(
        [
            stdout_is_what_was_printed,
            pictures_tables_and_json_are_blocks_of_their_own,
            output_of_more_than_a_mebibyte_is_marked_and_whole_in_a_file,
            noise_is_answered,
            a_hundred_megabytes_arrive_whole_in_the_file,
            a_body_has_at_most_a_hundred_million_bytes,
        ]
    )
