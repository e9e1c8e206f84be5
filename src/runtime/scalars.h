// Copies scalar outputs of runs to the host without waiting; the host reads them later.
#pragma once

#include <vector>

#include "src/runtime/program.h"

namespace keel {

class Scalars {
 public:
  // Reserves room for `room` scalars.
  Scalars(Backend& backend, std::int64_t room)
      : readback_(backend.allocate_readback(room * kPlace)), types_(std::size_t(room)) {}

  // Starts to copy an output of the program's last run. Call it after that run. Throws
  // Error{kUsage} for an unknown name, or when there is no room.
  void send(const Program& program, const std::string& output);
  // Whether all scalars sent so far have arrived.
  bool have_arrived() const { return readback_->is_complete(); }
  // The i-th scalar that was sent; waits until all have arrived.
  double at(std::int64_t i) const;
  std::int64_t size() const { return size_; }
  // Forgets all scalars, so that their room is used again.
  void clear() { size_ = 0; }

 private:
  static constexpr std::int64_t kPlace = 8;  // bytes a scalar: the size of the largest type

  std::unique_ptr<Readback> readback_;
  std::vector<DType> types_;  // of the scalars sent
  std::int64_t size_ = 0;
};

}  // namespace keel
