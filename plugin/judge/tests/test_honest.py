"""Honest steps are never flagged: ten networks, f32 and bf16, eager."""
import unittest

import settings
import torch

import keel_judge
from honest import MODELS, Step

OPTIMIZERS = {
    "AdamW": torch.optim.AdamW,
    "fused AdamW": lambda p, lr: torch.optim.AdamW(p, lr=lr, fused=True, weight_decay=0.1),
    "fused Adam": lambda p, lr: torch.optim.Adam(p, lr=lr, fused=True, weight_decay=0.1),
    "foreach Adam": lambda p, lr: torch.optim.Adam(p, lr=lr, foreach=True, weight_decay=0.1),
    "SGD": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
    "fused SGD": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, fused=True),
    "foreach SGD": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, foreach=True),
    "Adagrad": torch.optim.Adagrad, "fused Adagrad": lambda p, lr: torch.optim.Adagrad(
        p, lr=lr, fused=True),
    "RMSprop": torch.optim.RMSprop, "NAdam": torch.optim.NAdam, "RAdam": torch.optim.RAdam,
    "Adamax": torch.optim.Adamax, "Adadelta": torch.optim.Adadelta, "ASGD": torch.optim.ASGD,
}


class Honest(unittest.TestCase):
    def check(self, step):
        step()
        with keel_judge.judge(step.model, norms=False) as report:
            step()
        self.assertTrue(report.ok, report.text())
        self.assertEqual(report.not_judged.total(), 0, report.text())
        return report

    def test_ten_networks(self):
        """20 seeds each in f32 and in bf16, or one seed of each."""
        for name in MODELS:
            for autocast in (False, True):
                seeds = range(20) if settings.THOROUGH else [int(autocast)]
                for seed in seeds:
                    with self.subTest(model=name, autocast=autocast, seed=seed):
                        self.check(Step(name, seed, autocast=autocast))

    def test_optimizers(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(optimizer=name):
                report = self.check(Step("mlp", 3, optimizer=make))
                self.assertIn("optimizer", {row.phase for row in report.rows.values()})

    def test_scaled_gradients(self):
        """A scale of the loss, taken out by the fused optimizer."""
        for make in (torch.optim.AdamW, torch.optim.SGD):
            step = Step("mlp", 1)
            optimizer = make(step.model.parameters(), lr=1e-3, fused=True)
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
            with keel_judge.judge(step.model, norms=False) as report:
                loss = torch.nn.functional.cross_entropy(step.model(step.batch), step.target)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            self.assertTrue(report.ok, report.text())


if __name__ == "__main__":
    unittest.main()
