"""The command keel-judge norm: files, exit codes, and the command that repeats a case."""
import contextlib
import io
import json
import os
import pathlib
import shlex
import tempfile
import unittest
import xml.etree.ElementTree

import settings

from keel_judge import command


def run(*words):
    """The exit code and what is printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = command.main(["norm", *words])
        except SystemExit as end:
            code = end.code
    return code, out.getvalue()


class Command(unittest.TestCase):
    def setUp(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(pathlib.Path(__file__).parent)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_files_and_repetition(self):
        files = {name: self.folder / f"report.{name}" for name in ("json", "junit", "html")}
        code, text = run("norm_bugs:zeros_count", "--as", "layernorm", "--quick", "--only",
                         "contract,forward", "--seed", "3",
                         *(w for n, f in files.items() for w in (f"--{n}", str(f))))
        self.assertEqual(code, 1, text)
        report = json.loads(files["json"].read_text())
        forward = report["verdicts"][1]
        self.assertEqual((forward["name"], forward["level"]), ("forward", "FAIL"))
        self.assertIn("torch", report["versions"])
        cases = xml.etree.ElementTree.parse(files["junit"]).getroot().findall("testcase")
        self.assertEqual([c.get("name") for c in cases if c.find("failure") is not None],
                         ["forward"])
        page = files["html"].read_text()
        self.assertIn("fill up vectors", page)
        self.assertIn(f"torch {report['versions']['torch']}", page)
        again, text = run(*shlex.split(forward["command"])[2:])
        self.assertEqual(again, 1)
        self.assertIn(forward["words"], text)

    def verdict(self, norm, *words):
        """The line of the property `recorded` with its words, and the exit code."""
        report = self.folder / "report.json"
        code, text = run(norm, "--as", "layernorm", "--only", "recorded", "--quick", "--json",
                         str(report), *words)
        verdict = json.loads(report.read_text())["verdicts"][0]
        return code, verdict["level"], verdict["words"], verdict["command"]

    def test_two_machines(self):
        """One run records, the other is compared: the same bits, other bits, or which is wrong."""
        right, wrong = str(self.folder / "right"), str(self.folder / "wrong")
        self.assertEqual(self.verdict("correct_norms:layer_norm", "--record", right)[:2],
                         (0, "pass"))
        self.assertEqual(self.verdict("norm_bugs:zeros_count", "--record", wrong)[:2], (0, "pass"))
        for norm, record, wanted in (
                ("correct_norms:layer_norm", right, (0, "pass", "")),
                ("correct_norms:layer_norm_by_var", right, (0, "limit", "other bits: y by up to")),
                ("norm_bugs:zeros_count", right, (1, "FAIL", "here: ")),
                ("correct_norms:layer_norm", wrong, (1, "FAIL", "in the record: "))):
            with self.subTest(norm=norm, record=record):
                code, level, words, command = self.verdict(norm, "--against", record)
                self.assertEqual((code, level), wanted[:2], words)
                self.assertIn(wanted[2], words)
                if code:
                    self.assertEqual(run(*shlex.split(command)[2:])[0], 1)
        _, level, words, _ = self.verdict("correct_norms:layer_norm", "--against", right,
                                          "--unbiased")
        self.assertEqual(level, "FAIL")
        self.assertIn("the record is of layernorm{eps=1e-05}", words)

    def test_exit_codes(self):
        self.assertEqual(run("torch.nn.functional.layer_norm", "--only", "forward", "--quick")[0],
                         0)
        for words, expected in ((("math.sqrt",), 3), (("no_such_module.norm", "--as",
                                                        "rmsnorm"), 3),
                                (("norm_bugs:outside", "--as", "squarenorm"), 2),
                                (("norm_bugs:outside", "--as", "rmsnorm", "--only", "beauty"), 3),
                                (("norm_bugs:outside", "--as", "rmsnorm", "--case", "forward"), 3),
                                (("norm_bugs:outside", "--as", "rmsnorm", "--only", "contract",
                                  "--json", str(self.folder / "no" / "file")), 4),
                                (("norm_bugs:outside", "--timeout", "0"), 3),
                                (("norm_bugs:outside", "--against", "settings.py"), 3),
                                (("norm_bugs:outside", "--against", "no_such_file"), 4)):
            with self.subTest(words):
                code, text = run(*words)
                self.assertEqual(code, expected, text)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()
