#include "src/runtime/scalars.h"

namespace keel {

void Scalars::send(const Program& program, const std::string& output) {
  const TensorRef value = program.output_ref(output);
  check(size_ < std::ssize(types_) && value && value.elements() == 1, ErrorKind::kUsage,
        "[scalars] {}: expected one of at most {} scalars, got {} {}", output, types_.size(),
        size_ + 1, value.type.text());
  types_[std::size_t(size_)] = value.type.dtype;
  readback_->receive(kPlace * size_++, value.data, size_of(value.type.dtype));
}

double Scalars::at(std::int64_t i) const {
  check(i >= 0 && i < size_, ErrorKind::kUsage, "[scalars] expected one of {}, got {}", size_, i);
  double value = 0;
  convert(readback_->wait() + kPlace * i, types_[std::size_t(i)], &value, DType::kF64, 1);
  return value;
}

}  // namespace keel
