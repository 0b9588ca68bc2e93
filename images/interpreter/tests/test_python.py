"""The Python kernel as this image starts it."""

import base64
import os
import signal
import unittest

from support import Kernel


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel("python3")
        cls.addClassCleanup(cls.kernel.close)

    def test_a_figure_comes_as_png(self):
        answer = self.kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        image = base64.b64decode(answer.of("display_data")[0]["data"]["image/png"])
        self.assertEqual(image[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(answer.stderr, "")

    def test_the_list_of_fonts_is_the_images(self):
        answer = self.kernel.run(
            "import matplotlib, os\n"
            "sorted(os.listdir(matplotlib.get_cachedir())) == sorted(os.listdir('/opt/codeworkspace-kernel/fonts'))"
        )
        self.assertEqual(answer.text, "True")

    def test_a_table_comes_as_html(self):
        answer = self.kernel.run("import pandas as pd\npd.DataFrame({'a': [1]})")
        self.assertIn("<table", answer.of("execute_result")[0]["data"]["text/html"])

    def test_a_hundred_megabytes_arrive_whole(self):
        answer = self.kernel.run("import sys\nfor i in range(1_000_000): sys.stdout.write(f'{i:99}\\n')")
        self.assertEqual(answer.stdout, "".join(f"{i:99}\n" for i in range(1_000_000)))

    def test_interrupts_end_loops_sleep_and_children(self):
        self.kernel.run("state = 'kept'")
        child = "import subprocess; subprocess.run(['sleep', '1000'])"
        for code in ("while True: pass", "import time; time.sleep(1000)", child):
            answer = self.kernel.interrupted(code)
            self.assertEqual((answer.status, answer.reply["ename"]), ("error", "KeyboardInterrupt"), code)
        self.assertEqual(self.kernel.run("state").text, "'kept'")

    def test_tracebacks_have_no_colours(self):
        self.assertNotIn("\x1b", self.kernel.run("1/0").traceback)

    def test_there_is_no_history(self):
        self.assertEqual(self.kernel.run("get_ipython().history_manager.enabled").text, "False")


class Ends(unittest.TestCase):
    def test_a_kill_ends_the_process(self):
        kernel = Kernel("python3")
        self.addCleanup(kernel.close)
        kernel.client.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(kernel.ended(), -signal.SIGKILL)

    def test_ipc_serves_as_well(self):
        kernel = Kernel("python3", transport="ipc")
        self.addCleanup(kernel.close)
        self.assertEqual(kernel.run("1 + 1").text, "2")


class Image(unittest.TestCase):
    def test_sessions_run_without_privileges_on_a_root_that_is_not_theirs(self):
        self.assertEqual((os.getuid(), os.getgid()), (65532, 65532))
        self.assertFalse(os.access("/", os.W_OK) or os.access("/opt/codeworkspace-kernel", os.W_OK))


if __name__ == "__main__":
    unittest.main()
