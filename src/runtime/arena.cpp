#include "src/runtime/arena.h"

namespace keel {

std::shared_ptr<Memory> Arena::at_least(std::int64_t bytes) {
  if (!current_ || !current_->grow(bytes)) current_ = backend_.allocate_growing(bytes);
  return current_;
}

}  // namespace keel
