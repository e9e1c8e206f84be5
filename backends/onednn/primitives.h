// oneDNN behind an interface of a few functions that know only sizes and memory orders. Only the
// files called primitives* include its headers.
//
// Every function creates primitives for tensors of fixed sizes, all of them at least 1, and returns
// how to bind them. Tensors are f32, but for the two factors of a `narrow` product or convolution,
// which are bf16; inputs and outputs are those of the binding, in the order given.
// A case without an oneDNN implementation is refused. errors: Error{kMemory} when creating or
// running a primitive runs out of memory, Error{kBackendMissing} for any other failure. Results
// have the same bits for any number of threads; see kPrimitiveConcurrency.
#pragma once

#include <string>

#include "src/runtime/backend.h"

namespace keel::onednn {

std::string library_version();  // "3.2.0"

// `batch` products y = op(a) op(b) + bias, then ReLU if `relu` (which keeps NaN; -inf becomes NaN).
//   a (batch, m, k), stored as (batch, k, m) if transpose_a;  b (batch, k, n), stored likewise;
//   b is one matrix for the whole batch if shared_b, and one packed by `packed_width` columns
//   (src/ops/matmul.h) if that is not 0;  bias (n) if `bias`;  y (batch, m, n)
struct MatmulSpec {
  std::int64_t batch = 1, m = 1, k = 1, n = 1;
  bool transpose_a = false, transpose_b = false, shared_b = false;
  std::int64_t packed_width = 0;
  bool bias = false, relu = false;
  bool narrow = false;  // a and b are bf16
};
// The panels in which oneDNN reads b if it may choose. Width 0: oneDNN prefers none, or its kernels
// for this processor rearrange b themselves.
PackedLayout preferred_packing(const MatmulSpec& spec);
Prepared make_matmul(const MatmulSpec& spec);  // (a, b, bias) -> y

// Images are stored as (n, c, h, w), or as (n, h, w, c) if channels_last; `x` and `y` always list
// their sizes in the order n, c, h, w. Weights are stored as (o, c, kh, kw).
struct ConvSpec {
  Shape x, weight, y;
  std::int64_t stride = 1, padding = 0;
  bool channels_last = false;
  bool bias = false, relu = false;  // forward only
  bool narrow = false;              // the two factors are bf16
};
Prepared make_conv(const ConvSpec& spec);                  // (x, weight, bias) -> y
Prepared make_conv_backward_input(const ConvSpec& spec);   // (dy, weight) -> dx
Prepared make_conv_backward_weight(const ConvSpec& spec);  // (x, dy) -> dweight

// Square windows without padding; sizes and memory orders as for convolutions. The index of max
// pooling is u8, stored like y: the place in the window, row by row, of the largest element.
struct PoolSpec {
  Shape x, y;
  std::int64_t window = 1, stride = 1;
  bool is_max = false, channels_last = false;
};
Prepared make_avg_pool(const PoolSpec& spec);       // x -> y
Prepared make_pool_backward(const PoolSpec& spec);  // (dy, index if is_max) -> dx

}  // namespace keel::onednn
