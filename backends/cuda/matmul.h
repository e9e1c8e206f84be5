// Matrix products of the device: cuBLASLt, or in emulated builds plain loops on the host.
#pragma once

#include <functional>
#include <string>

#include "src/ops/matmul.h"
#include "src/runtime/backend.h"

namespace keel::cuda {

// Row-major  y = op(a) op(b) + bias, then ReLU if asked for; see src/ops/matmul.h for the shapes.
struct Product {
  MatmulSizes sizes{};
  bool transpose_a = false, transpose_b = false, has_bias = false, relu = false;
  bool is_narrow = false;  // a and b are bf16; bias and y are float32 all the same
  // If not 0: the algorithm is chosen as for a batch of so many, at least as many as there are, so
  // that the bits of one matrix do not depend on how many there are.
  std::int64_t planned_batch = 0;
  std::int64_t alignment = kAlignment;  // of a, b and y: that of every tensor, if nothing is said
};

// The emulator checks that a, b and y are aligned as the product says.
struct ProductData {
  const void *a, *b;
  const float* bias;
  float* y;
  void* workspace;
  bool adds = false;  // y += the product instead; for products without ReLU
};

// Bytes of workspace that any product may use; it begins at a multiple of kAlignment.
inline constexpr std::int64_t kProductWorkspace = (32 << 20) + 256;

// A product whose algorithm is chosen.
struct ProductPlan {
  std::function<void(const ProductData&)> run;
  std::int64_t workspace = 0;  // bytes that it uses, often none

  void operator()(const ProductData& data) const { run(data); }
};

// Chooses the algorithm of the product on the current device; the result runs it there.
ProductPlan plan_product(const Product& product);

// "cuBLASLt 13.0.2".
std::string product_library();

}  // namespace keel::cuda
