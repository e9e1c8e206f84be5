// Makes any normalization layer from a name and options: "layernorm", "batchnorm{keep=0.99}",
// "none".
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "frontend/nn/weight.h"

namespace keel::nn {

class NormStates;

// The facts about a variant that `keel list norms` prints.
struct NormFacts {
  std::string name, formula, parameters, state, gradient, source;
  // Its differences from PyTorch or from its authors' program; empty: none is known.
  std::string differs = "";
  // The options, "key=value,...", with which it takes every width; empty: it does without.
  std::string every_width = "";

  // "groupnorm{groups=1,eps=1}": the norm as it takes every width, with more options.
  std::string any_width(std::string_view more = "") const;
};

class Norm {
 public:
  // Reads "name" or "name{key=value,...}". Options in `defaults` ("key=value,...") apply before
  // those in the text, and options in `more` ("key=value" each) apply after them. Throws
  // Error{kUsage} for an unknown name or option, with the nearest known one; for a value that is
  // not of the option's kind, not finite, out of range or against the formula that the name stands
  // for; for braces, commas and equals signs that do not make pairs; and for an option that one of
  // the three gives twice.
  static Norm parse(std::string_view text, std::string_view defaults = "",
                    std::span<const std::string> more = {});

  // Normalizes x (..., features), or images (n, c, h, w), as a NormLayer that is applied once.
  // Parameters are called "<name>/gain" and "<name>/bias", states "<name>/<statistic>". `mask`, u8
  // (...) or absent, is 0 for rows of x that are padding: a norm over the batch or over time leaves
  // these out of its statistics, and other norms ignore the mask.
  // Throws Error{kUsage} for a norm that acts on the weight of the layer before it: that layer
  // takes it as LayerOptions::norm.
  Value operator()(Net& net, const std::string& name, Value x, Value mask = {}) const;
  // Applies the part of a layer's norm that acts on the layer's weight v, see parametrize_weight.
  WeightParametrization parametrized(Net& net, const std::string& name, Value v,
                                     int unit_axis) const;
  // Applies the norm without a layer, for tools: to x, or to x as a weight (out, ...) if the norm
  // acts only on weights.
  Value alone(Net& net, const std::string& name, Value x, Value mask = {}) const;

  const std::string& name() const { return name_; }
  // Every option with its value: "axes=0 eps=1e-05 gain=true bias=true ...".
  const std::string& options() const { return options_; }
  // The value of one option as that text has it, or "" when the norm has no option of that name.
  std::string option(std::string_view name) const;
  bool is_none() const { return name_ == "none"; }
  // Whether statistics are taken over the batch, so that training and evaluation differ.
  bool is_batch_type() const { return traits_.batch_type; }
  // Whether the layer adds a learned bias, so that the layer before it needs none.
  bool has_bias() const { return traits_.has_bias; }
  bool takes_mask() const { return traits_.takes_mask; }
  // Whether a scaling of rows, as layerscaling or groupscaling, is the first thing that it does.
  bool scales_rows() const { return traits_.scales_rows; }
  const WeightForm& weight_form() const { return traits_.weight_form; }
  // The number of time steps of a recurrent network that have statistics of their own, and whether
  // the names of the first step's states say so ("t0/mean").
  std::int64_t steps() const { return traits_.steps; }
  bool names_first_step() const { return traits_.names_first_step; }
  // Applies the norm once. Only NormLayer calls it.
  Value apply(NormStates& memory, Value x, Value mask) const { return apply_(memory, x, mask); }

  using Apply = std::function<Value(NormStates&, Value x, Value mask)>;
  struct Traits {
    bool batch_type = false, has_bias = false, takes_mask = false, names_first_step = false,
         scales_rows = false;
    std::int64_t steps = 100;
    WeightForm weight_form = {};
  };
  // Only the table of variants makes norms in this way.
  Norm(std::string name, std::string options, Apply apply, const Traits& traits);

 private:
  std::string name_, options_;
  Apply apply_;
  Traits traits_;
};

// The facts of every variant. Norm::parse(name).options() has its defaults.
std::span<const NormFacts> norm_facts();
// The style of the norm's curves in figures (NormRow::style); -1 for an unknown norm.
int norm_style(std::string_view name);
// The number of styles that norms have: all are below it.
int norm_styles();

}  // namespace keel::nn
