#include "frontend/train/row_ledger.h"

#include <bit>
#include <cstring>

#include "src/core/error.h"

namespace keel::train {
namespace {

std::byte bit_of(std::int64_t row) { return std::byte{1} << int(row % 8); }

// The lowest row of those whose bits stand in a byte.
std::int64_t first_row(std::size_t byte, std::byte bits) {
  return std::int64_t(byte) * 8 + std::countr_zero(std::to_integer<unsigned>(bits));
}

}  // namespace

RowLedger::RowLedger(std::int64_t rows)
    : rows_(rows), seen_(std::size_t((rows + 7) / 8) + sizeof(double)) {}

bool RowLedger::has(std::int64_t row) const {
  return (seen_[std::size_t(row / 8)] & bit_of(row)) != std::byte{0};
}

void RowLedger::set(std::int64_t row) { seen_[std::size_t(row / 8)] |= bit_of(row); }

void RowLedger::take(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) {
    if (row < 0) continue;
    check(row < rows_ && !has(row), ErrorKind::kUsage,
          "evaluation: row {} of {} came twice or is not there", row, rows_);
    set(row);
  }
}

double RowLedger::gather(Communicator& ranks, double items) {
  const std::size_t size = seen_.size(), bits = size - sizeof items;
  std::memcpy(seen_.data() + bits, &items, sizeof items);
  std::vector<std::byte> all(size * std::size_t(ranks.size()));
  std::vector<Communicator::Room> rooms;
  for (int r = 0; r < ranks.size(); ++r) {
    rooms.push_back(std::span(all).subspan(std::size_t(r) * size, size));
  }
  ranks.gather(seen_, rooms);
  std::vector<std::byte> seen(size);
  double sum = 0;
  for (const Communicator::Room room : rooms) {
    for (std::size_t i = 0; i < bits; ++i) {
      const std::byte both = seen[i] & room[i];
      check(both == std::byte{0}, ErrorKind::kUsage, "evaluation: row {} came to two ranks",
            first_row(i, both));
      seen[i] |= room[i];
    }
    double of_rank = 0;
    std::memcpy(&of_rank, room.data() + bits, sizeof of_rank);
    sum += of_rank;
  }
  seen_ = seen;
  return sum;
}

void RowLedger::expect_all() const {
  for (std::int64_t row = 0; row < rows_; ++row) {
    check(has(row), ErrorKind::kUsage, "evaluation: row {} of {} never came", row, rows_);
  }
}

}  // namespace keel::train
