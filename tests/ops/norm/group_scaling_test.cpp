// Group scaling: gradients, a worked example, agreement of the backends, refusals.
#include "src/ops/norm/group_scaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/backends.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_golden.h"
#include "tests/support/placed.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

OpCase group_scaling(const Tensor& x, const GroupScalingAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(x.clone());
  c.build = [attrs](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::group_scaling(g, in[0], attrs)};
  };
  return c;
}

// y, rstd and dx for a given dy.
struct Scaled {
  Tensor y, rstd, dx;
};

Scaled run(const std::string& backend, const GroupScalingAttrs& attrs, const Tensor& x,
           const Tensor& dy, int threads = 2) {
  Graph g;
  const TensorType type{DType::kF32, x.shape()};
  const Value in = g.input("x", type), y = ops::group_scaling(g, in, attrs);
  g.mark_output("y", y);
  const Value rstd = y.at(GroupScalingOutput::kRstd);
  g.mark_output("rstd", rstd);
  g.mark_output("dx", g.add(kGroupScalingBackward, {in, rstd, g.input("dy", type)}, attrs));
  Feeds feeds;
  feeds["x"] = x.clone();
  feeds["dy"] = dy.clone();
  Results results = run_graph(*make_backend(backend, {threads}), g, feeds);
  return {std::move(results["y"]), std::move(results["rstd"]), std::move(results["dx"])};
}

Tensor float_normal(const Shape& shape, std::uint32_t stream, double mean = 0) {
  return random_normal(shape, stream, mean).to(DType::kF32).to(DType::kF64);
}

// y and rstd to 16 eps of what they are, dx to 64 eps of the terms that cancel in it:
// rstd * max(max |dy|, max |xhat| * |mean(dy * xhat)|).
void compare(const Tensor& x, const GroupScalingAttrs& attrs) {
  CAPTURE(x.shape().text());
  const Tensor dy = float_normal(x.shape(), 2);
  const Scaled got = run(default_backend(), attrs, x, dy),
               expected = run("reference", attrs, x, dy);
  const RowSizes s = scaled_groups(x.shape(), attrs.groups);
  const double eps = std::numeric_limits<float>::epsilon();
  for (std::int64_t k = 0; k < s.rows; ++k) {
    const double rstd = expected.rstd.at(k);
    double largest_dy = 0, largest_xhat = 0, mean = 0;
    for (std::int64_t i = k * s.width; i < (k + 1) * s.width; ++i) {
      largest_dy = std::max(largest_dy, std::abs(dy.at(i)));
      largest_xhat = std::max(largest_xhat, std::abs(expected.y.at(i)));
      mean += dy.at(i) * expected.y.at(i) / double(s.width);
    }
    const double scale = rstd * std::max(largest_dy, largest_xhat * std::abs(mean));
    int wrong = std::abs(got.rstd.at(k) - rstd) > 16 * eps * rstd;
    for (std::int64_t i = k * s.width; i < (k + 1) * s.width; ++i) {
      const double y = expected.y.at(i);
      wrong += !(std::abs(got.y.at(i) - y) <= 16 * eps * std::max(1.0, std::abs(y)));
      wrong += !(std::abs(got.dx.at(i) - expected.dx.at(i)) <= 64 * eps * scale);
    }
    CHECK(wrong == 0);
  }
}

bool same_bits(const Tensor& a, const Tensor& b, std::int64_t last) {
  const std::int64_t bytes = b.bytes() / last;  // of the last row
  return std::memcmp(a.data() + a.bytes() - bytes, b.data() + b.bytes() - bytes,
                     std::size_t(bytes)) == 0;
}

}  // namespace

TEST_CASE("group_scaling: gradients") {
  for (const auto& [shape, groups] :
       {std::pair<Shape, int>{{3, 6}, 1}, {{3, 6}, 2}, {{2, 2, 6}, 3}, {{2, 4}, 4}, {{5}, 1}}) {
    gradcheck(group_scaling(random_normal(shape, 1, 0.5, 2), {groups, 1e-2}));
  }
}

TEST_CASE("group_scaling: worked example") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const Scaled got = run(backend, {2}, golden("inputs", "x"), golden("inputs", "dy"));
    const auto agrees = [](const Tensor& value, std::string_view key) {
      check_close(value.to(DType::kF64), golden("GroupScaling G=2", key), 5e-6);
    };
    agrees(got.y, "y");
    agrees(got.dx, "dx");
  }
}

