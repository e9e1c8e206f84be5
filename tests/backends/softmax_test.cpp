// Softmax and its logarithm on numbers that are not finite, and alone.
#include "src/ops/softmax.h"

#include <algorithm>
#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

TEST_CASE("backend softmax: masked, huge and non-finite logits") {
  const double infinity = std::numeric_limits<double>::infinity();
  OpCase c;
  c.inputs.push_back(Tensor::of<double>(
      {6, 5}, {0,        -infinity, 1, -infinity, 2, 3e38f, 3e38f, -3e38f, 0, 0, NAN, 0, 0, 0, 0,
               infinity, 0,         0, 0,         0, -1e4,  0,     1e4,    1, 2, 7,   7, 7, 7, 7}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::softmax(g, v[0]), ops::log_softmax(g, v[0])};
  };
  for_each_target([&] { check_agrees(c); });
}

TEST_CASE("backend softmax: a row's bits depend on nothing but the row") {
  for (const std::int64_t width : {7, 1000, 20000}) {
    const OpCase many = random_case({{9, width}}, [](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::softmax(g, v[0])};
    });
    OpCase last;
    last.inputs.push_back(Tensor(DType::kF64, {1, width}));
    std::copy_n(many.inputs[0].as<double>().end() - width, width,
                last.inputs[0].as<double>().begin());
    last.gradients = false;
    last.build = many.build;
    const Tensor all = run_tested(many).at("y0").clone(), one = run_tested(last).at("y0").clone();
    CHECK(std::memcmp(all.data() + 8 * one.bytes(), one.data(), std::size_t(one.bytes())) == 0);
  }
}

}  // namespace
}  // namespace keel::test
