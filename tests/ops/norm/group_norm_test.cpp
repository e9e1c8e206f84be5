// Group norm: the promises of every norm for one group, then for several groups of tokens and of
// images; worked examples, instance norm, refusals.
#include "src/ops/norm/group_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/backends.h"
#include "bench/norm_errors.h"
#include "src/ops/layout.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/sizes.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/graph_runner.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

NormBuild group_norm(GroupNormAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::group_norm(g, in.x, {in.gain, in.bias}, attrs);
  };
}

struct GroupCase {
  Shape x;
  std::int64_t groups;
  double mean = 0, deviation = 1;
  bool affine = true;

  GroupSizes sizes() const { return group_sizes(x, groups); }
  // The groups as rows, for the scale of errors; gains are about 1.
  NormCase rows() const {
    return {
        NormLayout::kRows, sizes().samples * groups, sizes().width(), mean, deviation, 1e-5, false};
  }
  std::string text() const {
    return fmt::format("x={} groups={} mean={} deviation={}", x.text(), groups, mean, deviation);
  }
};

Tensor float_normal(const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  return random_normal(shape, stream, mean, deviation).to(DType::kF32).to(DType::kF64);
}

NormData make_data(const GroupCase& c) {
  NormData data{
      float_normal(c.x, 1, c.mean, c.deviation), float_normal(c.x, 2, 0, 1), {}, {}, {}, 1e-5};
  if (c.affine) data.gain = float_normal({c.x[1]}, 3, 1, 0.2);
  if (c.affine) data.bias = float_normal({c.x[1]}, 4, 0, 0.2);
  return data;
}

NormResult run_fast(const GroupCase& c, const NormData& data, int threads = 2,
                    bool in_place = false) {
  return run_norm(*make_backend(default_backend(), {threads}), group_norm({.groups = c.groups}),
                  data, in_place);
}

// The largest error of dgain and dbias in units of eps, relative to the sums of |dy| * max(1,
// |xhat|) and of |dy|.
double parameter_error(const GroupCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected) {
  const GroupSizes s = c.sizes();
  std::vector<double> dgain(std::size_t(c.x[1])), dbias = dgain;
  for (std::int64_t i = 0; i < data.x.elements(); ++i) {
    const std::int64_t k = i / s.width();
    const double mean = expected.outputs[GroupNormOutput::kMean].at(k),
                 rstd = expected.outputs[GroupNormOutput::kRstd].at(k);
    const double xhat = (data.x.at(i) - mean) * rstd, dy = std::abs(data.dy.at(i));
    dgain[std::size_t(i / s.inner % c.x[1])] += dy * std::max(1.0, std::abs(xhat));
    dbias[std::size_t(i / s.inner % c.x[1])] += dy;
  }
  double largest = 0;
  for (std::int64_t i = 0; i < expected.gradients[GroupNormGradient::kDgain].elements(); ++i) {
    const auto error = [&](std::size_t p, const std::vector<double>& scale) {
      return std::abs(got.gradients[p].at(i) - expected.gradients[p].at(i)) / scale[std::size_t(i)];
    };
    largest = std::max({largest, error(1, dgain), error(2, dbias)});
  }
  return largest / std::numeric_limits<float>::epsilon();
}

