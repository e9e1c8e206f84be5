// The table that Norm::parse reads, with one row a name: for the norm_*.cpp files, and for norms
// from outside.
//
// A variant is a struct of options with fields(), has_bias() and apply(memory, x), or apply(memory,
// x, mask) when it takes a mask; kBatchType says whether its statistics are taken over the batch.
// A struct may have more: weight_form() if it also acts on the weight of the layer before it;
// defaults(given) if the default of one option depends on what another is given; validate(ranges)
// if there are wrong values that the ops do not refuse; an option `steps`, which Norm::steps()
// returns; scales_rows() if it may begin with a scaling of rows; and kNamesFirstStep if the names
// of the first step's states have "t0/" in them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/nn/init.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/norm_states.h"
#include "src/core/nearest.h"
#include "src/ops/column_moments.h"
#include "src/ops/layout.h"
#include "src/ops/norm/norm.h"
#include "src/ops/shard_parts.h"

namespace keel::nn {

using OptionText = std::vector<std::pair<std::string, std::string>>;

// A name and the options that were written for it. The last of several values of a key counts.
struct NormRequest {
  std::string name;
  OptionText fixed, defaults, given;  // as in the row; given: by the text and by its callers
};

struct NormRow {
  NormFacts facts;
  // The style of its curves in figures. Norms that the papers compare have colours that are far
  // apart; -1: a style that no norm of keel has.
  int style;
  // The options, "key=value,...", that tell this name from others of the same struct. They cannot
  // be given another value.
  std::string fixed;
  Norm (*make)(const NormRequest& request);
  // The options, "key=value,...", whose default differs from that of the struct.
  std::string defaults = "";
};

std::span<const NormRow> row_norms();        // each row by its own statistics
std::span<const NormRow> curve_norms();      // each element by a curve
std::span<const NormRow> group_norms();      // groups of a row's features
std::span<const NormRow> column_norms();     // each feature by its mean and variance over the batch
std::span<const NormRow> quadratic_norms();  // each feature by its quadratic mean over the batch
std::span<const NormRow> weight_norms();     // a layer's weight

// Adds a norm from outside, before any norm is parsed. Throws Error{kUsage} for a name that is
// taken.
void add_norm(NormRow row);

// Refuses values of a norm's options with Error{kUsage}.
struct OptionRanges {
  std::string_view norm;

  template <class T>
  void expect(bool holds, std::string_view option, std::string_view expected, const T& got) const {
    check(holds, ErrorKind::kUsage, "norm {}: option {}: expected {}, got {}", norm, option,
          expected, got);
  }
  template <class T>
  void at_least(T least, std::string_view option, T value) const {
    expect(value >= least, option, fmt::format(">= {}", least), value);
  }
  template <class T>
  void finite(std::string_view option, const T& value) const {
    if constexpr (std::is_same_v<T, double>) {
      expect(std::isfinite(value), option, "a finite number", value);
      expect(std::abs(value) <= std::numeric_limits<float>::max(), option,
             "a number that float32 holds", value);
    }
  }
};

template <class Options>
void check_options(const std::string& norm, const Options& options) {
  const OptionRanges ranges{norm};
  std::apply([&](const auto&... f) { (ranges.finite(f.name, options.*f.member), ...); },
             Options::fields());
  if constexpr (requires { options.validate(ranges); }) options.validate(ranges);
}

// Sets one option. Throws Error{kUsage} for an unknown one and for a value of another kind.
template <class Options>
void read_option(const std::string& norm, const OptionText::value_type& option, Options& options) {
  const auto& [key, value] = option;
  std::vector<std::string> names;
  std::apply([&](const auto&... f) { (names.emplace_back(f.name), ...); }, Options::fields());
  try {
    check(set_field(options, key, value), ErrorKind::kUsage, "{}", unknown_name(key, names));
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "norm {}: option {}: {}", norm, key, error.what());
  }
}

// Refuses a first value of a gain or a bias that is not there.
template <class Options>
void check_first_values(const OptionRanges& ranges, const Options& options, const Options& usual) {
  if constexpr (std::is_base_of_v<AffineOptions, Options>) {
    ranges.expect(options.gain || options.gain_init == usual.gain_init, "gain_init",
                  "gain=true beside it", options.gain_init);
    ranges.expect(options.bias || options.bias_init == usual.bias_init, "bias_init",
                  "bias=true beside it", options.bias_init);
  }
}