TEST_CASE("group_scaling: the backend agrees with the reference") {
  if (default_backend() == "reference") return;
  for (std::int64_t width : {1, 2, 3, 15, 16, 17, 33, 64, 100, 257, 513, 1025, 4099}) {
    for (double mean : {0.0, 1e6}) compare(float_normal({7, 3 * width}, 1, mean), {3});
    for (double eps : {1e-1, 1e-12}) compare(float_normal({2, 3, width}, 1), {1, eps});
  }
  compare(float_normal({1500, 48}, 1), {4});
  compare(float_normal({0, 4}, 1), {2});
}

TEST_CASE("group_scaling: sizes from 1e-30 to FLT_MAX, zeros, and NaN in one group") {
  if (default_backend() == "reference") return;
  const double sizes[] = {1, 1e30, 1e-30, 0, double(std::numeric_limits<float>::max())};
  for (std::int64_t width : {2, 37, 1025}) {
    const Tensor z = float_normal({5 * width}, 3);
    Tensor x(DType::kF64, {1, 5 * width});
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const double size = sizes[i / width];
      x.as<double>()[std::size_t(i)] = float(size * (size > 1e35 ? (i % 2 ? 1 : -1) : z.at(i)));
    }
    compare(x, {5, 1e-5});
    const Tensor dy = float_normal(x.shape(), 2);
    const Scaled finite = run(default_backend(), {5}, x, dy);
    x.as<double>()[0] = NAN;
    const Scaled got = run(default_backend(), {5}, x, dy);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      CHECK((i < width ? std::isnan(got.y.at(i)) : got.y.at(i) == finite.y.at(i)));
      CHECK((i < width ? std::isnan(got.dx.at(i)) : got.dx.at(i) == finite.dx.at(i)));
    }
  }
}

TEST_CASE("group_scaling: any thread count, and a row alone, give the same bits" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  for (const auto& [width, groups] : {std::pair{96, 4}, {1200, 1}, {4097, 1}}) {
    const std::int64_t rows = 203;
    const Tensor x = float_normal({rows, width}, 1), dy = float_normal({rows, width}, 2);
    const Scaled all = run(default_backend(), {groups}, x, dy, 1);
    for (int threads : {2, 3, 7}) {
      const Scaled other = run(default_backend(), {groups}, x, dy, threads);
      CHECK((same_bits(all.y, other.y, 1) && same_bits(all.dx, other.dx, 1)));
    }
    const auto last_row = [&](const Tensor& t) {
      return Tensor::of<double>({1, width}, t.as<double>().last(std::size_t(width)));
    };
    const Scaled alone = run(default_backend(), {groups}, last_row(x), last_row(dy));
    CHECK((same_bits(alone.y, all.y, rows) && same_bits(alone.dx, all.dx, rows)));
  }
}

TEST_CASE("group_scaling: dx over dy gives the same bits") {
  for (const std::string& name : tested_backends()) {
    const auto backend = make_backend(name, {3});
    Graph g;
    const TensorType type{DType::kF32, {150, 301}};
    const Value x = g.input("x", type), rstd = g.input("rstd", {DType::kF32, {150, 7}});
    const Node& node =
        g.node(g.add(kGroupScalingBackward, {x, rstd, g.input("dy", type)}, GroupScalingAttrs{7}));
    const auto stored = [&](std::uint32_t stream, const Shape& shape) {
      return random_normal(shape, stream).to(backend->storage(DType::kF32));
    };
    const Placed xs(*backend, stored(1, type.shape)), rs(*backend, stored(2, {150, 7})),
        dy(*backend, stored(3, type.shape)), dx(*backend, Tensor(dy.ref().type));
    for (const Placed* out : {&dx, &dy}) {
      const Kernel kernel =
          backend->prepare({g, node}).bind({{xs.ref(), rs.ref(), dy.ref()}, {out->ref()}});
      backend->run({&kernel, 1});
    }
    CHECK(same_bits(dx.read(), dy.read(), 1));
  }
}

TEST_CASE("group_scaling: refusals") {
  const auto refused = [](const Shape& x, const GroupScalingAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        {{DType::kF32, x}},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::group_scaling(g, in[0], attrs)};
        },
        "group_scaling", message);
  };
  refused({}, {}, "x: expected (..., features), got ()");
  refused({3, 0}, {}, "x: expected (..., features), got (3, 0)");
  refused({3, 6}, {4}, "groups: expected a divisor of 6 features, got 4");
  refused({3, 6}, {0}, "groups: expected a divisor of 6 features, got 0");
  refused({3, 6}, {1, -1}, "eps: expected >= 0, got -1");
}

}  // namespace keel::test
