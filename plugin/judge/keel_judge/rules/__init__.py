"""The rules: for each op a function that gives the judge's results and their bounds.

A family of ops is a module with a table RULES, from names of ATen ops (without the underscore of
in-place forms) to functions of a Call that return an Expected for each of its results, or None for
a result that is not judged. docs/numerics.md has the derivations that are longer than a line."""
from keel_judge.call import name_of
from keel_judge.rules import (attention, chance, convolutions, elementwise, exact, indexing,
                              losses, lists, norm_gradients, norms, optimizers, pooling, products,
                              recurrent, reductions, softmax, weight_norm)

FAMILIES = (attention, chance, convolutions, elementwise, exact, indexing, losses, lists,
            norm_gradients, norms, optimizers, pooling, products, recurrent, reductions, softmax,
            weight_norm)
RULES = {name: rule for family in FAMILIES for name, rule in family.RULES.items()}
DECLARED = {}  # rules of ops of other libraries, by their names with the namespace

# Ops that leave nothing to judge: memory without values, sizes, numbers for the program.
PASSED = frozenset("""
    empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ set_
    _local_scalar_dense lift_fresh record_stream _record_function_enter_new
    _record_function_exit sym_size sym_stride sym_numel _assert_async is_same_size
    _nested_tensor_from_mask _amp_update_scale_ _pin_memory _nnpack_available detach
    _fused_sdp_choice _has_compatible_shallow_copy_type _is_all_true unsafe_split
    unsafe_split_with_sizes _version _assert_tensor_metadata transpose_ t_ squeeze_ unsqueeze_
    _unsafe_view as_strided_ swapaxes_ swapdims_ detach_
    """.split())


def rule_of(func):
    """The rule for an op or for its in-place form, or a declared one, or None."""
    if not func._schema.name.startswith("aten::"):
        return DECLARED.get(func._schema.name)
    name = name_of(func)
    return RULES.get(name) or RULES.get(name.removesuffix("_"))
