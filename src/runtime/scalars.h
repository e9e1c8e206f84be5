// Scalar outputs of runs on their way to the host, which goes on and looks at them later.
#pragma once

#include <vector>

#include "src/runtime/program.h"

namespace keel {

class Scalars {
 public:
  // Room for so many.
  Scalars(Backend& backend, std::int64_t room)
      : readback_(backend.allocate_readback(room * kPlace)), types_(std::size_t(room)) {}

  // Sends an output of the program's last run, after that run. Throws Error{kUsage} for an unknown
  // name, or when there is no room.
  void send(const Program& program, const std::string& output);
  // Whether all that were sent are there.
  bool have_arrived() const { return readback_->is_complete(); }
  // The i-th that was sent; waits until all are there.
  double at(std::int64_t i) const;
  std::int64_t size() const { return size_; }
  // Forgets them; their room is used again.
  void clear() { size_ = 0; }

 private:
  static constexpr std::int64_t kPlace = 8;  // bytes: as many as the largest type has

  std::unique_ptr<Readback> readback_;
  std::vector<DType> types_;  // of those that were sent
  std::int64_t size_ = 0;
};

}  // namespace keel
