// What a language model's attention remembers of the positions before a segment.
#pragma once

#include <string>

#include "frontend/nn/net.h"

namespace keel::models {

// The last `size` positions of each lane before its segment of `length` positions. A lane forgets
// them where `begins`, u8 (lanes), is 1. They are carries (nn::Carry), to which no gradient flows;
// a memory of size 0 has none. The net must outlive the memory.
class SegmentMemory {
 public:
  // Carries "filled", the number of positions that each lane remembers.
  SegmentMemory(const nn::Net& net, Value begins, std::int64_t length, std::int64_t size);

  // What the segments before left as `name`, and then x (lanes, length, features); leaves the last
  // of these positions to the next segment. The result is (lanes, size + length, features).
  Value remembered(const std::string& name, Value x) const;
  // The number of remembered positions, floating (lanes); absent for size 0.
  Value filled() const { return filled_; }
  // u8 (lanes, size + length): 0 for places of the memory that nothing fills yet; absent for size
  // 0.
  Value seen() const;

 private:
  const nn::Net& net_;
  Value begins_, filled_;
  std::int64_t lanes_, length_, size_;
};

}  // namespace keel::models
