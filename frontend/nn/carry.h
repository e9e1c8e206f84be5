// State that a layer takes over from the batch before and leaves to the batch after.
#pragma once

#include <string>

#include "frontend/nn/net.h"

namespace keel::nn {

// A tensor (rows, ...) that lives from batch to batch: the memory of a language model, or the state
// of a recurrent layer whose sequences are cut into pieces. Training and evaluation each have their
// own. It is not a parameter: it gets no gradient, and weight files do not contain it.
class Carry {
 public:
  // The carry "<scope>/<name>". `begins`, u8 (rows), is an input that the stream gives: 1 in rows
  // that do not continue the batch before; in these the value is 0. Throws Error{kUsage} when shape
  // and begins have different numbers of rows.
  Carry(const Net& net, const std::string& name, const Shape& shape, Value begins);

  // The value that the batch before left.
  Value value() const { return value_; }
  // Leaves `next`, of the same shape, to the batch after, without gradient; not in a probe.
  void leave(Value next) const;

 private:
  Net net_;
  Value leaf_, value_;
};

}  // namespace keel::nn
