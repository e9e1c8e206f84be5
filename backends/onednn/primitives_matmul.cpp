// Matrix products of oneDNN.
#include "backends/onednn/primitives_plan.h"
#include "src/ops/matmul.h"

namespace keel::onednn {
namespace {

// Describes (batch, rows, cols), or (rows, cols) for one matrix, stored as (cols, rows) when
// `transposed`.
Desc matrix(const Dims& sizes, bool transposed) {
  const std::int64_t rows = sizes[sizes.size() - 2], cols = sizes.back();
  Dims strides = transposed ? Dims{1, rows} : Dims{cols, 1};
  if (sizes.size() == 3) strides.insert(strides.begin(), rows * cols);
  return {sizes, dnnl::memory::data_type::f32, strides};
}

void add_product(Plan& plan, const MatmulSpec& spec) {
  const auto sizes = [&](std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    return spec.batch == 1 ? Dims{rows, cols} : Dims{batch, rows, cols};
  };
  const Desc a = matrix(sizes(spec.batch, spec.m, spec.k), spec.transpose_a);
  const Desc b = matrix(sizes(spec.shared_b ? 1 : spec.batch, spec.k, spec.n), spec.transpose_b);
  const Desc y = matrix(sizes(spec.batch, spec.m, spec.n), false);
  const Desc bias = spec.bias ? matrix(sizes(1, 1, spec.n), false) : Desc();
  const auto describe = [&](const dnnl::primitive_attr& attributes) {
    return dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, y, attributes);
  };
  plan.add(describe, spec.relu, [&](const auto&) {
    using In = MatmulInput;
    std::vector<Argument> arguments{{DNNL_ARG_SRC, a, input(In::kA)},
                                    {DNNL_ARG_WEIGHTS, b, input(In::kB)},
                                    {DNNL_ARG_DST, y, output(0)}};
    if (spec.bias) arguments.push_back({DNNL_ARG_BIAS, bias, input(In::kBias)});
    return arguments;
  });
}

}  // namespace

Prepared make_matmul(const MatmulSpec& spec) {
  return make_plan([&](Plan& plan) { add_product(plan, spec); });
}

}  // namespace keel::onednn
