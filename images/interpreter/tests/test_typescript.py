"""The TypeScript kernel: what differs from the JavaScript one."""

import unittest

from support import PATIENCE_SECONDS, Kernel


class TypeScript(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel("typescript")
        cls.addClassCleanup(cls.kernel.close)

    def test_types_are_dropped(self):
        answer = self.kernel.run(
            "interface Named { name: string }\n"
            "type Pair<T> = [T, T];\n"
            "const pair: Pair<number> = [1, 2];\n"
            "const first = <T,>(values: T[]): T => values[0]!;\n"
            "[first(pair), ({ name: 'n' } satisfies Named).name as string]"
        )
        self.assertEqual(answer.text, "[ 1, 'n' ]")

    def test_enums_and_parameter_properties_run(self):
        self.kernel.run("enum Color { Red, Green }\nclass Point { constructor(public readonly x: number) {} }")
        self.assertEqual(self.kernel.run("[Color.Green, Color[0], new Point(4).x]").text, "[ 1, 'Red', 4 ]")

    def test_an_import_is_there_for_later_cells(self):
        self.kernel.run("import type { Stats } from 'node:fs';\nimport { join, type ParsedPath } from 'node:path';")
        self.assertEqual(self.kernel.run("join('a', 'b')").text, "'a/b'")

    def test_errors_name_the_line_as_written(self):
        answer = self.kernel.run(
            "type Wide = {\n  a: number;\n  b: string;\n};\n\n"
            "function fail(value: Wide): never {\n  throw new Error('x');\n}\n"
            "fail({\n  a: 1,\n  b: '',\n});"
        )
        name = f"cell-{answer.reply['execution_count']}.ts"
        self.assertEqual(answer.traceback, f"Error: x\n    at fail ({name}:7:9)\n    at {name}:9:1")

    def test_errors_of_syntax_are_shown(self):
        answer = self.kernel.run("const fine = 1;\nconst wrong: number = ;")
        name = f"cell-{answer.reply['execution_count']}.ts"
        self.assertEqual(
            answer.traceback, f"{name}:2\nconst wrong: number = ;\n                      ^\nSyntaxError: Unexpected token"
        )

    def test_the_kernel_names_its_language(self):
        self.kernel.client.kernel_info()
        info = self.kernel.client.get_shell_msg(timeout=PATIENCE_SECONDS)["content"]
        self.assertEqual((info["protocol_version"], info["language_info"]["name"]), ("5.3", "typescript"))


if __name__ == "__main__":
    unittest.main()
