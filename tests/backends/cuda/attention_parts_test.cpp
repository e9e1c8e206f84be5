// The backwards of both kinds of attention in several parts, which large sizes get, on small
// tensors: they give the same bits as in one.
#include "backends/cuda/attention_parts.h"

#include "src/ops/relative_attention.h"
#include "tests/backends/cuda/steps.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/attention_step.h"

namespace keel::cuda {
namespace {

using test::AttentionCase;

// Sets a number to another value until it is destroyed; kernels prepared meanwhile use that value.
class Instead {
 public:
  Instead(std::int64_t& number, std::int64_t value) : number_(number), before_(number) {
    number_ = value;
  }
  ~Instead() { number_ = before_; }

 private:
  std::int64_t &number_, before_;
};

TEST_CASE("cuda attention: its backward in parts gives the same bits") {
  const AttentionCase cases[] = {
      {.b = 2, .queries = 9, .keys = 75, .heads = 3, .width = 8, .masks = true, .p = 0.3},
      {.b = 3, .queries = 40, .keys = 70, .heads = 1, .width = 50, .causal = true},
      {.b = 1, .queries = 70, .keys = 65, .heads = 2, .width = 130, .masks = true, .causal = true},
      {.b = 2, .queries = 5, .keys = 33, .heads = 1, .width = 20, .masks = true}};
  const auto backend = make_backend("cuda");
  for (const AttentionCase& row : cases) {
    CAPTURE(row.keys);
    const auto expected = run_attention(*backend, row.step());
    // 32 keys of a head; all keys of two heads; 64 of one.
    for (const std::int64_t gradients :
         {std::int64_t{1}, 2 * row.keys * row.queries, 64 * row.queries}) {
      CAPTURE(gradients);
      const Instead here(most_score_gradients, gradients);
      check_same_bits(run_attention(*backend, row.step()), expected);
    }
  }
}

struct RelativeCase {
  std::int64_t batch, queries, keys, distances, heads, width, window = 0;
};

test::OpCase relative_op(const RelativeCase& of) {
  const std::int64_t features = of.heads * of.width;
  test::OpCase c;
  std::uint64_t seed = 0;
  for (const Shape& shape : {Shape{of.batch, of.queries, features},
                             Shape{of.batch, of.keys, features}, Shape{of.batch, of.keys, features},
                             Shape{of.distances, features}, Shape{features}, Shape{features}}) {
    c.inputs.push_back(test::random_f32(shape, ++seed));
  }
  Tensor filled(DType::kI32, {of.batch});
  for (std::int64_t row = 0; row < of.batch; ++row) {
    filled.as<std::int32_t>()[std::size_t(row)] =
        std::int32_t((row + 1) * 31 % (of.keys - of.queries + 1));
  }
  c.inputs.push_back(std::move(filled));
  c.build = [of](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::relative_attention(g, {v[0], v[1], v[2], v[3], v[4], v[5], v[6]},
                                               {.heads = of.heads, .window = of.window})};
  };
  return c;
}

TEST_CASE("cuda relative_attention: its backward in parts gives the same bits") {
  const auto backend = make_backend("cuda");
  for (const RelativeCase& of : {RelativeCase{3, 20, 85, 85, 2, 8},
                                 {2, 70, 140, 50, 1, 40, 60},
                                 {5, 9, 75, 75, 1, 130},
                                 {2, 33, 33, 33, 1, 70}}) {
    CAPTURE(of.keys);
    // Rows of a batch in at most three groups, which begin and end within parts.
    const Instead groups(most_distance_gradients, 3 * of.keys * of.heads * of.width);
    const test::OpCase op = relative_op(of);
    const auto expected = test::run_case(*backend, op, DType::kF32);
    // 32 keys of a row; all keys of two rows; 64 keys of one.
    const std::int64_t row = of.heads * of.queries;
    for (const std::int64_t gradients : {std::int64_t{1}, 2 * row * of.keys, 64 * row}) {
      CAPTURE(gradients);
      const Instead here(most_score_gradients, gradients);
      check_same_bits(test::run_case(*backend, op, DType::kF32), expected);
    }
  }
}

}  // namespace
}  // namespace keel::cuda
