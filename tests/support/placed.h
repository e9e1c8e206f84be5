// A tensor in a backend's own memory, for a kernel that a test binds by hand.
#pragma once

#include "src/runtime/backend.h"

namespace keel::test {

class Placed {
 public:
  Placed(Backend& backend, const Tensor& value)
      : type_(value.type()), memory_(backend.allocate(value.bytes())) {
    memory_->upload(0, value.data(), value.bytes());
  }
  TensorRef ref() const { return {memory_->address(), type_}; }
  Tensor read() const {
    Tensor value(type_);
    memory_->download(0, value.data(), value.bytes());
    return value;
  }

 private:
  TensorType type_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace keel::test
