// Element-wise codes of the onednn backend against their definition: accuracy on every instruction
// set, special values, sizes, writing over an operand.
#include "src/ops/elementwise.h"

#include <limits>

#include "backends/onednn/backend.h"
#include "backends/onednn/kernels/elementwise_steps.h"
#include "backends/onednn/kernels/kernels.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using enum EwCode;

// Bound on the error of a code: `relative` eps of the result, and `absolute` eps of |operand 0|
// where the code subtracts numbers of the operands' size. eps is half an ulp of 1.
struct Accuracy {
  EwCode code;
  double relative, absolute = 0;
};

// One rounding costs 1 eps. Functions: the errors that simd/math.h gives, in units of 2 eps, plus 1
// unit for targets without FMA. Backward codes add 1 eps for each further operation.
constexpr Accuracy kAccuracies[] = {
    {kAdd, 1},
    {kSub, 1},
    {kMul, 1},
    {kDiv, 1},
    {kMaximum, 0},
    {kMinimum, 0},
    {kScale, 1, 1.75},  // the product, on targets without FMA
    {kNeg, 0},
    {kSquare, 1},
    {kSqrt, 1},
    {kExp, 2 * 1.7},
    {kLog, 2 * 1.7},
    {kAbs, 0},
    {kRelu, 0},
    {kTanh, 2 * 2.2},
    {kSigmoid, 2 * 2.5},
    {kGelu, 2 * 4.3},
    {kSoftplus, 2 * 2.5},
    {kSqrtBackward, 1},
    {kReluBackward, 0},
    {kTanhBackward, 2, 2},  // 1 - b^2 rounds to eps of 1
    {kSigmoidBackward, 3},  // 1 - b is exact or far from 0
    {kSquareBackward, 1},
    {kAbsBackward, 0},
    {kGeluBackward, 2, 2 * 5},  // the two parts of the derivative, each below 1.2, cross at -0.75
    {kSoftplusBackward, 2 * 2.5 + 1},
    {kGreaterEqualBackward, 0},
    {kLessBackward, 0},
};

constexpr ScaleAttrs kScaleAttrs{1.75, -0.375};  // exact in float

using Operands = std::array<std::vector<float>, 3>;

// code applied by the kernel to operands of one length.
std::vector<float> run_kernel(EwCode code, const Operands& x) {
  std::vector<float> y(x[0].size());
  onednn::StepArgs args;
  for (std::size_t i = 0; i < 3; ++i) args.source[i] = {x[i].data(), 1};
  args.out = y.data();
  args.n = y.size();
  args.factor = float(kScaleAttrs.factor);
  args.offset = float(kScaleAttrs.offset);
  onednn::run_step(code, args);
  return y;
}

// Codes that read a result of the forward are only asked about results that there are.
bool is_reachable(EwCode code, double b) {
  if (code == kTanhBackward) return !(std::abs(b) > 1);
  if (code == kSqrtBackward) return !(b < 0) && !(b > 1.9e19 && std::isfinite(b));
  return true;
}

// Whether `got` is what the code should give on one element.
bool is_accurate(const Accuracy& row, const std::array<double, 3>& x, float got) {
  if (!is_reachable(row.code, x[1])) return true;
  const double expected = evaluate(row.code, x, kScaleAttrs);
  if (std::isnan(expected)) return std::isnan(got);
  const float rounded = float(expected);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded;
  double bound = kEps * (row.relative * std::abs(expected) + row.absolute * std::abs(x[0]));
  // Functions with results below 1e-36 lose bits to subnormal numbers on the way.
  bound += 200 * 0x1p-149 * (1 + std::abs(x[0]));
  return std::abs(got - expected) <= bound;
}

void check_accuracy(const Accuracy& row, const Operands& x) {
  const std::vector<float> y = run_kernel(row.code, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::array<double, 3> at{x[0][i], x[1][i], x[2][i]};
    if (is_accurate(row, at, y[i])) continue;
    CAPTURE(elementwise_op(row.code).name);
    CAPTURE(i);
    CAPTURE(x[0][i]);
    CAPTURE(x[1][i]);
    CHECK(double(y[i]) == evaluate(row.code, at, kScaleAttrs));
    return;
  }
}

// Normal numbers of very different deviations, so that every range of a function is met.
std::vector<float> spread(std::int64_t n, std::uint32_t stream) {
  std::vector<float> x;
  const Philox random(7, stream);
  for (std::int64_t i = 0; i < n; ++i) {
    const double deviation = std::exp2(double(i % 23) - 16);
    x.push_back(float(deviation * random.normal(std::uint64_t(i))));
  }
  return x;
}

