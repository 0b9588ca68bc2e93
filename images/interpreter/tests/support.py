"""A kernel under test, behind jupyter_client."""

import os
import time

from jupyter_client import KernelManager

# Only how long a fault takes to show: nothing is measured.
PATIENCE_SECONDS = 60


class Answer:
    """What came of one execution: everything on iopub up to its own idle status, and the reply."""

    def __init__(self, messages, reply):
        self.messages = messages
        self.reply = reply

    def of(self, kind):
        return [content for type_, content in self.messages if type_ == kind]

    @property
    def status(self):
        return self.reply["status"]

    @property
    def stdout(self):
        return self._stream("stdout")

    @property
    def stderr(self):
        return self._stream("stderr")

    @property
    def text(self):
        """The result as plain text, or nothing if there was none."""
        results = self.of("execute_result")
        return results[0]["data"]["text/plain"] if results else None

    @property
    def traceback(self):
        return "\n".join(self.reply["traceback"])

    def _stream(self, name):
        return "".join(content["text"] for content in self.of("stream") if content["name"] == name)


class Kernel:
    """One running kernel."""

    def __init__(self, name, transport="tcp", **environment):
        self.manager = KernelManager(kernel_name=name, transport=transport)
        if transport == "ipc":
            self.manager.ip = "/tmp/kernel-under-test"
        self.manager.start_kernel(cwd="/workspace", env={**os.environ, **environment})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE_SECONDS)
        self.print_something = "print('runs')" if name == "python3" else "console.log('runs')"
        # What came on iopub for other requests than the one that was waited for.
        self.strays = []

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code, on=None):
        """Runs code. `on` is a kind of message and what is called once, when the first of that kind has arrived."""
        request = self.client.execute(code)
        messages = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_SECONDS)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != request:
                self.strays.append((kind, content))
                continue
            if on and kind == on[0]:
                on[1]()
                on = None
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("status", "execute_input"):
                continue
            messages.append((kind, content))
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_SECONDS)
            if reply["parent_header"].get("msg_id") == request:
                return Answer(messages, reply["content"])

    def interrupted(self, code):
        """Runs code that never ends by itself, and interrupts it once it runs."""
        return self.run(f"{self.print_something}\n{code}", on=("stream", self.manager.interrupt_kernel))

    def ended(self):
        """Waits for the end of the process. Gives its exit code."""
        wait_until(lambda: not self.manager.is_alive())
        return self.manager.provisioner.process.returncode


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited for too long")
        time.sleep(0.01)
