"""Settings of all tests: paths, one thread, and whether this is the long version."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch  # noqa: E402

torch.set_num_threads(1)
THOROUGH = bool(os.environ.get("KEEL_THOROUGH"))


def loose_norm(norm, by):
    """A norm function with another eps: a fault of a whole step."""
    return lambda *args: norm(*args[:-1], args[-1] + by)
