#include "plugin/c/layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace keel::plugin {

Layout::Layout(const Shape& shape, const std::int64_t* strides) {
  int axis = shape.rank();
  for (; axis > 0 && (shape[axis - 1] == 1 || strides[axis - 1] == run_); --axis) {
    run_ *= shape[axis - 1];
  }
  for (; axis > 0; --axis) {  // the innermost first
    const Axis next{shape[axis - 1], strides[axis - 1]};
    if (next.size == 1) continue;
    Axis& last = axes_[count_ - (count_ > 0)];
    if (count_ > 0 && next.stride == last.size * last.stride) {
      last.size *= next.size;
    } else {
      axes_[count_++] = next;
    }
  }
  std::reverse(axes_.begin(), axes_.begin() + std::ptrdiff_t(count_));
}

Layout read_layout(const TensorType& type, const std::int64_t* strides, const std::string& what) {
  constexpr double kMost = 0x1p62;
  double reach = 0;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    reach += double(type.shape[axis] - 1) * std::abs(double(strides[axis]));
  }
  check(reach * double(size_of(type.dtype)) < kMost, ErrorKind::kUsage,
        "{}: expected elements within 2^62 bytes, got {} of {}", what,
        strides_text(type.shape, strides), type.text());
  return {type.shape, strides};
}

std::string strides_text(const Shape& shape, const std::int64_t* strides) {
  return fmt::format("strides ({})", fmt::join(strides, strides + shape.rank(), ", "));
}

MemoryOf::MemoryOf(const TensorRef& array, const Layout& layout, std::string name)
    : name_(std::move(name)), first_(std::int64_t(reinterpret_cast<std::uintptr_t>(array.data))) {
  const std::int64_t element = size_of(array.type.dtype);
  run_ = layout.run() * element;
  for (const Axis& axis : layout.axes()) {
    const std::int64_t stride = axis.stride * element;
    if (stride < 0) first_ += (axis.size - 1) * stride;
    has_zero_stride_ |= stride == 0;
    if (stride != 0) axes_.push_back({axis.size, std::abs(stride), 0});
  }
  std::ranges::sort(axes_, std::greater(), &ByteAxis::stride);
  for (; !axes_.empty() && axes_.back().stride == run_; axes_.pop_back()) {
    run_ *= axes_.back().size;
  }
  span_ = run_;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    axes_[i].inner = span_;
    span_ += (axes_[i].size - 1) * axes_[i].stride;
  }
}

bool MemoryOf::repeats() const {
  return has_zero_stride_ ||
         std::ranges::any_of(axes_, [](const ByteAxis& axis) { return axis.stride < axis.inner; });
}

bool MemoryOf::overlaps(const MemoryOf& other) const {
  const bool are_apart = first_ >= other.first_ + other.span_ || other.first_ >= first_ + span_;
  return !are_apart && !is_interleaved_with(other) && other.touched_by(*this, 0, other.first_);
}

// Whether runs lie in each other's gaps at every multiple of all strides, as the parts of a row do
// that each have an array.
bool MemoryOf::is_interleaved_with(const MemoryOf& other) const {
  std::int64_t period = 0;
  for (const MemoryOf* memory : {this, &other}) {
    for (const ByteAxis& axis : memory->axes_) period = std::gcd(period, axis.stride);
  }
  if (period == 0) return false;
  const std::int64_t after = ((other.first_ - first_) % period + period) % period;
  return after >= run_ && after + other.run_ <= period;
}

// Whether a run of this array, from axis `axis` on and from address `base`, is touched by `other`.
bool MemoryOf::touched_by(const MemoryOf& other, std::size_t axis, std::int64_t base) const {
  if (axis == axes_.size()) return other.touches(base, base + run_, 0, other.first_);
  for (std::int64_t i = 0; i < axes_[axis].size; ++i) {
    if (touched_by(other, axis + 1, base + i * axes_[axis].stride)) return true;
  }
  return false;
}

// Whether this array, from axis `axis` on and from address `base`, has a byte of [first, last).
bool MemoryOf::touches(std::int64_t first, std::int64_t last, std::size_t axis,
                       std::int64_t base) const {
  if (axis == axes_.size()) return base < last && base + run_ > first;
  const auto& [size, stride, inner] = axes_[axis];
  if (base >= last) return false;
  const std::int64_t before = first - inner - base;
  const std::int64_t end = std::min(size - 1, (last - 1 - base) / stride);
  for (std::int64_t i = before < 0 ? 0 : before / stride + 1; i <= end; ++i) {
    if (touches(first, last, axis + 1, base + i * stride)) return true;
  }
  return false;
}

}  // namespace keel::plugin
