// The filters of DRAW's attention against the judge, within what rounding may add.
#include "src/ops/filter_bank.h"

#include "frontend/compare/cases/case_builder.h"
#include "frontend/compare/verdicts/comparison.h"
#include "src/ops/elementwise.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// `wanted`: the filters that have a gradient, those along x, along y, or both.
std::unique_ptr<compare::GraphSubject> bank_subject(const FilterBankAttrs& attrs, int wanted) {
  compare::CaseBuilder d;
  const Value p = ops::scale(d.graph, d.normal({5, 5}), 0.5);
  const auto bank = ops::filter_bank(d.graph, p, attrs);
  if (wanted == 2) {
    d.differentiate({bank.fx, bank.fy});
  } else {
    d.differentiate({wanted == 0 ? bank.fx : bank.fy});
  }
  return d.finish({"filter_bank", "sampled"}, {.unfused = true});
}

TEST_CASE("backend filter_bank: every size of image, number of filters and share of the gradient") {
  const auto judge = make_backend("reference"), tested = make_backend(default_backend(), {2});
  for_each_target([&] {
    for (const std::int64_t columns : {7, 16, 28, 33, 70}) {
      for (const std::int64_t filters : {2, 5, 12}) {
        for (const FilterGrid grid : {FilterGrid::kPaper, FilterGrid::kRelease}) {
          for (int wanted = 0; wanted < 3; ++wanted) {
            CAPTURE(columns);
            CAPTURE(filters);
            CAPTURE(wanted);
            const auto subject = bank_subject(
                {.filters = filters, .rows = 11, .columns = columns, .grid = grid}, wanted);
            CHECK(compare::compare(*judge, {tested.get()}, *subject, {}).agrees());
          }
        }
      }
    }
  });
}

TEST_CASE("backend filter_bank: results do not depend on the thread count") {
  OpCase c;
  c.inputs.push_back(random_f32({999, 5}, 1));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const auto bank = ops::filter_bank(g, v[0], {.filters = 5});
    return std::vector{bank.fx, bank.fy};
  };
  check_thread_counts(c);
}

}  // namespace
}  // namespace keel::test
