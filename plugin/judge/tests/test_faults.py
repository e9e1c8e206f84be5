"""Planted faults are named at the op where they were planted, and nothing else is. survey.py plants
500 of them and prints each that is not named."""
import collections
import unittest

import settings

from faults import CHANGES
from planted import Planted

PLANTED = 500 if settings.THOROUGH else 40
NAMED = 0.99  # of the faults
SMALL = ("mlp", "cnn", "gpt", "encoder", "vit", "dlrm", "unet")
MODELS = {} if settings.THOROUGH else {"models": SMALL}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.planted, seed = [], 0
        while len(cls.planted) < PLANTED:
            planted = Planted(seed, **MODELS)
            seed += 1
            if planted.op:
                cls.planted.append(planted)

    def test_faults_are_named(self):
        """A suspect is named, too, with a doubt; a miss must lie within a bound that is wide."""
        missed = [p for p in self.planted if p.outcome not in ("named", "suspect")]
        texts = "\n".join(p.text() for p in missed)
        if settings.THOROUGH:
            print(collections.Counter(p.outcome for p in self.planted), texts, sep="\n")
        self.assertGreaterEqual(len(self.planted) - len(missed), NAMED * PLANTED, texts)
        self.assertEqual([p.text() for p in missed if p.outcome != "blind"], [])

    def test_nothing_else_is_named(self):
        self.assertEqual([f.text() for p in self.planted for f in p.others], [])

    def test_kinds(self):
        """The sample has faults of many kinds, in each phase."""
        phases = {p.phase for p in self.planted}
        self.assertEqual(phases, {"forward", "backward", "optimizer"})
        self.assertGreater(len({p.kind() for p in self.planted}), len(CHANGES) // 2)


if __name__ == "__main__":
    unittest.main()
