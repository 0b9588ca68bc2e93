"""The three languages: what a session remembers, and what it does when code ends its own process."""

import time

from client import Session, check, expect, tell

one = Session(name="languages")
other = Session(name="another one")

FIRST = {
    "python": "import sys\nword = 'python'\ndef shout(text):\n    return text.upper()\nprint(shout(word), file=sys.stdout)",
    "javascript": "const word = 'javascript';\nfunction shout(text) { return text.toUpperCase(); }\nconsole.log(shout(word));",
    "typescript": "const word: string = 'typescript';\nfunction shout(text: string): string { return text.toUpperCase(); }\nconsole.log(shout(word));",
}
LATER = {
    "python": "print(shout(word + '!'))",
    "javascript": "console.log(shout(word + '!'))",
    "typescript": "console.log(shout(word + '!' as string))",
}
UNDEFINED = {"python": "NameError", "javascript": "ReferenceError", "typescript": "ReferenceError"}


def printed(session, code, language, **arguments):
    result = session.run(code, language=language, **arguments).succeeded(language)
    expect((result.exit_code, result.stderr), (0, ""), f"{language} ends well")
    return result.stdout


def each_language_keeps_its_own_state():
    for language, code in FIRST.items():
        expect(printed(one, code, language), f"{language.upper()}\n", language)
    for language, code in LATER.items():
        expect(printed(one, code, language), f"{language.upper()}!\n", f"{language}, later")


def sessions_never_see_each_other():
    one.write({"secret.txt": "of the first"}).succeeded()
    for language, code in LATER.items():
        other.run(code, language=language).failed(UNDEFINED[language])
    other.invoke("readFiles", paths=["secret.txt"]).failed("secret.txt")
    expect(printed(other, "import os; print(os.path.exists('/workspace/secret.txt'))", "python"), "False\n", "its files")


def errors_of_each_language_have_its_form():
    result = one.run("null.x", language="javascript").failed("TypeError")
    expect(result.exit_code, 1, "the exit code")
    one.run("let x: = 3", language="typescript").failed("SyntaxError")
    one.run("def", language="python").failed("SyntaxError")
    one.run("await Promise.reject(new Error('later'))", language="javascript").failed("Error: later")
    for language, code in LATER.items():
        expect(printed(one, code, language), f"{language.upper()}!\n", f"{language} after an error")


def the_environment_is_each_kernels_own():
    expect(printed(one, "import os; os.environ['MARK'] = 'p'; print(os.environ['MARK'])", "python"), "p\n", "python")
    expect(printed(one, "console.log(process.env.MARK ?? 'none')", "javascript"), "none\n", "javascript")
    expect(printed(one, "import os; print(os.environ['MARK'])", "python"), "p\n", "python, later")
    expect(one.command("echo ${MARK:-none}").stdout, "none\n", "commands")


def runtimes_that_are_here_may_be_named():
    expect(printed(one, "console.log(1)", "javascript", runtime="nodejs"), "1\n", "nodejs")
    expect(printed(one, "print(1)", "python", runtime="python"), "1\n", "python")


def clearing_the_context_forgets_variables_of_one_language_and_no_files():
    expect(printed(one, "print('word' in globals())", "python", clearContext=True), "False\n", "a variable")
    expect(one.read("secret.txt"), {"file:///secret.txt": "of the first"}, "files")
    expect(printed(one, LATER["javascript"], "javascript"), "JAVASCRIPT!\n", "another language")


def code_that_ends_its_process_is_told_and_the_session_goes_on():
    for language, code, exit_code, hello in [
        ("python", "import os\nprint('last words')\nimport time; time.sleep(0.3)\nos._exit(3)", None, "print('again')"),
        ("javascript", "console.log('last words'); process.exit(3)", 1, "console.log('again')"),
    ]:
        result = one.run(code, language=language)
        result.failed()
        # JavaScript's kernel sees it coming, and says what happened as an error.
        expect((result.stdout, result.exit_code), ("last words\n", exit_code), f"{language}: what is known")
        check(result.stderr != "", "it is said what happened", result.structured)
        result = one.run(hello, language=language).succeeded()
        expect(result.stdout, "again\n", f"{language}, in a new process")
    one.run(LATER["python"]).failed("NameError")
    expect(printed(one, LATER["typescript"], "typescript"), "TYPESCRIPT!\n", "other languages are not touched")


def running_out_of_memory_is_told_as_such():
    code = "parts = []\nwhile True:\n    parts.append(b'x' * 16_000_000)"
    began = time.monotonic()
    result = one.run(code).failed("memory")
    expect(result.exit_code, None, "nothing exited by itself")
    check(time.monotonic() - began < 120, "it does not take for ever", time.monotonic() - began)
    expect(one.run("print('again')").succeeded().stdout, "again\n", "the session goes on")
    expect(printed(one, LATER["typescript"], "typescript"), "TYPESCRIPT!\n", "other languages are not touched")


with one, other:
    tell(
        [
            each_language_keeps_its_own_state,
            sessions_never_see_each_other,
            errors_of_each_language_have_its_form,
            the_environment_is_each_kernels_own,
            runtimes_that_are_here_may_be_named,
            clearing_the_context_forgets_variables_of_one_language_and_no_files,
            code_that_ends_its_process_is_told_and_the_session_goes_on,
            running_out_of_memory_is_told_as_such,
        ]
    )
