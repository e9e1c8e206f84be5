// Which rows of a split an evaluation has read: each has to come once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/runtime/communicator.h"

namespace keel::train {

class RowLedger {
 public:
  explicit RowLedger(std::int64_t rows);

  // Takes the rows of a batch; negative ones are padding. Throws Error{kUsage} for one that came
  // before or is not there.
  void take(std::span<const std::int64_t> rows);
  // Takes also those that the other ranks have taken, and throws as take(). Returns the sum of what
  // the ranks give as `items`. All ranks call this.
  double gather(Communicator& ranks, double items);
  // Throws Error{kUsage} with the first row that never came.
  void expect_all() const;

 private:
  bool has(std::int64_t row) const;
  void set(std::int64_t row);

  std::int64_t rows_;
  std::vector<std::byte> seen_;  // a bit a row, then room for a number
};

}  // namespace keel::train
