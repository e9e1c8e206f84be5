"""One norm under test: it is called on sampled numbers, and its results are held to the bounds."""
import os
import warnings

import torch

from keel_judge.acid_test import causes
from keel_judge.acid_test.claim import Reference
from keel_judge.acid_test.outcome import FAIL, LIMIT, PASS, Outcome
from keel_judge.acid_test.samples import arrays_of
from keel_judge.measure import measure
from keel_judge.pattern import index_of, pattern_of
from keel_judge.rounding import EPS, FORMATS

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
LARGEST_SQUARES = 3e38  # sums of squares beyond this overflow float32
LARGEST_CUBE, SMALLEST_CUBE = 2.0**40, 2.0**-40  # deviations whose cube leaves float32 soon
# Classes of kernels that hold only for programs that compute so: what a result of one comes to.
CLASS_LEVELS = {"one-pass variance": FAIL, "statistics in 16 bits": FAIL,
                "x̂ rounded before the gain": PASS, "steps in 16 bits": LIMIT}
CLASS_WORDS = {
    "one-pass variance": "the variance is taken in one pass, mean(x²) - mean², and loses digits",
    "statistics in 16 bits": "statistics are rounded to 16 bits",
    "steps in 16 bits": "steps are rounded to 16 bits",
    "x̂ rounded before the gain": "x̂ is rounded to 16 bits before the gain"}


class Broken(Exception):
    """The callable does what no norm may do; the message says it."""


def same_bits(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    bits = BITS[a.element_size()]
    return torch.equal(a.contiguous().view(bits), b.contiguous().view(bits))


class Trial:
    """`calls` counts the calls of the norm; `changed` has the names of inputs that it wrote to."""

    def __init__(self, adapter, claim, options):
        self.adapter, self.binding, self.claim = adapter, adapter.binding, claim
        self.seed, self.is_quick = options.get("seed", 0), options.get("quick", False)
        self.dtype = DTYPES[options.get("dtype") or "f32"]
        self.parameter_dtype = DTYPES[options.get("parameters") or options.get("dtype") or "f32"]
        self.most_rows = options.get("most_rows") or 2**62
        self.is_large = options.get("large", False)
        self.is_forked = options.get("forked", False)
        self.record, self.against = options.get("record"), options.get("against")
        self.calls, self.changed, self.pid = 0, set(), os.getpid()

    @property
    def has_gain(self):
        return self.binding.has_gain

    @property
    def has_bias(self):
        return self.binding.has_bias

    def arrays(self, case, name, number):
        return arrays_of(case, self, name, number)

    def call(self, arrays, with_gradients=True):
        """y and gradients by name, checked for shape and type; raises Broken."""
        before = {n: t.clone() for n, t in arrays.items()}
        self.calls += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = self.adapter.both(arrays) if with_gradients else self.adapter.forward(arrays)
        self.check_process()
        self.changed |= {n for n, t in arrays.items() if not same_bits(t, before[n])}
        self.check_results(got, before)
        return got

    def check_process(self):
        """A process that the callable has made must not go on with the test."""
        if os.getpid() != self.pid:
            os._exit(88)

    def check_results(self, got, given):
        for name, result in got.items():
            like = given[{"y": "x", "dx": "x", "dgain": "gain", "dbias": "bias"}[name]]
            if result.shape != like.shape:
                raise Broken(f"{name} has shape {list(result.shape)}, expected "
                             f"{list(like.shape)}")
            if not result.is_floating_point():
                raise Broken(f"{name} has type {short(result.dtype)}, expected "
                             f"{short(like.dtype)}")
            if name != "y" and result.dtype != like.dtype:
                raise Broken(f"{name} has type {short(result.dtype)}, expected "
                             f"{short(like.dtype)}")

    def compare(self, got, arrays, reference=None):
        """Outcomes of y and of each gradient, against the reference within the bounds."""
        narrow = self.narrow_of(arrays)
        reference = reference or Reference(self.claim, arrays.x, arrays.gain, arrays.bias)
        expected = {}
        if "y" in got:
            expected["y"] = reference.y(narrow)
        if arrays.dy is not None and set(got) - {"y"}:
            expected |= reference.backward(arrays.dy, narrow)
        return [self.judge(name, got[name], expected[name], (reference, arrays, got))
                for name in got if name in expected]

    def failures(self, got, arrays):
        return [o for o in self.compare(got, arrays) if o.level == FAIL]

    def narrow_of(self, arrays):
        narrow = [FORMATS[t.dtype].eps for _, t in arrays.items() if causes.is_narrow(t.dtype)]
        return max(narrow, default=0.0)

    def judge(self, name, got, expected, seen):
        if got.numel() == 0:
            return Outcome(PASS)
        measured = measure(got, expected, 4)
        share = float(measured.share.max())
        if bool(measured.wrong.any()):
            return self.wrong(name, (got, expected, measured), seen)
        kind = measured.kernels
        if kind == "x̂ rounded before the gain" and self.claim.cast == "end":
            return Outcome(FAIL, f"{name}: {CLASS_WORDS[kind]}, which the claim denies", share)
        if kind and CLASS_LEVELS[kind] == FAIL:
            reference, arrays, _ = seen
            cause = causes.cause_of(name, got, expected, (self, reference, arrays))
            return Outcome(FAIL, f"{name}: {cause or CLASS_WORDS[kind]} "
                           f"({worst(got, expected, measured)})", share)
        if kind:
            return Outcome(CLASS_LEVELS[kind], f"{name}: {CLASS_WORDS[kind]} "
                           f"({worst(got, expected, measured)})", share)
        return Outcome(PASS, "", share)

    def wrong(self, name, numbers, seen):
        """FAIL, with the pattern, and the cause where one is known that explains the numbers."""
        got, expected, measured = numbers
        reference, arrays, results = seen
        words = f"{name}{worst(got, expected, measured)}; {pattern_of(measured.wrong)}"
        out = beyond_float32(reference, name, measured.wrong)
        if out:
            return Outcome(LIMIT, f"{out}: {words}", float(measured.share.max()))
        cause = causes.cause_of(name, got, expected, (self, reference, arrays))
        return Outcome(FAIL, f"{cause}: {words}" if cause else words,
                       float(measured.share.max()))


def beyond_float32(reference, name, wrong):
    """Whether all that is wrong lies in groups where a kernel that computes in float32 overflows or
    underflows: in the squares of x, or backward in the cube of 1 / s."""
    groups = reference.groups
    squares = groups.x.square().sum(1, keepdim=True)
    is_large, is_small = squares > LARGEST_SQUARES, squares < 2.0**-120
    if name != "y":
        size = reference.stats.var.sqrt()
        is_large, is_small = is_large | (size > LARGEST_CUBE), is_small | (size < SMALLEST_CUBE)
    if name in ("y", "dx"):
        large, small = (reference.back(m.expand_as(groups.x)) for m in (is_large, is_small))
    else:
        large, small = is_large.any().reshape(()), is_small.any().reshape(())
    if bool((wrong & ~large).any()):
        is_all_small = not bool((wrong & ~small).any())
        return "squares underflow float32" if is_all_small else ""
    return "squares overflow float32" if name == "y" else "squares or 1/s³ leave float32"


def worst(got, expected, measured):
    """The worst element in words."""
    index = index_of(int(measured.share.argmax()), got.shape)
    value, wanted = float(got[index]), float(expected.value[index])
    bound = float(measured.bound[index])
    return f"{list(index)} = {value:.6g}, expected {wanted:.6g} ± {bound:.2g}"


def short(dtype):
    return str(dtype).removeprefix("torch.")

