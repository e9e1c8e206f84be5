"""Small networks of Hugging Face transformers with random weights, which it makes itself, and the
names of the layers that stand for their norms."""
import torch
from transformers import (GemmaConfig, GemmaForCausalLM, LlamaConfig, LlamaForCausalLM,
                          Mamba2Config, Mamba2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

VOCABULARY = 96
_ATTENTION = dict(vocab_size=VOCABULARY, hidden_size=48, intermediate_size=64, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                  attn_implementation="sdpa")
_NETWORKS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_ATTENTION)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**_ATTENTION)),
    "gemma": lambda: GemmaForCausalLM(GemmaConfig(**_ATTENTION)),
    "mamba2": lambda: Mamba2ForCausalLM(Mamba2Config(
        vocab_size=VOCABULARY, hidden_size=24, expand=2, num_heads=4, head_dim=12, state_size=8,
        n_groups=1, num_hidden_layers=2, chunk_size=8)),
}
LAYERS = {"LlamaRMSNorm": "RMSNorm", "Qwen3RMSNorm": "RMSNorm", "Mamba2RMSNorm": "RMSNorm",
          "GemmaRMSNorm": "RMSNormZeroCentered", "MambaRMSNormGated": "MambaRMSNormGated"}
NAMES = tuple(_NETWORKS)


def network(name, dtype=torch.float32):
    """A network whose norms have weights that differ from 1 and from each other."""
    torch.manual_seed(3)
    made = _NETWORKS[name]()
    with torch.no_grad():
        for norm in norms_of(made):
            norm.weight.add_(0.3 * torch.randn(norm.weight.shape))
    return made.to(dtype).train()


def norms_of(model):
    return [m for m in model.modules() if type(m).__name__ in LAYERS]


def tokens(rows=3, length=16):
    return torch.randint(VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(4))


def step(model, ids):
    """Logits, loss and the gradients of all parameters in a row, as float64."""
    model.zero_grad()
    logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).double(),
                                             ids[:, 1:].flatten())
    loss.backward()
    return (logits.detach().double(), loss.item(),
            torch.cat([p.grad.flatten().double() for p in model.parameters()]))
