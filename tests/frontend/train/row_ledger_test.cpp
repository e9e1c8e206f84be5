// An evaluation reads every row once, whichever rank reads it.
#include "frontend/train/row_ledger.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

using Rows = std::vector<std::int64_t>;

TEST_CASE("row ledger: every row comes once, padding as often as it likes") {
  RowLedger ledger(10);
  ledger.take(Rows{9, 0, -1, -1, 8});
  ledger.take(Rows{1, 2, 3, 4, 5, 7, -1});
  CHECK_THROWS_WITH_AS(ledger.expect_all(), "evaluation: row 6 of 10 never came", Error);
  CHECK_THROWS_WITH_AS(ledger.take(Rows{6, 8}),
                       "evaluation: row 8 of 10 came twice or is not there", Error);
  CHECK_THROWS_WITH_AS(ledger.take(Rows{10}), "evaluation: row 10 of 10 came twice or is not there",
                       Error);
  ledger.expect_all();
}

// The report of three ranks on 19 rows, of which each takes every third.
std::string told_by_ranks(const std::function<void(RowLedger&, int rank)>& also) {
  std::string told;
  test::run_ranks(3, [&](Communicator& all) {
    RowLedger ledger(19);
    for (std::int64_t row = all.rank(); row < 19; row += 3) ledger.take(Rows{row});
    also(ledger, all.rank());
    try {
      const double items = ledger.gather(all, 10. * all.rank() + 0.5);
      ledger.expect_all();
      if (all.rank() == 0) told = fmt::format("{} items", items);
    } catch (const Error& error) {
      if (all.rank() == 0) told = error.what();
    }
  });
  return told;
}

TEST_CASE("row ledger: ranks tell each other what they took") {
  CHECK(told_by_ranks([](RowLedger&, int) {}) == "31.5 items");
}

TEST_CASE("row ledger: a row that two ranks took is named") {
  CHECK(told_by_ranks([](RowLedger& ledger, int rank) {
          if (rank == 2) ledger.take(Rows{13});
        }) == "evaluation: row 13 came to two ranks");
}

}  // namespace
}  // namespace keel::train