void compare(const GroupCase& c) {
  CAPTURE(c.text());
  NormData data = make_data(c);
  NormResult got = run_fast(c, data);
  NormResult expected =
      run_norm(*make_backend("reference"), group_norm({.groups = c.groups}), data);
  CHECK(got.workspace <= (1 << 20) + 64 * c.x[1]);
  CHECK(parameter_error(c, data, got, expected) <= kBackwardBound);
  data.gain.reset();
  for (std::size_t p : {1, 2}) expected.gradients[p] = Tensor(DType::kF64, Shape{0});
  const NormErrors errors = norm_errors(c.rows(), data, got, expected);
  CHECK(errors.forward <= kForwardBound);
  CHECK(errors.dx <= kBackwardBound);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

// Sample i of a tensor alone.
Tensor sample(const Tensor& t, std::int64_t i) {
  Tensor one(t.dtype(), t.shape().with(0, 1));
  std::memcpy(one.data(), t.data() + i * one.bytes(), std::size_t(one.bytes()));
  return one;
}

// The last sample alone has the same y and dx as among `all`.
void check_last_alone(const GroupCase& c, NormData data, const NormResult& all) {
  const std::int64_t last = c.x[0] - 1;
  data.x = sample(data.x, last);
  data.dy = sample(data.dy, last);
  const NormResult alone = run_fast(c, data);
  CHECK(same_bits(alone.outputs[GroupNormOutput::kY],
                  sample(all.outputs[GroupNormOutput::kY], last)));
  CHECK(same_bits(alone.gradients[GroupNormGradient::kDx],
                  sample(all.gradients[GroupNormGradient::kDx], last)));
}

const std::vector<GroupCase> kBlocks{{{700, 96}, 8},
                                     {{300, 30}, 3},
                                     {{5, 4096}, 64},
                                     {{65, 12, 17, 19}, 4},
                                     {{300, 6, 2, 3}, 3},
                                     {{3, 64, 33, 33}, 64},
                                     {{70, 10, 1, 1}, 5},
                                     {{40, 8, 15, 15}, 2, 1e6, 1},
                                     {{33, 20}, 4, -3e4, 0.5},
                                     {{2100, 266}, 133},
                                     {{61, 20}, 5},
                                     {{9, 400}, 100, 1e6, 1},
                                     {{37, 25}, 1},
                                     {{40, 512}, 32},
                                     {{70, 46}, 23},
                                     {{18, 8, 3, 1}, 4}};

}  // namespace

TEST_CASE("group_norm: what every norm promises, one group" * doctest::test_suite("slow")) {
  check_norm({group_norm({.groups = 1})});
}

TEST_CASE("group_norm: what every norm promises, unbiased with eps outside" *
          doctest::test_suite("slow")) {
  check_norm(
      {group_norm({.unbiased = true, .eps_outside = true}), NormLayout::kRows, 0, nullptr, 2});
}

TEST_CASE("group_norm: worked example") {
  check_golden({group_norm({.groups = 2})}, "GroupNorm G=2", {"y", "dx"});
}

TEST_CASE("group_norm: gradients of several groups") {
  for (bool outside : {false, true}) {
    for (const auto& [shape, groups] : {std::pair<Shape, int>{{3, 6}, 2},
                                        {{2, 4, 2, 3}, 2},
                                        {{3, 3, 2, 2}, 3},
                                        {{2, 4, 1, 1}, 2},
                                        {{2, 6, 1, 2}, 1}}) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
      for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal({shape[1]}, i, 1, 0.5));
      c.build = [&](Graph& g, const std::vector<Value>& in) {
        const GroupNormAttrs attrs{groups, 1e-2, outside, outside};
        return std::vector{ops::group_norm(g, in[0], {in[1], in[2]}, attrs)};
      };
      gradcheck(c);
    }
  }
}

TEST_CASE("group_norm: groups = channels on images is a layer norm of every plane") {
  const auto run = [](bool instance) {
    OpCase c;
    c.inputs.push_back(random_normal({2, 3, 4, 5}, 1));
    c.build = [instance](Graph& g, const std::vector<Value>& in) {
      return std::vector{instance ? ops::group_norm(g, in[0], {}, {.groups = 3})
                                  : ops::layer_norm(g, in[0], {}, {.axes = 2})};
    };
    return run_reference(c);
  };
  const Results instance = run(true), planes = run(false);
  for (const char* name : {"y0", "d0"}) check_close(instance.at(name), planes.at(name));
}

TEST_CASE("group_norm: the backend agrees with the reference on several groups" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  for (std::int64_t width : {1, 2, 3, 15, 16, 17, 33, 64, 100, 257, 1025}) {
    for (const auto& [mean, deviation] : {std::pair{0.0, 1.0}, {1e6, 1.0}, {100.0, 0.01}}) {
      compare({{9, 3 * width}, 3, mean, deviation});
      compare({{3, 6, 1, width}, 2, mean, deviation, width % 2 == 0});
    }
  }
  for (const GroupCase& c : kBlocks) compare(c);
  compare({{2, 2080, 2, 2}, 2});  // small images with more columns than sums are kept for
  compare({{0, 6}, 2});
  compare({{0, 6, 2, 2}, 2});
}

