"""Every option of every norm changes what keel_norms.numpy gives."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import option_cases  # noqa: E402


class Table(unittest.TestCase):
    def test_every_option_acts(self):
        for norm, option, attributes, _ in option_cases.cases():
            with self.subTest(norm=norm, option=option):
                self.assertIsNotNone(attributes)


if __name__ == "__main__":
    unittest.main()
