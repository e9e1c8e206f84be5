// Loops over the elements of strided tensors, shared by the kernels that
// broadcast, reduce or move elements.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "src/core/with_type.h"
#include "src/runtime/backend.h"

namespace keel::reference {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

// Calls visit(element, offsets) for every element of `shape` in row-major order. offsets[i] is the
// sum over the axes of the element's index along the axis times strides[i][axis].
template <class Visit>
void walk(const Shape& shape, std::span<const Strides> strides, Visit visit) {
  Strides place{};
  std::vector<std::int64_t> offsets(strides.size(), 0);
  const std::int64_t elements = shape.elements();
  for (std::int64_t element = 0; element < elements; ++element) {
    visit(element, offsets);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t size = shape[axis];
      const auto a = std::size_t(axis);
      const bool carries = ++place[a] == size;
      if (carries) place[a] = 0;
      for (std::size_t i = 0; i < strides.size(); ++i) {
        offsets[i] += carries ? (1 - size) * strides[i][a] : strides[i][a];
      }
      if (!carries) break;
    }
  }
}

// Strides for reading a tensor of shape `from` as if stretched to shape `to`: 0
// along each stretched axis.
inline Strides stretched_strides(const Shape& from, const Shape& to) {
  const Strides own = from.strides();
  const int lead = to.rank() - from.rank();
  Strides result{};
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) result[std::size_t(lead + axis)] = own[std::size_t(axis)];
  }
  return result;
}

// Calls f with a value of the C++ type that stores elements of `dtype`.
template <class F>
void with_element_type(DType dtype, F f) {
  with_type<double, std::int32_t, std::uint8_t>(dtype, f);
}

// y[e] = x[start + offset of e], for every element e of y.
inline void gather(const TensorRef& y, const TensorRef& x, const Strides& strides,
                   std::int64_t start = 0) {
  with_element_type(y.type.dtype, [&](auto element) {
    using T = decltype(element);
    walk(y.type.shape, {&strides, 1},
         [&](std::int64_t e, auto& offsets) { y.as<T>()[e] = x.as<T>()[start + offsets[0]]; });
  });
}

// y[start + offset of e] = x[e], for every element e of x.
inline void scatter(const TensorRef& y, const TensorRef& x, const Strides& strides,
                    std::int64_t start) {
  with_element_type(y.type.dtype, [&](auto element) {
    using T = decltype(element);
    walk(x.type.shape, {&strides, 1},
         [&](std::int64_t e, auto& offsets) { y.as<T>()[start + offsets[0]] = x.as<T>()[e]; });
  });
}

}  // namespace keel::reference
