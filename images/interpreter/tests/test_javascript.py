"""The JavaScript kernel."""

import os
import signal
import unittest
from pathlib import Path

from support import PATIENCE_SECONDS, Kernel, wait_until


class Cells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel("javascript")
        cls.addClassCleanup(cls.kernel.close)

    def test_state_lives_on_and_names_may_be_declared_again(self):
        self.kernel.run("const kept = 1; let other = 2; class Thing {}")
        self.assertEqual(self.kernel.run("const kept = 10; kept + other").text, "12")
        self.assertEqual(self.kernel.run("typeof Thing").text, "'function'")

    def test_await_at_the_top_level(self):
        answer = self.kernel.run("const waited = await new Promise((done) => setTimeout(done, 10, 5)); waited")
        self.assertEqual(answer.text, "5")

    def test_a_cell_without_a_value_has_no_result(self):
        for code in ("undefined", "", "// nothing", "const silent = 1"):
            self.assertEqual((self.kernel.run(code).status, self.kernel.run(code).messages), ("ok", []), code)

    def test_streams_are_kept_apart_and_complete(self):
        answer = self.kernel.run("console.log('a', {b: 1}); console.error('c'); process.stdout.write('d\\n')")
        self.assertEqual((answer.stdout, answer.stderr), ("a { b: 1 }\nd\n", "c\n"))

    def test_child_processes_print_in_order_with_the_cell(self):
        answer = self.kernel.run(
            "console.log(1); require('child_process').execSync('echo 2; echo e >&2', {stdio: 'inherit'}); console.log(3)"
        )
        self.assertEqual((answer.stdout, answer.stderr), ("1\n2\n3\n", "e\n"))

    def test_a_hundred_megabytes_in_small_writes_arrive_whole(self):
        answer = self.kernel.run(
            "for (let i = 0; i < 1_000_000; i++) process.stdout.write(String(i).padStart(99) + '\\n'); 'end'"
        )
        self.assertEqual(answer.stdout, "".join(f"{i:99}\n" for i in range(1_000_000)))
        self.assertEqual(answer.text, "'end'")

    def test_a_hundred_megabytes_in_one_write_arrive_whole(self):
        answer = self.kernel.run("process.stdout.write('z'.repeat(100_000_000)); 0")
        self.assertEqual(len(answer.stdout), 100_000_000)
        self.assertEqual(answer.text, "0")

    def test_output_of_a_busy_loop_is_seen_while_it_runs(self):
        # The loop ends only because somebody who has seen its output says so.
        answer = self.kernel.run(
            "console.log('busy'); while (!require('fs').existsSync('/tmp/seen'));",
            on=("stream", Path("/tmp/seen").touch),
        )
        self.assertEqual((answer.status, answer.stdout), ("ok", "busy\n"))

    def test_noise_and_characters_in_pieces(self):
        answer = self.kernel.run(
            "for (const byte of [0xe2, 0x82, 0xac, 0xff, 0, 0xe2]) process.stdout.write(Buffer.from([byte])); undefined"
        )
        self.assertEqual(answer.stdout, "€\ufffd\0\ufffd")
        self.assertEqual(self.kernel.run("1").text, "1")

    def test_the_stream_ends_for_nobody(self):
        self.kernel.run("process.stdout.end('x'); process.stdout.destroy()")
        self.assertEqual(self.kernel.run("console.log('y')").stdout, "y\n")

    def test_errors_name_their_place_and_nothing_of_the_kernel(self):
        answer = self.kernel.run("function fail() {\n  throw new TypeError('no');\n}\n\nfail()")
        name = f"cell-{answer.reply['execution_count']}.js"
        self.assertEqual((answer.status, answer.reply["ename"], answer.reply["evalue"]), ("error", "TypeError", "no"))
        self.assertEqual(answer.traceback, f"TypeError: no\n    at fail ({name}:2:9)\n    at {name}:5:1")

    def test_errors_of_syntax_are_shown(self):
        answer = self.kernel.run("let fine = 1;\nlet wrong = ;")
        name = f"cell-{answer.reply['execution_count']}.js"
        self.assertEqual(
            answer.traceback, f"{name}:2\nlet wrong = ;\n            ^\nSyntaxError: Unexpected token ';'"
        )

    def test_anything_can_be_thrown(self):
        for code, text in [
            ("throw 'text'", "'text'"),
            ("throw null", "null"),
            ("throw {a: 1}", "{ a: 1 }"),
            ("throw new Proxy({}, {get() { throw 1 }, getPrototypeOf() { throw 2 }})", "{}"),
        ]:
            reply = self.kernel.run(code).reply
            self.assertEqual((reply["ename"], reply["evalue"]), ("Uncaught", text))

    def test_a_cause_and_own_fields_are_told(self):
        answer = self.kernel.run("throw Object.assign(new Error('a', {cause: new Error('b')}), {code: 5})")
        self.assertIn("code: 5", answer.traceback)
        self.assertIn("[cause]: Error: b", answer.traceback)

    def test_a_forgotten_rejection_costs_no_state(self):
        answer = self.kernel.run("Promise.reject(new Error('forgotten')); 1")
        self.assertEqual(answer.text, "1")
        self.assertIn("Uncaught (in promise) Error: forgotten", answer.stderr)

    def test_results_that_are_data_come_as_json_too(self):
        answer = self.kernel.run("({a: [1, 'x', null, {b: true}]})")
        self.assertEqual(answer.of("execute_result")[0]["data"]["application/json"], {"a": [1, "x", None, {"b": True}]})
        others = ("new Map()", "({f() {}})", "({d: new Date(0)})", "[1,,2]", "[NaN]", "({get a() { return 1 }})", "'text'")
        for code in others:
            self.assertEqual(list(self.kernel.run(code).of("execute_result")[0]["data"]), ["text/plain"], code)

    def test_display_comes_between_what_is_printed_around_it(self):
        answer = self.kernel.run(
            "console.log(1); display({'text/html': '<b>x</b>'}); console.log(2);"
            "display.png(Buffer.from([1, 2, 3])); display(7)"
        )
        shown = [content.get("text") or content["data"] for _, content in answer.messages]
        self.assertEqual(
            shown, ["1\n", {"text/html": "<b>x</b>"}, "2\n", {"image/png": "AQID"}, {"text/plain": "7"}]
        )

    def test_an_object_may_say_how_it_is_displayed(self):
        answer = self.kernel.run("({[Symbol.for('Jupyter.display')]: () => ({'text/markdown': '*x*'})})")
        self.assertEqual(answer.of("execute_result")[0]["data"]["text/markdown"], "*x*")

    def test_modules_are_found_from_the_current_directory(self):
        Path("/workspace/common.js").write_text("module.exports = {name: 'common'};")
        Path("/workspace/modern.mjs").write_text("export default 1; export const two = 2;")
        self.assertEqual(self.kernel.run("require('./common.js').name").text, "'common'")
        self.assertEqual(self.kernel.run("import one, { two } from './modern.mjs'; one + two").text, "3")
        self.assertEqual(self.kernel.run("(await import('./modern.mjs')).two").text, "2")
        self.assertEqual(self.kernel.run("import * as fs from 'node:fs'; typeof fs.readFileSync").text, "'function'")
        self.assertIn("missing.mjs", self.kernel.run("import './missing.mjs'").reply["evalue"])
        self.assertEqual(self.kernel.run("process.argv.length").text, "1")

    def test_what_an_earlier_cell_prints_later_is_not_the_next_ones(self):
        self.kernel.strays.clear()
        self.kernel.run(
            "let turns = 0;\n"
            "(async () => { while (++turns < 5) { await new Promise((r) => setTimeout(r, 20)); console.log('early') } })()"
        )
        answer = self.kernel.run("while (turns < 5) await new Promise((r) => setTimeout(r, 5)); console.log('late')")
        self.assertEqual(answer.stdout, "late\n")
        self.assertIn(("stream", {"name": "stdout", "text": "early\n"}), self.kernel.strays)

    def test_requests_behind_a_failed_one_are_aborted(self):
        for code in ("await new Promise((r) => setTimeout(r, 300)); throw 1", "1"):
            self.kernel.client.execute(code)
        replies = [self.kernel.client.get_shell_msg(timeout=PATIENCE_SECONDS)["content"]["status"] for _ in range(2)]
        self.assertEqual(replies, ["error", "aborted"])
        self.assertEqual(self.kernel.run("2").text, "2")


