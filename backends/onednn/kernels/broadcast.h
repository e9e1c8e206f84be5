// Broadcasting reduced to rows: the output is seen as rows of `inner` elements, along which every
// operand either advances by one or stays in place.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "src/core/shape.h"

namespace keel::onednn {

struct Stretched {
  enum class Form {
    kWhole,   // laid out like the output
    kScalar,  // one element
    kPart,    // stretched along some axes
  };
  Form form = Form::kWhole;
  std::int64_t step = 1;                              // along a row: 0 or 1
  std::array<std::int64_t, Shape::kMaxRank> outer{};  // strides from row to row
};

class Broadcast {
 public:
  // Every operand must broadcast to `out`.
  Broadcast(const Shape& out, const std::vector<Shape>& operands);

  std::int64_t inner() const { return inner_; }
  // Size of the outermost axis, 1 when there is only one row.
  std::int64_t leading() const { return rank_ > 0 ? sizes_[0] : 1; }
  const Stretched& operand(std::size_t i) const { return operands_[i]; }

  // The offset of output element e in an operand.
  std::int64_t offset(const Stretched& operand, std::int64_t e) const {
    return row_offset(operand, e / inner_) + e % inner_ * operand.step;
  }

  // dst[k] = the operand's element at output element begin + k, for k in [0, count).
  template <class From, class To>
  void expand(const Stretched& operand, const From* src, std::int64_t begin, std::int64_t count,
              To* dst) const;

 private:
  std::int64_t row_offset(const Stretched& operand, std::int64_t row) const {
    std::int64_t offset = 0;
    for (int axis = rank_ - 1; axis > 0; --axis) {
      offset += row % sizes_[std::size_t(axis)] * operand.outer[std::size_t(axis)];
      row /= sizes_[std::size_t(axis)];
    }
    return offset + row * operand.outer[0];
  }

  std::int64_t inner_ = 1;
  int rank_ = 0;  // of the rows
  std::array<std::int64_t, Shape::kMaxRank> sizes_{};
  std::vector<Stretched> operands_;
};

template <class From, class To>
void Broadcast::expand(const Stretched& operand, const From* src, std::int64_t begin,
                       std::int64_t count, To* dst) const {
  std::int64_t row = begin / inner_, column = begin % inner_;
  while (count > 0) {
    const std::int64_t length = std::min(count, inner_ - column);
    const From* from = src + row_offset(operand, row) + column * operand.step;
    if (operand.step == 0) {
      std::fill_n(dst, length, To(*from));
    } else {
      std::copy_n(from, length, dst);
    }
    dst += length;
    count -= length;
    ++row;
    column = 0;
  }
}

}  // namespace keel::onednn
