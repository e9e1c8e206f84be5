"""Each norm as a careful user of JAX writes it, to be compiled by jax.jit."""

ROWS = {
    "none": no_norm,
    "layernorm": layer_norm, "layernorm_simple": layer_norm,
    "detachnorm": detach_norm, "detachmean": detach_norm, "detachvariance": detach_norm,
    "adanorm": ada_norm, "rmsnorm": rms_norm, "scalenorm": scale_norm, "seednorm": seed_norm,
    "dyt": curve(jnp.tanh), "derf": curve(lax.erf),
    "groupnorm": group_norm, "instancenorm": instance_norm,
    "groupscaling": group_scaling, "layerscaling": group_scaling,
    "weightnorm": weight_norm,
}
COLUMNS = {
    "batchnorm": batch_norm, "recurrentbatchnorm": batch_norm, "sequencebatchnorm": batch_norm,
    "batchrenorm": batch_renorm, "pn_v": pn_v, "powernorm": power_norm, "mabn": mabn,
    "unifiednorm": unified_norm,
}
NORMS = COLUMNS | {name: without_states(make) for name, make in ROWS.items()}

# Norms whose variance `plain` computes in another way.
CENTRED = {"layernorm", "layernorm_simple", "adanorm", "groupnorm", "instancenorm", "batchnorm",
           "recurrentbatchnorm", "sequencebatchnorm", "batchrenorm", "detachnorm"}


def make_norm(name, n):
    if name not in NORMS:
        raise ValueError(f"the norm {name} is not written for JAX")
    return NORMS[name](n)
