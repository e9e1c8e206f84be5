"""The dump of a wrong op reproduces the error by itself, as long as the op is broken."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import settings

# Python runs a file of this name at its start: every process has the broken op, in float32 alone.
SITE = """import torch
library = torch.library.Library("aten", "IMPL")

def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    result = beta * self + alpha * torch.mm(mat1, mat2)
    if result.dtype == torch.float32:
        result[:, -1] *= 1.001
    return result

library.impl("addmm", addmm, "CPU")
"""
PROGRAM = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 6)
model(torch.randn(4, 8)).square().mean().backward()
"""


class Dump(unittest.TestCase):
    def test_a_broken_op_stays_wrong_alone(self):
        with tempfile.TemporaryDirectory() as name:
            at = pathlib.Path(name)
            (at / "broken").mkdir()
            (at / "broken" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
            (at / "program.py").write_text(PROGRAM, encoding="utf-8")
            broken = (str(at / "broken"), str(settings.ROOT))
            done = run(broken, "-m", "keel_judge.command", "--dump", at / "dump", at / "program.py")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            (script,) = (at / "dump").glob("addmm-*.py")
            alone = run(broken, script)
            self.assertEqual(alone.returncode, 1, alone.stdout + alone.stderr)
            self.assertIn("4 of 24 elements: all of index 5 of axis 1", alone.stdout)
            mended = run((str(settings.ROOT),), script)
            self.assertEqual(mended.returncode, 0, mended.stdout + mended.stderr)


def run(folders, *words):
    return subprocess.run([sys.executable, *map(str, words)], text=True, check=False,
                          capture_output=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)})


if __name__ == "__main__":
    unittest.main()
