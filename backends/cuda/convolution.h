// The computation of convolutions by cuDNN, if the build has it.
#pragma once

#include <optional>

#include "src/runtime/backend.h"

namespace keel::cuda {

// Images (n, c, h, w), filters (o, c, rows, cols), results (n, o, out_height, out_width); see
// src/ops/conv2d.h.
struct ConvSizes {
  std::int64_t images, channels, height, width;
  std::int64_t filters, rows, cols;
  std::int64_t out_height, out_width;
  std::int64_t stride, padding;
};

enum class ConvPass { kForward, kBackwardInput, kBackwardWeight };

struct Convolution {
  ConvPass pass;
  ConvSizes sizes;
  bool relu = false;       // forward only
  bool is_narrow = false;  // the two factors are bf16
};

#ifdef KEEL_CUDNN
// Makes a convolution by cuDNN; returns nothing if cuDNN does not support these sizes or has no
// fast algorithm for this pass.
std::optional<Prepared> plan_convolution(const Convolution& convolution);
// "cuDNN 9.12.0".
std::string cudnn_version();
#endif

}  // namespace keel::cuda
