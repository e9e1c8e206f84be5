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

TEST_CASE("backend column gradient sums: they agree, and the thread count changes no bit") {
  for_each_target([] {
    for (const Shape& shape : {Shape{1, 1}, Shape{65, 7}, Shape{257, 1052}, Shape{9, 5, 11, 13}}) {
      CAPTURE(shape.text());
      check_agrees(all_sums(shape));
      check_thread_counts(all_sums(shape));
    }
  });
}

}  // namespace
}  // namespace keel::test
