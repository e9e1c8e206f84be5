"""keel's norms for Python programs: keel_norms.numpy works on NumPy's arrays."""
from ._library import KeelError, info

__all__ = ["KeelError", "info"]