class Interrupts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel("javascript")
        cls.addClassCleanup(cls.kernel.close)
        cls.kernel.run("const state = 'kept'")

    def check(self, code):
        answer = self.kernel.interrupted(code)
        self.assertEqual((answer.status, answer.reply["ename"]), ("error", "Interrupted"))
        after = self.kernel.run("console.log('after'); state")
        self.assertEqual((after.stdout, after.text), ("after\n", "'kept'"))

    def test_a_busy_loop(self):
        self.check("while (true) {}")

    def test_a_busy_loop_that_catches_everything(self):
        self.check("for (;;) { try { for (;;) {} } catch {} finally {} }")

    def test_a_busy_loop_that_prints(self):
        self.check("for (;;) console.log('x'.repeat(1000))")

    def test_an_await_that_never_ends(self):
        self.check("await new Promise(() => {})")

    def test_a_busy_loop_after_an_await(self):
        self.check("await new Promise((done) => setTimeout(done, 10)); while (true) {}")

    def test_a_loop_that_begins_at_the_moment_of_the_interrupt(self):
        for delay in range(20):
            self.check(f"await new Promise((done) => setTimeout(done, {delay})); while (true) {{}}")

    def test_a_busy_loop_in_a_tick_and_in_a_microtask(self):
        self.check("process.nextTick(() => { while (true) {} }); await new Promise(() => {})")
        self.check("queueMicrotask(() => { while (true) {} }); await new Promise(() => {})")

    def test_a_child_process_that_is_waited_for(self):
        self.check("require('child_process').execSync('sleep 1000')")

    def test_a_thread_that_waits(self):
        self.check("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)")

    def test_a_timer_of_an_earlier_cell(self):
        self.kernel.run("setInterval(() => { require('fs').writeFileSync('/tmp/loops', ''); while (true) {} }, 1); 0")
        wait_until(Path("/tmp/loops").exists)
        answer = self.kernel.run("1", on=("execute_input", self.kernel.manager.interrupt_kernel))
        self.assertEqual(answer.reply["ename"], "Interrupted")
        self.assertEqual(self.kernel.run("state").text, "'kept'")

    def test_an_interrupted_cell_does_not_go_on_after_a_timer(self):
        self.check("globalThis.laps = 0; for (;;) { await new Promise((r) => setTimeout(r, 10)); laps += 1 }")
        laps = self.kernel.run("laps").text
        self.assertEqual(self.kernel.run("await new Promise((r) => setTimeout(r, 100)); laps").text, laps)

    def test_nothing_runs(self):
        client = self.kernel.client
        client.control_channel.send(client.session.msg("interrupt_request"))
        # Channels have no order among each other: without the answer, the cell might be what is interrupted.
        self.assertEqual(client.get_control_msg(timeout=PATIENCE_SECONDS)["msg_type"], "interrupt_reply")
        self.assertEqual(self.kernel.run("state").text, "'kept'")


