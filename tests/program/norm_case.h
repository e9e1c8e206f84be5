// Helpers of the tests of `keel norm`: arrays in a file, the program run on them, what it wrote.
#pragma once

#include <cmath>

#include "frontend/io/npz.h"
#include "src/core/rng.h"
#include "tests/program/helpers.h"

namespace keel::cli {

using io::Arrays;
using Names = std::vector<std::string>;
using namespace std::string_literals;

inline Tensor random(const Shape& shape, std::uint32_t stream) {
  Tensor result(DType::kF64, shape);
  const Philox philox(1, stream);
  for (std::uint64_t i = 0; double& v : result.as<double>()) v = 1 + philox.normal(i++);
  return result;
}

// arrays_of("x", x, "dy", dy)
template <class... Rest>
Arrays arrays_of(const std::string& name, Tensor value, Rest&&... rest) {
  Arrays arrays;
  if constexpr (sizeof...(rest) > 0) arrays = arrays_of(std::forward<Rest>(rest)...);
  arrays[name] = std::move(value);
  return arrays;
}

inline void check_close(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.elements() == std::ssize(expected));
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    CHECK(std::abs(got.at(i) - expected[std::size_t(i)]) <= tolerance);
  }
}

inline std::vector<double> values(const Tensor& t) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < t.elements(); ++i) result.push_back(t.at(i));
  return result;
}

struct Case {
  test::TempDir folder;

  ProcessResult run(const Arrays& given, std::vector<std::string> arguments) {
    test::write_bytes(folder / "case.npz", io::npz_bytes(given));
    arguments.insert(arguments.begin(), "norm");
    for (const char* side : {"in", "out"}) {
      arguments.push_back("--"s + side);
      arguments.push_back(folder / (side == "in"s ? "case.npz" : "result.npz"));
    }
    return run_keel(arguments);
  }
  Arrays results(const Arrays& given, const std::vector<std::string>& arguments) {
    const ProcessResult result = run(given, arguments);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return io::read_npz(folder / "result.npz");
  }
};

}  // namespace keel::cli
