"""The properties of a norm that are tried, in the order of the report.

A property is a class with a name, a title, `cases(trial)` and `run(trial, case, number)`, which
returns Outcomes. It raises Skip where it cannot be tried."""
from keel_judge.acid_test.properties import (autograd, contract, formula, layouts, masks,
                                             orders, recorded, sizes, state, types, values)

FAMILIES = (contract, formula, values, orders, layouts, sizes, autograd, types, state, masks,
            recorded)
PROPERTIES = {p.name: p for family in FAMILIES for p in family.PROPERTIES}

__all__ = ["PROPERTIES"]
