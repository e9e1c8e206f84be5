// Statistics and gradient sums of columns on any number of threads.
#include "src/ops/column_gradient_sums.h"

#include "src/ops/column_moments.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// All statistics and sums of a batch; every second row is left out of tokens.
OpCase all_sums(const Shape& shape) {
  OpCase c = random_case({shape, shape, {shape[1]}, {shape[1]}}, nullptr);
  std::vector<std::uint8_t> mask;
  for (std::int64_t row = 0; row < shape[0]; ++row) mask.push_back(row % 2 == 0 ? 1 : 0);
  c.inputs.push_back(Tensor::of<std::uint8_t>({shape[0]}, mask));
  c.gradients = false;
  const bool is_image = shape.rank() == 4;
  c.build = [is_image](Graph& g, const std::vector<Value>& in) {
    const Value mask = is_image ? Value{} : in[4];
    return std::vector{ops::column_moments(g, in[0], mask),
                       ops::column_squares(g, in[0], mask, {true}),
                       ops::centred_gradient_sums(g, {in[0], in[2], in[3], in[1], mask}, {true}),
                       ops::uncentred_gradient_sums(g, {in[0], in[3], in[1], mask}, {true})};
  };
  return c;
}

TEST_CASE("backend column gradient sums: results do not depend on the thread count") {
  for (const Shape& shape : {Shape{4099, 17}, Shape{257, 1052}, Shape{9, 5, 11, 13}}) {
    CAPTURE(shape.text());
    check_thread_counts(all_sums(shape));
  }
}

// Sums of up to 8,198 normal numbers, or of products of three: sum_bound for the squares of their
// sizes, which are the largest.
TEST_CASE("backend column gradient sums: the fast kernels agree with the reference") {
  for_each_target([] {
    for (const Shape& shape : {Shape{1, 1}, Shape{65, 7}, Shape{4099, 17}, Shape{9, 5, 11, 13}}) {
      CAPTURE(shape.text());
      const OpCase c = all_sums(shape);
      const Results got = run_tested(c), expected = run_reference(c);
      const std::int64_t elements = shape.elements() / shape[1];
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        check_within(got.at(name), value, [&](std::int64_t i) {
          return sum_bound(64) * (double(elements) + std::abs(value.at(i)));
        });
      }
    }
  });
}

}  // namespace
}  // namespace keel::test