TEST_CASE("onednn elementwise: every code is accurate at every size" *
          doctest::test_suite("slow")) {
  for_each_target([] {
    for (const Accuracy& row : kAccuracies) {
      for (const std::int64_t n : kSizes) {
        check_accuracy(row, {spread(n, 1), spread(n, 2), spread(n, 3)});
      }
    }
  });
}

// All pairs of special values (of the first two operands; the third is the first, turned round).
Operands special_operands() {
  const float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {
      0.0f,      -0.0f,  1.0f,      -1.0f,  0.5f,        -0.75179f,  3.0f,        1e-20f,
      -1e-20f,   1e-40f, -1e-40f,   1e20f,  -1e20f,      3e38f,      -3e38f,      infinity,
      -infinity, NAN,    88.7f,     -88.7f, 89.5f,       -103.9f,    104.5f,      -10.0f,
      -14.0f,    1e-45f, 0x1p-126f, -5.5f,  0.99999994f, 1.0000001f, 0.70710677f, 0.70710683f};
  Operands x;
  for (const float a : values) {
    for (const float b : values) {
      x[0].push_back(a);
      x[1].push_back(b);
    }
  }
  x[2].assign(x[0].rbegin(), x[0].rend());
  return x;
}

TEST_CASE("onednn elementwise: NaN, infinities, zeros and subnormal numbers") {
  for_each_target([] {
    for (const Accuracy& row : kAccuracies) check_accuracy(row, special_operands());
  });
}

TEST_CASE("onednn elementwise: comparisons, select and cast") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      OpCase c;
      for (std::uint32_t i = 0; i < 4; ++i) c.inputs.push_back(random_f32({n}, i));
      c.inputs[1].as<double>()[0] = c.inputs[0].at(0);
      c.gradients = false;
      c.build = [](Graph& g, const std::vector<Value>& v) {
        const Value less = ops::less(g, v[0], v[1]);
        const Value thousands = ops::scale(g, v[2], 1000);
        return std::vector{less, ops::equal(g, v[0], v[1]), ops::select(g, less, v[2], v[3]),
                           ops::cast(g, thousands, DType::kI32),
                           ops::cast(g, ops::cast(g, less, DType::kI32), DType::kF32)};
      };
      const Results got = run_tested(c), expected = run_reference(c);
      // 1000 x is rounded before it is truncated; it may fall on the other side of an integer.
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        check_within(got.at(name), value, [&](auto) { return name == "y3" ? 1.0 : 0.0; });
      }
    }
  });
}

// A node's kernel with its output over operand `over`, or apart from all of them.
Tensor run_aliased(const Graph& g, Value y, const std::vector<Tensor>& x, int over) {
  onednn::OnednnBackend backend(2);
  const Prepared prepared = backend.prepare({g, g.node(y)});
  Tensor out(g.type(y));
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < g.node(y).inputs.size(); ++i) operands.push_back(x[i].clone());
  Binding binding;
  for (Tensor& operand : operands) binding.inputs.push_back({operand.data(), operand.type()});
  Tensor& target = over < 0 ? out : operands[std::size_t(over)];
  binding.outputs.push_back({target.data(), out.type()});
  const Kernel kernel = prepared.bind(binding);
  backend.run({&kernel, 1});
  return target.clone();
}

TEST_CASE("onednn elementwise: an output may lie over an operand of its type") {
  Graph g;
  const Shape shape{37, 1025}, row{1025}, column{37, 1};
  std::vector<Value> v;
  std::vector<Tensor> x;
  for (const Shape& s : {shape, shape, row, column}) {
    x.push_back(random_normal(s, std::uint32_t(v.size())).to(DType::kF32));
    v.push_back(g.input(fmt::format("x{}", v.size()), {DType::kF32, s}));
  }
  EwProgram program{.inputs = 4, .steps = {}};
  program.steps.push_back({kMul, {0, 2, -1}, {}});
  program.steps.push_back({kTanh, {4, -1, -1}, {}});
  program.steps.push_back({kAdd, {5, 3, -1}, {}});
  program.steps.push_back({kMul, {6, 1, -1}, {}});
  program.steps.push_back({kSub, {7, 0, -1}, {}});
  const Value fused = g.add(kFusedElementwise, {v[0], v[1], v[2], v[3]}, FusedAttrs{program});
  const Value product = ops::mul(g, v[0], v[1]);
  for (int over : {0, 1}) {
    CAPTURE(over);
    const Tensor apart = run_aliased(g, fused, x, -1);
    const Tensor aliased = run_aliased(g, fused, x, over);
    CHECK(std::memcmp(aliased.data(), apart.data(), std::size_t(apart.bytes())) == 0);
    const Tensor single = run_aliased(g, product, x, -1);
    const Tensor over_it = run_aliased(g, product, x, over);
    CHECK(std::memcmp(over_it.data(), single.data(), std::size_t(single.bytes())) == 0);
  }
}

}  // namespace
}  // namespace keel::test