class Ends(unittest.TestCase):
    def setUp(self):
        self.kernel = Kernel("javascript")
        self.addCleanup(self.kernel.close)

    def test_exit_is_answered_after_all_output_and_ends_the_process(self):
        answer = self.kernel.run(
            "process.on('exit', () => console.log('last')); process.stdout.write('b'.repeat(5_000_000)); process.exit(3)"
        )
        self.assertEqual(answer.stdout, "b" * 5_000_000 + "last\n")
        self.assertEqual((answer.status, answer.reply["ename"]), ("error", "KernelExit"))
        self.assertEqual([payload["source"] for payload in answer.reply["payload"]], ["ask_exit"])
        self.assertEqual(self.kernel.ended(), 3)

    def test_exit_in_a_callback(self):
        self.kernel.run("setTimeout(() => process.exit(0), 10)")
        self.assertEqual(self.kernel.ended(), 0)

    def test_a_full_heap_ends_the_process(self):
        kernel = Kernel("javascript", NODE_OPTIONS="--max-old-space-size=100")
        self.addCleanup(kernel.close)
        kernel.client.execute("const all = []; for (;;) all.push(new Array(1_000_000).fill(1.5))")
        self.assertEqual(kernel.ended(), -signal.SIGABRT)

    def test_a_client_that_reads_nothing_for_a_while_loses_nothing(self):
        request = self.kernel.client.execute(
            "for (let i = 0; i < 500_000; i++) process.stdout.write('q'.repeat(99) + '\\n')"
        )
        # The cell cannot end: its output is more than all buffers on the way hold.
        self.kernel.client.control_channel.send(self.kernel.client.session.msg("kernel_info_request"))
        self.kernel.client.get_control_msg(timeout=PATIENCE_SECONDS)
        total = 0
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=PATIENCE_SECONDS)
            if message["msg_type"] == "stream":
                total += len(message["content"]["text"])
            if (message["parent_header"].get("msg_id"), message["content"].get("execution_state")) == (request, "idle"):
                break
        self.assertEqual(total, 50_000_000)

    def test_a_restart_begins_with_nothing(self):
        self.kernel.run("const gone = 1")
        self.kernel.manager.restart_kernel()
        self.kernel.client.wait_for_ready(timeout=PATIENCE_SECONDS)
        self.assertEqual(self.kernel.run("typeof gone").text, "'undefined'")

    def test_a_shutdown_is_clean(self):
        self.kernel.manager.request_shutdown()
        self.assertEqual(self.kernel.ended(), 0)

    def test_a_shutdown_does_not_wait_for_a_busy_loop(self):
        self.kernel.client.execute("while (true) {}")
        self.kernel.manager.request_shutdown()
        self.assertEqual(self.kernel.ended(), -signal.SIGKILL)

    def test_two_kernels_know_nothing_of_each_other(self):
        other = Kernel("javascript", transport="ipc")
        self.addCleanup(other.close)
        self.kernel.run("globalThis.mine = 1")
        self.assertEqual(other.run("typeof mine").text, "'undefined'")

    def test_who_does_not_know_the_key_is_not_heard(self):
        self.kernel.client.session.key = b"another key"
        self.kernel.client.execute("require('fs').writeFileSync('/tmp/forged', '')")
        self.kernel.client.session.key = self.kernel.manager.session.key
        self.kernel.run("1")
        self.assertFalse(os.path.exists("/tmp/forged"))


if __name__ == "__main__":
    unittest.main()
