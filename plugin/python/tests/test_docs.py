"""The tables of modules and of their signatures in docs/norm-library.md, made from the table of
norms and from the modules.

`test_docs.py --write` updates them."""
import inspect
import pathlib
import re
import sys
import textwrap
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_modules import MODULES, knn  # noqa: E402

from keel_norms._norms import ALL, CHANNELS, RING, SCALAR  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/norm-library.md"
BEGIN, END = "<!-- the modules' table begins -->\n", "<!-- the modules' table ends -->\n"
SIGNATURES, SIGNATURES_END = "<!-- the signatures begin -->\n", "<!-- the signatures end -->\n"
HEAD = ("module", "parameters", "state: shape, first value")
SHAPES = {CHANNELS: "(channels)", SCALAR: "()", RING: "(m, channels)"}
# PyTorch's batch norms count batches; keel's op of them does not.
COUNTER = "`num_batches_tracked` (), 0"


def all_modules():
    """A module of each class, in the order of the list of modules, and their names."""
    made = {name: make() for name, (make, _) in MODULES.items() if "," not in name}
    return {**made, "InstanceNorm2d": knn.InstanceNorm2d(8, affine=True),
            "WeightNorm": knn.WeightNorm()}


def state_of(module):
    buffers = dict(module.named_buffers())
    parts = []
    for name, state in ALL[module.norm].states.items():
        buffer = name if name in buffers else module._buffer(name)
        moved = ", moved by the backward" if state.by_backward else ""
        parts.append(f"`{buffer}` {SHAPES[state.shape]}, {state.first}{moved}")
        del buffers[buffer]
    parts += [COUNTER for name in buffers if name == "num_batches_tracked"]
    return "; ".join(parts) or "-"


def parameters_of(module):
    """Names; those of a parametrization are in the layer's state_dict."""
    if module.norm == "weight_norm":
        return ["original0", "original1"]
    return [name for name, _ in module.named_parameters()]


def row_of(module):
    return ", ".join(f"`{n}`" for n in parameters_of(module)) or "-", state_of(module)


def table():
    """Modules with the same facts share a row."""
    rows = {}
    for name, module in all_modules().items():
        rows.setdefault(row_of(module), []).append(f"`{name}`")
    lines = [HEAD, ["---"] * len(HEAD), *[(", ".join(names), *row) for row, names in rows.items()]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def signature_of(kind):
    """Name, arguments and defaults; those of PyTorch's own class, which differ from version to
    version, are not repeated."""
    theirs = getattr(torch.nn, kind.__name__, None)
    known = set(inspect.signature(theirs).parameters) if theirs else set()
    own = [a.replace(annotation=a.empty) for name, a in inspect.signature(kind).parameters.items()
           if name not in known]
    shown = str(inspect.Signature(own)).removeprefix("(").removesuffix(")")
    arguments = ", ".join(filter(None, ("..." if theirs else "", shown)))
    note = f"    as torch.nn.{kind.__name__}" if theirs else ""
    return textwrap.wrap(f"{kind.__name__}({arguments}){note}", 96, subsequent_indent="    ")


def signatures():
    """The signature of each class, but of those that have that of their variants."""
    made = [getattr(knn, name) for name in knn.__all__ if inspect.isclass(getattr(knn, name))]
    kinds = [kind for kind in made
             if not kind.__name__.startswith("Sync") and kind is not knn.BatchRenorm2d]
    return "\n".join(["```text", *(line for kind in kinds for line in signature_of(kind)),
                      "```\n"])


def with_table(page):
    for begin, text, end in ((BEGIN, table(), END), (SIGNATURES, signatures(), SIGNATURES_END)):
        before, found, rest = page.partition(begin)
        _, last, after = rest.partition(end)
        if not found or not last:
            raise ValueError(f"{PAGE}: expected a table between {begin}and {end}")
        page = before + begin + text + end + after
    return page


class Page(unittest.TestCase):
    def test_it_has_every_module(self):
        page = PAGE.read_text(encoding="utf-8")
        self.assertEqual(with_table(page), page, "plugin/python/tests/test_docs.py --write")

    def test_every_module_has_its_facts(self):
        for name, module in all_modules().items():
            facts = ALL[module.norm]
            for text in (*row_of(module), facts.formula, facts.gradient):
                self.assertTrue(text.strip(), name)
            self.assertRegex(facts.source, r"\b(19|20)\d\d\b")

    def test_functions_and_modules_have_documentation(self):
        for name in knn.__all__:
            value = getattr(knn, name)
            if callable(value):
                self.assertRegex(value.__doc__ or "", re.compile(r"\w+"), name)


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        unittest.main()
