#include "program/norm_arrays.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keel::cli {
namespace {

// Whether it is "s<digits>.x".
bool is_step(const std::string& name) {
  const std::size_t end = name.find_first_not_of("0123456789", 1);
  return name.starts_with('s') && end > 1 && end != name.npos && name.substr(end) == ".x";
}

}  // namespace

io::Arrays read_norm_arrays(const std::string& path, DType dtype) {
  io::Arrays arrays = io::read_npz(path);
  if (dtype != DType::kF32) return arrays;
  for (const auto& [name, array] : arrays) {
    if (array.dtype() != DType::kF64) continue;
    for (double v : array.as<double>()) {
      check(!std::isfinite(v) || std::abs(v) <= double(std::numeric_limits<float>::max()),
            ErrorKind::kBadInput,
            "[norm] {}: array {}: expected numbers in the range of --dtype f32, got {}", path, name,
            v);
    }
  }
  return arrays;
}

std::vector<std::string> step_prefixes(const io::Arrays& given, const std::string& path) {
  const auto steps = std::ranges::count_if(given, [](const auto& e) { return is_step(e.first); });
  check((steps > 0) != given.contains("x"), ErrorKind::kBadInput,
        "[norm] {}: expected an array x or arrays s0.x, s1.x, ..., got {}", path,
        steps > 0 ? "both" : "neither");
  if (steps == 0) return {""};
  std::vector<std::string> prefixes;
  for (std::ptrdiff_t i = 0; i < steps; ++i) {
    const std::string& prefix = prefixes.emplace_back(fmt::format("s{}.", i));
    check(given.contains(prefix + "x"), ErrorKind::kBadInput,
          "[norm] {}: array {}x: expected, as there are later steps, got none", path, prefix);
  }
  return prefixes;
}

std::string given_type(const Tensor& array) {
  if (array.dtype() != DType::kI32) return array.type().text();
  return "i4 or i8" + array.shape().text();
}

}  // namespace keel::cli
