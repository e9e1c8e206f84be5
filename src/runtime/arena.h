// Memory that several programs take turns in.
#pragma once

#include <memory>

#include "src/runtime/backend.h"

namespace keel {

// Programs of many shapes, of which one runs at a time, need no more memory than the largest of
// them. The first program that is compiled should be the largest: one that needs more than those
// before it gets a new block, which later programs share, and the others keep theirs as long as
// they live. So addresses never move under a program.
class Arena {
 public:
  explicit Arena(Backend& backend) : backend_(backend) {}

  // The current block, made anew if it has fewer bytes. Throws where Backend::allocate does.
  std::shared_ptr<Memory> at_least(std::int64_t bytes);

 private:
  Backend& backend_;
  std::shared_ptr<Memory> current_;
};

}  // namespace keel