// Groups of a few elements are taken 16 at a time, from one sample or from several.
TEST_CASE("group_norm: groups of a few elements, as many as there are" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  for (std::int64_t width = 1; width <= 34; ++width) {
    for (const std::int64_t groups : {1, 5, 16, 19}) {
      const double mean = width % 2 == 0 ? 1e6 : 0;
      compare({{19, groups * width}, groups, mean, 1, width % 5 != 0});
    }
  }
}

TEST_CASE("group_norm: small groups whose squares leave the range of a float") {
  if (default_backend() == "reference") return;
  for (const std::int64_t width : {2, 3, 4, 8, 12, 32}) {
    for (const double size : {1e-25, 1e-30, 1e25, 1e38}) {
      const GroupCase c{{7, 5 * width}, 5};
      NormData data = make_data(c);
      for (double& x : data.x.as<double>()) x = double(float(x / 8 * size));
      data.eps = size * size * 1e-3;
      // One group has ordinary values.
      for (std::int64_t i = 0; i < width; ++i) data.x.as<double>()[std::size_t(i)] = double(i);
      CAPTURE(width);
      CAPTURE(size);
      const NormBuild build = group_norm({.groups = c.groups});
      const NormResult got = run_fast(c, data),
                       expected = run_norm(*make_backend("reference"), build, data);
      for (std::int64_t i = 0; i < c.x.elements(); ++i) {
        const double y = expected.outputs[GroupNormOutput::kY].at(i);
        CHECK(std::abs(got.outputs[GroupNormOutput::kY].at(i) - y) <=
              16 * std::numeric_limits<float>::epsilon() * std::max(1.0, std::abs(y)));
      }
    }
  }
}

TEST_CASE("group_norm: groups of the largest floats of both signs") {
  if (default_backend() == "reference") return;
  const double largest = std::numeric_limits<float>::max();
  for (const std::int64_t width : {3, 5, 32, 100}) {
    const GroupCase c{{7, 5 * width}, 5};
    NormData data = make_data(c);
    for (std::int64_t i = 0; i < c.x.elements(); ++i) {
      data.x.as<double>()[std::size_t(i)] = i % 3 == 0 ? -largest : largest;
    }
    CAPTURE(width);
    const NormBuild build = group_norm({.groups = c.groups});
    const NormResult got = run_fast(c, data),
                     expected = run_norm(*make_backend("reference"), build, data);
    for (std::int64_t i = 0; i < c.x.elements(); ++i) {
      const double y = expected.outputs[GroupNormOutput::kY].at(i);
      CHECK(std::abs(got.outputs[GroupNormOutput::kY].at(i) - y) <=
            16 * std::numeric_limits<float>::epsilon() * std::max(1.0, std::abs(y)));
      CHECK(std::isfinite(got.gradients[GroupNormGradient::kDx].at(i)));
    }
    for (std::int64_t i = 0; i < 5 * width; ++i) {
      CHECK(std::isfinite(got.gradients[GroupNormGradient::kDgain].at(i)));
    }
  }
}

TEST_CASE("group_norm: any thread count, in place or a sample alone, give the same bits" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  for (const GroupCase& c : kBlocks) {
    CAPTURE(c.text());
    NormData data = make_data(c);
    const NormResult all = run_fast(c, data, 1);
    for (int threads : {2, 3, 7}) {
      const NormResult other = run_fast(c, data, threads, threads > 2);
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(same_bits(other.outputs[j], all.outputs[j]));
        CHECK(same_bits(other.gradients[j], all.gradients[j]));
      }
    }
    check_last_alone(c, std::move(data), all);
  }
}

TEST_CASE("group_norm: results of 16 MiB, written past the caches, are the same" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  for (const GroupCase& c : {GroupCase{{4096, 1024}, 8}, GroupCase{{64, 64, 32, 32}, 8}}) {
    CAPTURE(c.text());
    NormData data = make_data(c);
    const NormResult all = run_fast(c, data);
    check_last_alone(c, std::move(data), all);
  }
}

