#include "frontend/nn/init.h"

#include <cmath>

namespace keel::nn {
namespace {

// Sets element e to draw(random, e), in whatever floating type the tensor has.
template <class Draw>
Initializer fill(Draw draw) {
  return [draw](Tensor& value, const Philox& random) {
    Tensor drawn(DType::kF64, value.shape());
    std::uint64_t element = 0;
    for (double& x : drawn.as<double>()) x = draw(random, element++);
    value = drawn.to(value.dtype());
  };
}

}  // namespace

Initializer constant(double value) {
  return fill([value](const Philox&, std::uint64_t) { return value; });
}

Initializer normal(double deviation) {
  return fill([deviation](const Philox& r, std::uint64_t e) { return deviation * r.normal(e); });
}

Initializer uniform(double bound) {
  return fill([bound](const Philox& r, std::uint64_t e) { return bound * (2 * r.uniform(e) - 1); });
}

Initializer lecun_normal(std::int64_t fan_in) { return normal(std::sqrt(1.0 / double(fan_in))); }
Initializer kaiming_normal(std::int64_t fan_in) { return normal(std::sqrt(2.0 / double(fan_in))); }
Initializer fan_in_uniform(std::int64_t fan_in) { return uniform(1 / std::sqrt(double(fan_in))); }

Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return uniform(gain * std::sqrt(6.0 / double(fan_in + fan_out)));
}

}  // namespace keel::nn
