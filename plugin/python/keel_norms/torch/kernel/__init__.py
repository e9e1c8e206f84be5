"""The layers of keel_norms as a local repository of the package `kernels`, for CPUs."""
from keel_norms.torch import layers

__all__ = ["layers"]
