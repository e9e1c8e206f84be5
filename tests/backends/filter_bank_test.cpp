// The filters of DRAW's attention against the judge, within what rounding may add.
#include "src/ops/filter_bank.h"

#include "src/ops/elementwise.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// `wanted`: the filters that have a gradient, those along x, along y, or both.
void check_bank(const FilterBankAttrs& attrs, int wanted) {
  check_sampled([&](CaseBuilder& d) {
    const Value p = ops::scale(d.graph, d.normal({5, 5}), 0.5);
    const auto bank = ops::filter_bank(d.graph, p, attrs);
    const std::vector<Value> all{bank.fx, bank.fy};
    d.differentiate(wanted == 2 ? all : std::vector{all[std::size_t(wanted)]});
  });
}

TEST_CASE("backend filter_bank: every size of image, number of filters and share of the gradient") {
  for_each_target([&] {
    for (const std::int64_t columns : {7, 16, 28, 33, 70}) {
      for (const std::int64_t filters : {2, 5, 12}) {
        for (const FilterGrid grid : {FilterGrid::kPaper, FilterGrid::kRelease}) {
          for (int wanted = 0; wanted < 3; ++wanted) {
            CAPTURE(columns);
            CAPTURE(filters);
            CAPTURE(wanted);
            check_bank({.filters = filters, .rows = 11, .columns = columns, .grid = grid}, wanted);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace keel::test
