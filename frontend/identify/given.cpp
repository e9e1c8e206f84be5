#include "frontend/identify/given.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "src/ops/norm/norm_ops.h"

namespace keel::identify {
namespace {

// The states that norms have, by the kind of their size.
constexpr std::array kOfFeatures{"running_mean", "running_var", "running_std", "psi2",
                                 "nu",           "v",           "t0.mean",     "t0.var"};
constexpr std::array kRings{"x2", "gz"};  // (batches, features)
constexpr std::array kCounters{"step", "t0.seen"};

// The parameters that norms have beside gain and bias, by name.
std::set<std::string> further_names() {
  std::set<std::string> names;
  for (const OpInfo* op : norm_ops()) {
    if (!op->norm) continue;
    for (const std::string_view name : further_parameters(*op)) names.emplace(name);
  }
  return names;
}

class Reader {
 public:
  Reader(io::Arrays arrays, const std::string& path) : arrays_(std::move(arrays)), path_(path) {}

  Tensor needed(const std::string& name) {
    check(arrays_.contains(name), ErrorKind::kBadInput,
          "[identify] {}: expected an array {}, got none", path_, name);
    return *take(name);
  }

  std::optional<Tensor> take(const std::string& name) {
    const auto node = arrays_.extract(name);
    if (node.empty()) return {};
    check(is_floating(node.mapped().dtype()), ErrorKind::kBadInput,
          "[identify] {}: {}: expected f4 or f8, got {}", path_, name, node.mapped().type().text());
    return node.mapped().to(DType::kF64);
  }

  std::map<std::string, Tensor> take_further() {
    std::map<std::string, Tensor> found;
    for (const std::string& name : further_names()) {
      if (std::optional<Tensor> value = take(name)) found[name] = std::move(*value);
    }
    return found;
  }

  // The arrays whose names begin with a prefix, without it.
  std::map<std::string, Tensor> take_all(const std::string& prefix) {
    std::map<std::string, Tensor> found;
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays_) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
    for (const std::string& name : names) {
      // Counters of steps are whole numbers.
      found[name.substr(prefix.size())] = arrays_.extract(name).mapped().to(DType::kF64);
    }
    return found;
  }

  void expect_shape(const std::string& name, const Shape& expected, const Shape& got) const {
    check(got == expected, ErrorKind::kBadInput, "[identify] {}: {}: expected {}, got {}", path_,
          name, expected.text(), got.text());
  }

  void expect_elements(const std::string& name, const std::set<std::int64_t>& expected,
                       const Tensor& got) const {
    check(expected.contains(got.elements()), ErrorKind::kBadInput,
          "[identify] {}: {}: expected {} elements, got {}", path_, name,
          fmt::join(expected, " or "), got.elements());
  }

  // A state of a size that no norm over such features has would hide that norm without a word.
  void expect_state(const std::string& array, const std::string& state,
                    const std::set<std::int64_t>& features, const Tensor& got) const {
    if (std::ranges::find(kOfFeatures, state) != kOfFeatures.end()) {
      return expect_elements(array, features, got);
    }
    if (std::ranges::find(kCounters, state) != kCounters.end()) {
      return expect_elements(array, {1}, got);
    }
    check(std::ranges::find(kRings, state) != kRings.end(), ErrorKind::kBadInput,
          "[identify] {}: {}: expected a state of a norm: {}, {} or {}", path_, array,
          fmt::join(kOfFeatures, ", "), fmt::join(kRings, ", "), fmt::join(kCounters, ", "));
    const auto divides = [&](std::int64_t count) { return got.elements() % count == 0; };
    check(got.elements() > 0 && std::ranges::any_of(features, divides), ErrorKind::kBadInput,
          "[identify] {}: {}: expected a multiple of {} elements, got {}", path_, array,
          fmt::join(features, " or "), got.elements());
  }