TEST_CASE("group_norm: a NaN stays in its group and in its channels") {
  if (default_backend() == "reference") return;
  for (const Shape& shape : {Shape{9, 10}, Shape{3, 10, 3, 3}, Shape{3, 34}}) {
    const GroupCase c{shape, 2};
    NormData data = make_data(c);
    const NormResult finite = run_fast(c, data);
    const GroupSizes s = c.sizes();
    data.x.as<double>()[std::size_t(s.width() * 2)] = NAN;  // sample 1, group 0
    const NormResult got = run_fast(c, data);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const bool spoilt = i / s.width() == 2;
      CHECK(std::isnan(got.outputs[GroupNormOutput::kY].at(i)) == spoilt);
      CHECK(std::isnan(got.gradients[GroupNormGradient::kDx].at(i)) == spoilt);
      if (!spoilt)
        CHECK(got.gradients[GroupNormGradient::kDx].at(i) ==
              finite.gradients[GroupNormGradient::kDx].at(i));
    }
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      CHECK(std::isnan(got.gradients[GroupNormGradient::kDgain].at(i)) == (i < s.channels));
    }
  }
}

TEST_CASE("group_norm: a constant group gives the bias") {
  for (const std::string& name : tested_backends()) {
    for (const Shape& shape : {Shape{2, 6}, Shape{2, 6, 3, 3}}) {
      const GroupCase c{shape, 3};
      NormData data = make_data(c);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        data.x.as<double>()[std::size_t(i)] = 1e6 * double(i / c.sizes().width()) + 0.5;
      }
      const NormResult got = run_norm(*make_backend(name), group_norm({.groups = 3}), data);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        CHECK(got.outputs[GroupNormOutput::kY].at(i) == data.bias->at(i / c.sizes().inner % 6));
      }
    }
  }
}

// A value of 0 in such a group would be further from the mean than a float can say.
TEST_CASE("group_norm: a constant group of large values has finite gradients") {
  for (const std::string& name : tested_backends()) {
    CAPTURE(name);
    for (const Shape& shape : {Shape{1, 4}, Shape{1, 4, 8, 8}, Shape{1, 4, 3, 5}}) {
      NormData data = make_data(GroupCase{shape, 2});
      std::ranges::fill(data.x.as<double>(), 1e37);
      const NormResult got = run_norm(*make_backend(name), group_norm({.groups = 2}), data);
      for (std::int64_t c = 0; c < 4; ++c) {
        CHECK(got.gradients[GroupNormGradient::kDgain].at(c) == 0);
        CHECK(std::isfinite(got.gradients[GroupNormGradient::kDbias].at(c)));
      }
    }
  }
}

TEST_CASE("group_norm: refusals") {
  const auto refused = [](const std::vector<Shape>& shapes, const GroupNormAttrs& attrs,
                          std::string_view message) {
    std::vector<TensorType> inputs;
    for (const Shape& shape : shapes) inputs.push_back({DType::kF32, shape});
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const Value gain = in.size() > 1 ? in[1] : Value{},
                      bias = in.size() > 2 ? in[2] : Value{};
          return std::vector{ops::group_norm(g, in[0], {gain, bias}, attrs)};
        },
        "group_norm", message);
  };
  refused({{6}}, {}, "x: expected (rows, channels) or (n, channels, h, w), got (6)");
  refused({{3, 6}}, {.groups = 4}, "groups: expected a divisor of 6 channels, got 4");
  refused({{3, 6}}, {.groups = 0}, "groups: expected a divisor of 6 channels, got 0");
  refused({{3, 6, 0, 2}}, {}, "x: expected at least one element a group, got (3, 6, 0, 2)");
  refused({{3, 0}}, {}, "x: expected at least one element a group, got (3, 0)");
  refused({{3, 6}, {3}}, {.groups = 2}, "gain: expected (6), got (3)");
  refused({{3, 6}, {6}, {1, 6}}, {.groups = 2}, "bias: expected (6), got (1, 6)");
  refused({{3, 6}}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({{3, 6}}, {.groups = 6, .unbiased = true}, "x: expected at least 2 elements");
}

}  // namespace keel::test
