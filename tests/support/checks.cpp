#include "tests/support/checks.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"

namespace keel::test {

Tensor f64(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::of<double>(shape, values);
}

Tensor i32(const Shape& shape, std::initializer_list<std::int32_t> values) {
  return Tensor::of<std::int32_t>(shape, values);
}

Results run_reference(const OpCase& op_case) {
  reference::ReferenceBackend backend;
  return run_case(backend, op_case, DType::kF64);
}

void check_close(const Tensor& got, const Tensor& expected, double tolerance) {
  REQUIRE(got.shape().text() == expected.shape().text());
  double scale = 1;
  for (std::int64_t e = 0; e < expected.elements(); ++e) {
    if (std::isfinite(expected.at(e))) scale = std::max(scale, std::abs(expected.at(e)));
  }
  for (std::int64_t e = 0; e < expected.elements(); ++e) {
    const double a = got.at(e), b = expected.at(e);
    CAPTURE(e);
    CAPTURE(a);
    CAPTURE(b);
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    CHECK((same || std::abs(a - b) <= tolerance * scale));
  }
}

void check_refused(const std::function<void()>& action, std::string_view beginning,
                   std::string_view part, ErrorKind kind) {
  CAPTURE(beginning);
  CAPTURE(part);
  std::string text = "nothing was thrown";
  try {
    action();
  } catch (const Error& error) {
    text = error.what();
    CHECK(error.kind() == kind);
  }
  CAPTURE(text);
  CHECK(text.starts_with(beginning));
  CHECK(text.find(part) != std::string::npos);
}

void check_op_refused(const std::vector<TensorType>& inputs, const Build& build,
                      std::string_view op, std::string_view part) {
  Graph g;
  std::vector<Value> values;
  for (const TensorType& type : inputs) {
    values.push_back(g.input(fmt::format("x{}", values.size()), type));
  }
  check_refused([&] { build(g, values); }, fmt::format("[{}] ", op), part);
}

}  // namespace keel::test
