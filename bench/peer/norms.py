"""Each norm as a careful user of PyTorch writes it: by its fused function where there is one and it
is wanted, else in as few operations as we found; or composed of operations as its formulas read."""

NORMS = {
    "none": lambda n: lambda x: x,
    "layernorm": layer_norm, "layernorm_simple": layer_norm,
    "detachnorm": detach_norm, "detachmean": detach_norm, "detachvariance": detach_norm,
    "adanorm": ada_norm, "rmsnorm": rms_norm, "scalenorm": scale_norm,
    "seednorm": seed_norm,
    "dyt": curve(torch.tanh), "derf": curve(torch.erf),
    "groupnorm": group_norm, "instancenorm": instance_norm,
    "groupscaling": group_scaling, "layerscaling": group_scaling,
    "batchnorm": batch_norm, "recurrentbatchnorm": batch_norm, "sequencebatchnorm": batch_norm,
    "noisybatchnorm": noisy_batch_norm, "batchrenorm": batch_renorm,
    "pn_v": pn_v, "powernorm": power_norm, "mabn": mabn, "unifiednorm": unified_norm,
    "weightnorm": weight_norm,
}

# Norms that leave something to a fused function of PyTorch, or multiply factors of x and dy with
# each other first: they do not compute as their formulas read.
FUSED = {"layernorm", "layernorm_simple", "adanorm", "groupnorm", "instancenorm", "batchnorm",
         "noisybatchnorm", "recurrentbatchnorm", "sequencebatchnorm", "batchrenorm", "pn_v",
         "powernorm", "mabn", "unifiednorm", "weightnorm"} | (
             {"rmsnorm", "seednorm"} if hasattr(F, "rms_norm") else set())
