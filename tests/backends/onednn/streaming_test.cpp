// Results that are large enough to be stored past the caches: rows and spans that are whole
// registers, and some that are not.
#include "backends/onednn/streaming.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "bench/norm_accuracy.h"
#include "bench/norm_cases.h"
#include "bench/norm_errors.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/rms_norm.h"
#include "tests/support/graph_runner.h"

namespace keel::test {
namespace {

void check_large(const NormBuild& build, const NormCase& c) {
  CAPTURE(c.text());
  REQUIRE(c.shape().elements() * std::int64_t(sizeof(float)) >= onednn::kStreamedBytes);
  const NormData data = make_data(c);
  const NormErrors errors =
      norm_errors(c, data, run_norm(*make_backend("onednn", {2}), build, data),
                  run_norm(*make_backend("reference"), build, data));
  CHECK(errors.forward <= kForwardBound);
  CHECK(errors.dx <= kBackwardBound);
  CHECK(errors.parameters <= kBackwardBound);
}

}  // namespace

TEST_CASE("onednn norms: results past the caches are large, of whole lines, elsewhere") {
  Tensor x(DType::kF32, {onednn::kStreamedBytes / std::int64_t(sizeof(float))}), y = x.clone();
  const auto ref = [](Tensor& of, const Shape& shape, DType dtype = DType::kF32) {
    return TensorRef{of.data(), {dtype, shape}};
  };
  const auto streams = [&](const TensorRef& in, const TensorRef& out, std::size_t row) {
    return onednn::is_streamed({{{}, in}, {out}, nullptr}, row);
  };
  const Shape large = x.shape(), small{x.elements() - 16};
  CHECK(streams(ref(x, large), ref(y, large), 128));
  CHECK_FALSE(streams(ref(x, large), ref(y, large), 130));
  CHECK_FALSE(streams(ref(x, small), ref(y, small), 128));
  CHECK_FALSE(streams(ref(x, large), ref(x, large), 128));
  // A line of 64 bytes is 16 floats or 32 numbers of bf16.
  const Shape twice{2 * x.elements()};
  CHECK(streams(ref(x, large), ref(y, large), 144));
  CHECK(streams(ref(x, large), ref(y, twice, DType::kBF16), 128));
  CHECK_FALSE(streams(ref(x, large), ref(y, twice, DType::kBF16), 144));
  CHECK_FALSE(streams(ref(x, large), ref(y, large, DType::kBF16), 128));
}

TEST_CASE("onednn norms: results past the caches are those of the reference" *
          doctest::test_suite("slow")) {
  const NormBuild layer_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::layer_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
  };
  const NormBuild rms_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::rms_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
  };
  check_large(layer_norm, {.groups = 32'900, .n = 128});
  check_large(layer_norm, {.groups = 32'900, .n = 130});
  check_large(rms_norm, {.groups = 32'900, .n = 128});
  const NormBuild batch_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1]}, {.eps = eps});
  };
  const NormBuild pn_v = [](Graph& g, const NormInputs& in, double eps) {
    return ops::pn_v(g, in.x, {in.gain, in.bias}, {in.state[0], {}}, {.eps = eps});
  };
  // Two images have spans of 32 832, or of 32 900 elements, which is no whole number of registers.
  struct Columns {
    NormBuild build;
    int states;
    std::int64_t channels, pixels;
  };
  for (const Columns& c : {Columns{batch_norm, 2, 128, 32'832}, Columns{batch_norm, 2, 130, 32'900},
                           Columns{pn_v, 1, 128, 32'832}}) {
    check_large(
        c.build,
        {.layout = NormLayout::kColumns, .groups = c.channels, .n = 32'900, .states = c.states});
    check_large(
        c.build,
        {.layout = NormLayout::kImages, .groups = 64, .n = 2 * c.pixels, .states = c.states});
  }
}

TEST_CASE("onednn norms: groups of images past the caches are those of the reference" *
          doctest::test_suite("slow")) {
  const NormBuild group_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::group_norm(g, in.x, {in.gain, in.bias}, {.groups = 4, .eps = eps});
  };
  for (const std::int64_t n : {2 * 16'512, 2 * 16'550}) {
    check_large(group_norm, {.layout = NormLayout::kInstances, .groups = 160, .n = n, .split = 4});
  }
}

TEST_CASE("onednn norms: results past the caches keep the bounds" * doctest::test_suite("slow")) {
  const auto backend = make_backend("onednn", {2});
  const std::pair<const char*, const char*> cases[] = {
      {"groupnorm{groups=4}", "rows,groups=33600,n=128,split=4"},
      {"instancenorm", "sequences,groups=128,n=32900"},
      {"adanorm", "rows,groups=32900,n=128"},
      {"scalenorm", "rows,groups=32900,n=128"},
      {"detachnorm", "rows,groups=32900,n=128"},
      {"detachmean", "rows,groups=32900,n=128"},
      {"groupscaling{groups=4}", "rows,groups=33600,n=128,split=4"},
      {"batchrenorm", "columns,groups=128,n=32900"},
      {"mabn", "columns,groups=128,n=32900"},
      {"powernorm", "columns,groups=128,n=32900"}};
  for (const auto& [norm, at] : cases) {
    for (const bench::WorstError& worst : bench::measure_accuracy(*backend, norm, at).worst) {
      CAPTURE(norm);
      CAPTURE(worst.of);
      CHECK(worst.error <= worst.bound);
    }
  }
}

}  // namespace keel::test
