"""A fixture for pytest: `judged(model)` judges what runs inside, and fails the test if it is wrong.

    def test_step(judged):
        with judged(model):
            loss = step()
"""
import contextlib

import pytest

from keel_judge.judge import judge


@pytest.fixture
def judged():
    @contextlib.contextmanager
    def run(model=None, **options):
        with judge(model, **options) as report:
            yield report
        if not report.ok:
            pytest.fail(report.text(), pytrace=False)
    return run