template <class Options>
Options read_options(const NormRequest& request) {
  const std::string& norm = request.name;
  Options options;
  if constexpr (requires { Options::defaults(request.given); }) {
    options = Options::defaults(request.given);
  }
  for (const OptionText& source : {request.fixed, request.defaults}) {
    for (const auto& option : source) read_option(norm, option, options);
  }
  const Options usual = options;
  for (const auto& option : request.given) {
    const std::string before = fields_text(options);
    read_option(norm, option, options);
    const auto fixed =
        std::ranges::find(request.fixed, option.first, &OptionText::value_type::first);
    if (fixed == request.fixed.end()) continue;
    check(fields_text(options) == before, ErrorKind::kUsage,
          "norm {}: option {}: expected {}, for which the name stands, got {}", norm, option.first,
          fixed->second, option.second);
  }
  check_options(norm, options);
  check_first_values({norm}, options, usual);
  return options;
}

template <class Options>
Norm make_norm(const NormRequest& request) {
  const auto options = read_options<Options>(request);
  constexpr bool kTakesMask = requires(NormStates & memory, Value x) {
    options.apply(memory, x, x);
  };
  const auto apply = [options](NormStates& memory, Value x, [[maybe_unused]] Value mask) {
    if constexpr (kTakesMask) {
      return options.apply(memory, x, mask);
    } else {
      return options.apply(memory, x);
    }
  };
  Norm::Traits traits{
      .batch_type = Options::kBatchType, .has_bias = options.has_bias(), .takes_mask = kTakesMask};
  if constexpr (requires { options.weight_form(); }) traits.weight_form = options.weight_form();
  if constexpr (requires { options.steps; }) traits.steps = options.steps;
  if constexpr (requires { options.scales_rows(); }) traits.scales_rows = options.scales_rows();
  if constexpr (requires { Options::kNamesFirstStep; }) traits.names_first_step = true;
  return {request.name, fields_text(options), apply, traits};
}

// x and its mask in the shapes that column norms take: images (n, c, h, w) stay as they are;
// anything else becomes (rows, features) with a mask (rows).
struct Columns {
  Columns(Net& net, Value value, Value row_mask = {})
      : x(value), mask(row_mask), shape(net.graph.shape(value)) {
    const bool image = shape.rank() == 4;
    channels = Shape{image ? shape[1] : shape.back()};
    if (image) return;
    const Shape rows{shape.elements(0, shape.rank() - 1)};
    x = ops::reshape(net.graph, x, {rows[0], channels[0]});
    if (!mask.valid()) return;
    const Shape expected(shape.sizes().first(std::size_t(shape.rank() - 1)));
    check(net.graph.shape(mask) == expected, ErrorKind::kUsage, "norm: mask: expected {}, got {}",
          expected.text(), net.graph.shape(mask).text());
    mask = ops::reshape(net.graph, mask, rows);
  }
  // How many consecutive rows of x belong to one row of the batch.
  std::int64_t positions() const {
    return shape.rank() == 4 ? 1 : shape.elements(1, shape.rank() - 1);
  }
  // The statistics over all shards of the batch; absent where only x counts.
  Value moments(const Net& net) const {
    if (!is_shared(net)) return {};
    Graph& g = net.graph;
    const Value own = ops::column_moments(g, x, mask);
    return ops::merge_moments(g, ops::all_shards(g, own, net.shards));
  }
  Value squares(const Net& net, bool all_rows = false) const {
    if (!is_shared(net)) return {};
    Graph& g = net.graph;
    const Value own = ops::column_squares(g, x, mask, {all_rows});
    return ops::merge_sums(g, ops::all_shards(g, own, net.shards));
  }
  static bool is_shared(const Net& net) { return net.training() && net.shards > 1; }
  // Gives y the original shape of x.
  Value restore(Net& net, Value y) const { return ops::reshape(net.graph, y, shape); }

  Value x, mask;
  Shape shape, channels;
};

}  // namespace keel::nn
