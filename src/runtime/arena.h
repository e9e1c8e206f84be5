// Memory that several programs take turns in.
#pragma once

#include <memory>

#include "src/runtime/backend.h"

namespace keel {

// Programs of many shapes, of which one runs at a time, need no more memory than the largest of
// them. When a program needs more than those before it, the block grows where it lies, for
// addresses never move under a program. Memory of a device cannot grow: there the program gets a
// new block, which later programs share, and the others keep theirs as long as they live. So the
// first program that is compiled should be the largest.
class Arena {
 public:
  explicit Arena(Backend& backend) : backend_(backend) {}

  // The current block, grown or made anew if it has fewer bytes. Throws where Backend::allocate
  // does.
  std::shared_ptr<Memory> at_least(std::int64_t bytes);
  // Of the current block.
  std::int64_t bytes() const { return current_ ? current_->bytes() : 0; }

 private:
  Backend& backend_;
  std::shared_ptr<Memory> current_;
};

}  // namespace keel
