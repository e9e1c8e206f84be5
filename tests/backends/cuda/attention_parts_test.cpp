// Attention's backward in several parts, which large sizes get, on small tensors: it gives the same
// bits as in one.
#include "backends/cuda/attention_parts.h"

#include "tests/backends/cuda/steps.h"
#include "tests/support/attention_step.h"

namespace keel::cuda {
namespace {

using test::AttentionCase;

// What is prepared while it lives has so many gradients of scores in memory at a time.
class AtATime {
 public:
  explicit AtATime(std::int64_t gradients) { most_score_gradients = gradients; }
  ~AtATime() { most_score_gradients = before_; }

 private:
  std::int64_t before_ = most_score_gradients;
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
      const AtATime here(gradients);
      check_same_bits(run_attention(*backend, row.step()), expected);
    }
  }
}

}  // namespace
}  // namespace keel::cuda
