#include "tests/support/norm_checks.h"

#include <algorithm>
#include <cstring>

#include "backends/backends.h"

namespace keel::test {
namespace {

bool same_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& s, const Tensor& t) {
    return s.type() == t.type() && std::memcmp(s.data(), t.data(), std::size_t(s.bytes())) == 0;
  });
}

}  // namespace

NormCase case_of(const NormSpec& spec, NormCase c) {
  c.layout = spec.layout;
  c.states = spec.states;
  return c;
}

NormData data_of(const NormSpec& spec, const NormCase& c) {
  NormData data = make_data(c);
  for (const auto& [name, value] : spec.more) data.more[name] = Tensor::of<double>({1}, {value});
  if (spec.parameters != NormParameters::kGainAndBias) data.gain.reset(), data.bias.reset();
  if (spec.parameters == NormParameters::kOneGain && c.gain) {
    data.gain = Tensor::of<double>({1}, {1.75});
  }
  if (!spec.centred) {
    for (Tensor& state : data.state) std::ranges::fill(state.as<double>(), 1);
  }
  return data;
}

NormResult run_fast(const NormSpec& spec, const NormData& data, int threads) {
  return run_norm(*make_backend(default_backend(), {threads}), spec.build, data);
}

NormResult run_reference(const NormSpec& spec, const NormData& data, bool in_place) {
  return run_norm(*make_backend("reference"), spec.build, data, in_place);
}

bool same_bits(const NormResult& a, const NormResult& b) {
  return same_tensors(a.outputs, b.outputs) && same_tensors(a.gradients, b.gradients);
}

bool has_fast_backend() { return default_backend() != "reference"; }

}  // namespace keel::test
