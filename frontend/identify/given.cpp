#include "frontend/identify/given.h"

#include <utility>
#include <vector>

namespace keel::identify {
namespace {

class Reader {
 public:
  Reader(io::Arrays arrays, const std::string& path) : arrays_(std::move(arrays)), path_(path) {}

  Tensor needed(const std::string& name) {
    check(arrays_.contains(name), ErrorKind::kBadInput,
          "[identify] {}: expected an array {}, got none", path_, name);
    return *take(name);
  }

  std::optional<Tensor> take(const std::string& name) {
    const auto node = arrays_.extract(name);
    if (node.empty()) return {};
    check(is_floating(node.mapped().dtype()), ErrorKind::kBadInput,
          "[identify] {}: {}: expected f4 or f8, got {}", path_, name, node.mapped().type().text());
    return node.mapped().to(DType::kF64);
  }

  // The arrays whose names begin with a prefix, without it.
  std::map<std::string, Tensor> take_all(const std::string& prefix) {
    std::map<std::string, Tensor> found;
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays_) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
    for (const std::string& name : names) {
      // Counters of steps are whole numbers.
      found[name.substr(prefix.size())] = arrays_.extract(name).mapped().to(DType::kF64);
    }
    return found;
  }

  void expect_shape(const std::string& name, const Shape& expected, const Shape& got) const {
    check(got == expected, ErrorKind::kBadInput, "[identify] {}: {}: expected {}, got {}", path_,
          name, expected.text(), got.text());
  }

  void expect_nothing_left() const {
    check(arrays_.empty(), ErrorKind::kBadInput,
          "[identify] {}: array {}: expected only x, y, gain, bias, dy, dx, dgain, before.STATE "
          "and after.STATE",
          path_, arrays_.empty() ? "" : arrays_.begin()->first);
  }

 private:
  io::Arrays arrays_;
  const std::string& path_;
};

}  // namespace

Given given_of(io::Arrays arrays, const std::string& path) {
  Reader in(std::move(arrays), path);
  Given given{.x = in.needed("x"),
              .y = in.needed("y"),
              .gain = in.take("gain"),
              .bias = in.take("bias"),
              .dy = in.take("dy"),
              .dx = in.take("dx"),
              .dgain = in.take("dgain"),
              .before = in.take_all("before."),
              .after = in.take_all("after.")};
  in.expect_nothing_left();
  const Shape& shape = given.x.shape();
  check(shape.rank() >= 2 && shape.rank() <= 4 && shape.elements() > 0, ErrorKind::kBadInput,
        "[identify] {}: x: expected two, three or four axes with elements, got {}", path,
        shape.text());
  check(shape.elements() <= kMostElements, ErrorKind::kBadInput,
        "[identify] {}: x: expected at most {} elements, got {}: some rows of a norm over rows, or "
        "some features of one over the batch, will do",
        path, kMostElements, shape.elements());
  in.expect_shape("y", shape, given.y.shape());
  if (given.dy) in.expect_shape("dy", shape, given.dy->shape());
  if (given.dx) in.expect_shape("dx", shape, given.dx->shape());
  return given;
}

}  // namespace keel::identify
