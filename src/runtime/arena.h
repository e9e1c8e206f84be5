// Memory that several programs take turns in.
#pragma once

#include <memory>

#include "src/runtime/backend.h"

namespace keel {

// Programs of many shapes that run one at a time need only as much memory as the largest of them.
// When a program needs more than the earlier ones, the block grows in place, because addresses must
// not move under a program. Device memory cannot grow: there the program gets a new block, which
// later programs share, and the earlier programs keep their old block as long as they live. The
// largest program should therefore be compiled first.
class Arena {
 public:
  explicit Arena(Backend& backend) : backend_(backend) {}

  // Returns the current block. A block that is too small is grown or replaced first. Throws in the
  // same cases as Backend::allocate.
  std::shared_ptr<Memory> at_least(std::int64_t bytes);
  // Bytes of the current block.
  std::int64_t bytes() const { return current_ ? current_->bytes() : 0; }

 private:
  Backend& backend_;
  std::shared_ptr<Memory> current_;
};

}  // namespace keel
