"""plugin/python/example/encoder.py: a Transformer encoder of PyTorch with keel's norms learns."""
import os
import pathlib
import subprocess
import sys
import unittest

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "example" / "encoder.py"


class Encoder(unittest.TestCase):
    def test_it_learns_with_keels_norms(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1",
                       "PYTHONPATH": os.pathsep.join([str(EXAMPLE.parents[1]),
                                                      os.environ.get("PYTHONPATH", "")])}
        environment.pop("KEEL_DATA", None)
        for norm in ("powernorm", "adanorm"):
            with self.subTest(norm=norm):
                said = subprocess.run([sys.executable, str(EXAMPLE), "--norm", norm], text=True,
                                      capture_output=True, check=True, env=environment).stdout
                accuracy = float(said.split()[-2])
                # Half of the sentences are good ones: 100 guesses are right 50 +- 5 times.
                self.assertGreater(accuracy, 90, said)


if __name__ == "__main__":
    unittest.main()
