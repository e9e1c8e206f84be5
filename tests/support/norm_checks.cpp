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
