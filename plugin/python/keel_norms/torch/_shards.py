"""The statistics of a batch that lies on the processes of torch.distributed, each with a shard.

Each process sums over its own rows; the sums, in float64, are gathered and merged in the order of
the ranks. So all processes have the same bits, and a shard may have any number of rows, even none.
"""
from typing import NamedTuple

import torch
import torch.distributed as dist

from . import _ops


class Parts(NamedTuple):
    """The ops that give a norm's statistics and gradient sums (src/ops/column_moments.h), and the
    input that takes the statistics."""
    statistics: str
    merge: str
    gradient_sums: str
    input: str


_CENTRED = Parts("column_moments", "merge_moments", "centred_gradient_sums", "moments")
_UNCENTRED = Parts("column_squares", "merge_sums", "uncentred_gradient_sums", "squares")
PARTS = {op: parts for op, of in _ops.OPS.items() for parts in (_CENTRED, _UNCENTRED)
         if parts.input in of.inputs}


def _affine_gradients(norm, sums, merged, values):
    """dgain and dbias of the rows that the gradient sums are of."""
    if PARTS[norm] is _UNCENTRED:
        dbias, by_xhat = sums[2:4]
    else:  # The sum of xhat over all rows is what the mean lacks.
        dbias, by_xhat = sums[3], sums[4] - sums[3] * merged[2] / merged[0].clamp(min=1)
    ratio = values.get("r", values.get("ratio"))
    dgain = by_xhat if ratio is None else ratio * by_xhat
    return {"dgain": dgain + values["d"] * dbias if "d" in values else dgain, "dbias": dbias}


class Shards:
    """A group of processes. `padding` rows of zeros at the end of this shard do not count: a norm
    takes no batch without rows, and no variance of a single one."""

    ALL = 1  # the row of the sums that counts all elements, those left out by a mask included

    def __init__(self, group, padding=0):
        self.group, self.padding = group, padding

    def statistics(self, norm, values, attributes):
        """The statistics of all shards, by the name of the norm's input."""
        parts = PARTS[norm]
        own = self._own(parts.statistics, values, attributes)
        return {parts.input: self._merged(parts.merge, own)}

    def gradient_sums(self, norm, values, attributes):
        """The gradient sums of all shards, and dgain and dbias of only this one: data parallelism
        adds the gradients of all."""
        own = self._own(PARTS[norm].gradient_sums, values,
                        attributes)
        merged = self._merged("merge_sums", own)
        affine = _affine_gradients(norm, own, merged, values)
        return merged, {name: value.to(values["dy"].dtype) for name, value in affine.items()}

    def _own(self, op, values, attributes):
        names, known = _ops.OPS[op][:2]
        counts_padding = str(attributes.get("pad_stats")).lower() == "true"
        text = "all_rows=true" if counts_padding and "all_rows" in known else ""
        (own,) = _ops.run(op, [values.get(name) for name in names], text)
        own[self.ALL] -= self.padding
        return own

    def _merged(self, merge, own):
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(parts, own, self.group)
        (merged,) = _ops.run(merge, [torch.stack(parts)], "")
        return merged


def is_shared(group):
    """Whether a batch lies on several processes."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size(group) > 1
