"""`identify` names every norm of keel from its numbers, or says which are the same."""
import unittest

import settings
import torch
import torch.nn.functional as F

from keel_judge import identify
from norm_programs import PROGRAMS, numbers


def plain(name):
    return name.split(" of ")[0].split(" with ")[0].split(" in ")[0]


class Identify(unittest.TestCase):
    def test_every_norm_against_all(self):
        for name, (_, _, _, same) in PROGRAMS.items():
            for seed in range(5 if settings.THOROUGH else 1):
                with self.subTest(norm=name, seed=seed):
                    answer = identify(**numbers(name, seed))
                    allowed = {plain(name), *same}
                    self.assertTrue(answer.is_known, answer.text())
                    self.assertEqual(set(answer.names) - allowed, set(), answer.text())
                    if answer.best.gradients:
                        self.assertNotEqual(answer.gradient(), "", answer.text())
                        self.assertLessEqual(answer.best.gradients.get("dgain", 0), 1)

    def test_options(self):
        torch.manual_seed(0)
        x, gain = torch.randn(30, 24) * 0.1, torch.randn(24) * 0.1
        sd = x.std(1, keepdim=True)
        y = (gain + 1) * (x - x.mean(1, keepdim=True)) / (sd + 1e-3)
        best = identify(x=x, y=y, gain=gain).best
        self.assertEqual(best.options, {"eps": 1e-3, "eps_place": "outside", "unbiased": True,
                                        "offset": 1})
        best = identify(x=x, y=F.group_norm(x, 6, eps=1e-3)).best
        self.assertEqual((best.norm, best.options), ("groupnorm", {"eps": 1e-3, "groups": 6}))

    def test_what_cannot_be_told(self):
        """The eps of rows whose variance is far above it, and a constant gain."""
        x = torch.randn(30, 24) * 1e4
        text = identify(x=x, y=F.layer_norm(x, (24,))).text()
        self.assertIn("eps cannot be told", text)
        self.assertIn("a row whose variance is near eps would tell", text)
        self.assertIn("detachnorm", text)

    def test_no_norm(self):
        x = torch.randn(30, 24)
        y = F.layer_norm(x, (24,))
        y[3, 4] *= 1.001
        answer = identify(x=x, y=y)
        self.assertFalse(answer.is_known)
        self.assertEqual(answer.best.norm, "layernorm_simple")
        self.assertIn("no norm that is known", answer.text())
        self.assertFalse(identify(x=x, y=torch.randn(30, 24)).is_known)

    def test_wrong_gradients(self):
        arrays = numbers("layernorm")
        answer = identify(**arrays | {"dx": arrays["dx"] * 1.001})
        self.assertEqual(answer.gradient(), "")
        self.assertIn("dx is not this norm's gradient", answer.text())
        answer = identify(**arrays | {"dgain": arrays["dgain"] * arrays["gain"]})
        self.assertIn("dgain is not the sum", answer.text())

    def test_running_statistics(self):
        x, state = torch.randn(9, 24), {"running_mean": torch.zeros(24),
                                        "running_var": torch.ones(24)}
        after = {name: value.clone() for name, value in state.items()}
        y = F.batch_norm(x, after["running_mean"], after["running_var"], training=True)
        text = identify(x=x, y=y, before=state, after=after).text()
        self.assertIn("running_var: takes 0.1 of the batch and keeps 0.9, unbiased", text)
        after["running_var"] = 0.1 * state["running_var"] + 0.9 * x.var(0, unbiased=False)
        text = identify(x=x, y=y, before=state, after=after).text()
        self.assertIn("running_var: takes 0.9 of the batch and keeps 0.1, biased", text)

    def test_sixteen_bits(self):
        x = torch.randn(30, 64)
        y = F.layer_norm(x.bfloat16(), (64,))
        answer = identify(x=x.bfloat16(), y=y)
        self.assertIn("layernorm_simple", answer.names)

    def test_refusals(self):
        x = torch.randn(3, 4)
        with self.assertRaisesRegex(ValueError, r"x \(3, 4\) and y \(4, 3\)"):
            identify(x=x, y=x.t())
        with self.assertRaisesRegex(ValueError, "x has 5000000 elements: give at most 4000000"):
            identify(x=torch.empty(1, 5000000), y=torch.empty(1, 5000000))
        with self.assertRaisesRegex(ValueError, r"dy \(4,\): expected x's shape \(3, 4\)"):
            identify(x=x, y=x, dy=x[0])


if __name__ == "__main__":
    unittest.main()