  void expect_nothing_left() const {
    check(arrays_.empty(), ErrorKind::kBadInput,
          "[identify] {}: array {}: expected only x, y, gain, bias, {}, dy, dx, dgain, "
          "before.STATE and after.STATE",
          path_, arrays_.empty() ? "" : arrays_.begin()->first, fmt::join(further_names(), ", "));
  }

 private:
  io::Arrays arrays_;
  const std::string& path_;
};

// The features are the last axis, but of images axis 1; so may be those of three axes.
std::set<std::int64_t> features_of(const Shape& x) {
  if (x.rank() == 4) return {x[1]};
  return x.rank() == 3 ? std::set{x[1], x.back()} : std::set{x.back()};
}

// One for each feature, for each element of a sample, for each row as the weights of a unit
// (weight norm), or one for all (ScaleNorm).
void expect_parameters(const Reader& in, const Given& given) {
  const Shape& x = given.x.shape();
  std::set<std::int64_t> of_bias = features_of(x);
  of_bias.insert(x.elements() / x[0]);
  std::set<std::int64_t> of_gain = of_bias;
  of_gain.insert({1, x[0]});
  if (given.gain) in.expect_elements("gain", of_gain, *given.gain);
  if (given.bias) in.expect_elements("bias", of_bias, *given.bias);
  for (const auto& [name, value] : given.more) in.expect_elements(name, of_gain, value);
  if (given.dgain && given.gain) {
    in.expect_elements("dgain", {given.gain->elements()}, *given.dgain);
  } else if (given.dgain) {
    in.expect_elements("dgain", of_gain, *given.dgain);
  }
}

void expect_states(const Reader& in, const Given& given) {
  const std::set<std::int64_t> features = features_of(given.x.shape());
  for (const auto& [state, value] : given.before) {
    in.expect_state("before." + state, state, features, value);
  }
  for (const auto& [state, value] : given.after) {
    in.expect_state("after." + state, state, features, value);
    const auto before = given.before.find(state);
    if (before == given.before.end()) continue;
    in.expect_elements("after." + state, {before->second.elements()}, value);
  }
}

void expect_dy(const Given& given, const std::string& path) {
  check(given.dy || (!given.dx && !given.dgain), ErrorKind::kBadInput,
        "[identify] {}: {}: expected dy too", path, given.dx ? "dx" : "dgain");
}

// Only a norm with a gain has a gradient of one.
void add_gain(Given& given) {
  if (!given.dgain || given.gain) return;
  given.gain = Tensor(DType::kF64, given.dgain->shape());
  std::ranges::fill(given.gain->as<double>(), 1);
}

}  // namespace

Given given_of(io::Arrays arrays, const std::string& path) {
  Reader in(std::move(arrays), path);
  Given given{.x = in.needed("x"),
              .y = in.needed("y"),
              .gain = in.take("gain"),
              .bias = in.take("bias"),
              .dy = in.take("dy"),
              .dx = in.take("dx"),
              .dgain = in.take("dgain"),
              .more = in.take_further(),
              .before = in.take_all("before."),
              .after = in.take_all("after.")};
  in.expect_nothing_left();
  const Shape& shape = given.x.shape();
  check(shape.rank() >= 2 && shape.rank() <= 4 && shape.elements() > 0, ErrorKind::kBadInput,
        "[identify] {}: x: expected two, three or four axes with elements, got {}", path,
        shape.text());
  check(shape.elements() <= kMostElements, ErrorKind::kBadInput,
        "[identify] {}: x: expected at most {} elements, got {}: some rows of a norm over rows, or "
        "some features of one over the batch, will do",
        path, kMostElements, shape.elements());
  in.expect_shape("y", shape, given.y.shape());
  if (given.dy) in.expect_shape("dy", shape, given.dy->shape());
  if (given.dx) in.expect_shape("dx", shape, given.dx->shape());
  expect_parameters(in, given);
  expect_dy(given, path);
  expect_states(in, given);
  add_gain(given);
  return given;
}

}  // namespace keel::identify
