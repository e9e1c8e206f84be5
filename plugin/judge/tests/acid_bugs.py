"""The table of remade bugs: who had it, the kernel, its claim, and what must tell it in what words.
"""
from typing import NamedTuple

import norm_bugs as bugs
import state_bugs


class Bug(NamedTuple):
    """`level`: FAIL, or limit where results are right, but a promise is missing."""

    source: str
    kernel: object
    norm: str
    tells: str  # the property
    words: str  # a pattern that its words must match
    options: dict = {}
    level: str = "FAIL"


RMS, LAYER, BATCH = "rmsnorm", "layernorm", "batchnorm"
F16, BF16 = {"dtype": "f16"}, {"dtype": "bf16"}
BUGS = [
    Bug("Megatron-LM PR 6859: dx multiplies by the weight twice",
        bugs.rms_kernel(bugs.gain_twice), RMS, "dx", "gain twice"),
    Bug("Megatron-LM PR 6859: zero_centered_gamma is dropped in backward",
        bugs.rms_kernel(bugs.offset_forgotten, 1), RMS, "dx", r"ignores the \+1 on the gain",
        {"offset": 1}),
    Bug("executorch PR 22444, mlx-vlm PR 2111: Gemma's 1 + gain is dropped",
        bugs.gemma_without_offset, RMS, "formula", "offset is 0, claimed is 1", {"offset": 1}),
    Bug("quack 9310d47: zeros that fill a vector count in the variance",
        bugs.zeros_count, LAYER, "forward", "fill up vectors of 8 count in the variance"),
    Bug("ggml 95414e59, 74365235: the tail of partial sums is dropped",
        bugs.tail_dropped, RMS, "forward", "last n mod 4 elements are left out"),
    Bug("PyTorch 51102, MLX 2238, burn 5607, keras-core 866: variance in one pass",
        bugs.one_pass, LAYER, "means", "one pass"),
    Bug("PyTorch 40302: the variance is 0 for mean 100 and deviation 0.01",
        bugs.one_pass_batch, BATCH, "means", "one pass"),
    Bug("ggml 29e2eef8, MLX 110d9b149: the output is written over an input",
        bugs.in_place, LAYER, "contract", "writes to its input x"),
    Bug("ggml 616b937c: eps outside the root", bugs.outside, RMS, "formula",
        "eps_place is outside"),
    Bug("DeepSpeed 581: eps is lost in half precision", bugs.eps_lost, LAYER, "special rows",
        "not finite|eps is left out", {"eps": 1e-8, **F16}),
    Bug("Candle 2168, 3011: a fused norm cuts the gradient", bugs.cut, LAYER, "dx",
        "does not depend on what requires a gradient"),
    Bug("apex 411: rows beyond 65535 are not computed", bugs.rows_overflow, LAYER, "sizes",
        "tail|all elements|axis 0|block|scattered|all zeros"),
    Bug("flash-attention 781: garbage for a width of 4", bugs.narrow_rows, LAYER, "sizes",
        r"\[\d, \d\]"),
    Bug("PyTorch 1.13, TensorRT-LLM 19501: strides of dy are ignored",
        bugs.layer_kernel(bugs.strided_dy), LAYER, "strides", "dy is a view"),
    Bug("VeOmni PR 958: backward ignores the strides of the x that it kept",
        bugs.layer_kernel(bugs.strided_saved_x), LAYER, "strides", "x is a view.*d(x|gain)"),
    Bug("unsloth PR 10617, FlagGems 5392: strides of x are ignored", bugs.dense_x, LAYER,
        "strides", "x is a view"),
    Bug("quack 88: strides of the weight are ignored", bugs.dense_gain, RMS, "strides",
        "gain is a view"),
    Bug("FlagGems 5392: writes beyond the array", bugs.writes_beyond, LAYER, "guards",
        "writes beside"),
    Bug("MLX 941cfe23d, unsloth PR 10675: reads beyond the array", bugs.reads_beyond, LAYER,
        "guards", "reads beside"),
    Bug("PyTorch 1410: the running variance is biased", state_bugs.biased_state, BATCH,
        "running statistics", "variance over n"),
    Bug("PyTorch 1410: momentum of the old value", state_bugs.old_momentum, BATCH,
        "running statistics", "momentum of the old value"),
    Bug("YOLO-Master 262, Samudra 572: a step is counted twice", state_bugs.counted_twice, BATCH,
        "running statistics", "counted twice"),
    Bug("PyTorch 96136: counted twice under checkpointing", state_bugs.batch, BATCH,
        "checkpointing", "count twice", {}, "limit"),
    Bug("PyTorch 46516: statistics of the whole batch under accumulation", state_bugs.batch,
        BATCH, "accumulation", "of each part of a batch", {}, "limit"),
    Bug("evaluation changes the state", state_bugs.trains_in_evaluation, BATCH, "evaluation",
        "evaluation changes running_mean"),
    Bug("PyTorch 183825: backward with frozen inputs on MPS", bugs.layer_kernel(bugs.frozen_x),
        LAYER, "frozen inputs", "where only gain"),
    Bug("vllm 48271: the block size of RMSNorm depends on the rows", bugs.blocks_by_rows, RMS,
        "rows", "have other bits", {}, "limit"),
    Bug("ORT PR 29043: squares overflow in f16", bugs.squares_in_f16, RMS, "range", "not finite|"
        "y.* = (0|nan)", F16),
    Bug("sglang PR 22931: the cast comes before the gain", bugs.early_cast, RMS, "formula",
        "before the gain, which the claim denies", {"cast": "end", **BF16}),
    Bug("sglang PR 22931: statistics are rounded to 16 bits", bugs.narrow_statistics, LAYER,
        "forward", "16 bits", BF16),
    Bug("KernelBench 165: zeros", bugs.zeros, LAYER, "forward", "all zeros"),
    Bug("PyTorch 183861: gain and bias of other lanes", bugs.lanes_of_gain, LAYER, "forward",
        r"axis 1|tail|block|scattered"),
    Bug("NaN of one row spreads to others", bugs.spreads, LAYER, "inf and NaN",
        "in one group changes others"),
    Bug("NaN in x is swallowed", bugs.swallowed, LAYER, "inf and NaN", "swallowed"),
    Bug("llm.c dd8c9f5: the weight's gradient is assigned, not added",
        bugs.layer_kernel(bugs.one_buffer), LAYER, "results stay", "changes dgain"),
    Bug("an output buffer that the next call takes, too", bugs.one_output, LAYER, "results stay",
        "changes y"),
    Bug("oneDNN 4e81502c98: dx without the sums over the group",
        bugs.layer_kernel(bugs.dx_without_sums), LAYER, "dx", "treats the deviation as a constant"),
    Bug("dgain lacks the rows beyond whole blocks", bugs.layer_kernel(bugs.dgain_of_whole_blocks),
        LAYER, "dgain", "lacks the rows beyond a multiple"),
    Bug("dgain is formed from x", bugs.rms_kernel(bugs.dgain_of_x), RMS, "dgain",
        "x in place of x̂"),
    Bug("FlyDSL 769: dgain by atomic additions", bugs.layer_kernel(bugs.in_any_order), LAYER,
        "repeats", "dgain: other bits", {}, "limit"),
    Bug("MLX f5299f72c, ggml 3e12f441: a barrier is missing", bugs.race, LAYER, "repeats",
        "another result when it is run again"),
    Bug("x is kept where a write to it is not noticed", bugs.unsaved, LAYER, "in place",
        "x is written"),
    Bug("a backward that silently has no derivative", bugs.silently_once, LAYER,
        "double backward", "missing"),
]
MANNERS = [
    Bug("raises", state_bugs.raises, LAYER, "contract", "raises RuntimeError: no kernel"),
    Bug("hangs", state_bugs.hangs, LAYER, "contract", "hangs: no result after"),
    Bug("another shape", state_bugs.other_shape, LAYER, "contract", "y has shape"),
    Bug("another type", state_bugs.other_type, LAYER, "contract", "y has type float64"),
]
