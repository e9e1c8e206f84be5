// cuBLASLt's part: products by plain loops with sums in double, as the emulator of fibers has them
// (backends/cuda/emulator/matmul.cpp), so that both give the same bits. It reads the descriptions
// that keel makes: their layout, transposes and bias are tested, cuBLASLt's own work is not.
#include <cublasLt.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "tests/ptx/cuda/device.h"
#include "tests/ptx/cuda/streams.h"
#include "tests/ptx/fault.h"

using keel::ptx::answer;
using keel::ptx::device;
using keel::ptx::fail;

namespace {

// A batch of matrices (rows, columns) stored by columns, whose starts lie `height` apart.
struct Layout {
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, height = 0, stride = 0;
  std::int32_t batch = 1;

  std::int64_t width() const { return type == CUDA_R_16BF ? 2 : 4; }  // bytes of an element
};

struct Description {
  bool tf32 = false;
  std::int32_t transposes[2] = {CUBLAS_OP_N, CUBLAS_OP_N}, epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const float* bias = nullptr;
};

const Layout& layout(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<Layout*>(handle); }

// The nearest number with 10 bits of mantissa, as tensor cores take factors.
float to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = (1 << 13) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + kDropped / 2 + (bits >> 13 & 1)) & ~kDropped);
}

// One matrix of a batch, transposed or not.
struct Matrix {
  const std::byte* data;
  const Layout& layout;
  bool transposed, tf32;

  std::int64_t rows() const { return transposed ? layout.columns : layout.rows; }
  std::int64_t columns() const { return transposed ? layout.rows : layout.columns; }
  double at(std::int64_t row, std::int64_t column) const {
    if (transposed) std::swap(row, column);
    const std::int64_t at = (column * layout.height + row) * layout.width();
    if (layout.type == CUDA_R_16BF) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, data + at, sizeof bits);
      return std::bit_cast<float>(std::uint32_t{bits} << 16);
    }
    float value = 0;
    std::memcpy(&value, data + at, sizeof value);
    return tf32 ? to_tf32(value) : value;
  }
};

// y, of which `kept` parts stay: 0 or 1. The bias, if there is one, has an element for each row.
struct Sums {
  float* y;
  const Layout& layout;
  const float* bias;
  float kept;

  void store(std::int64_t row, std::int64_t column, float sum) const {
    float& at = y[column * layout.height + row];
    if (bias) sum += bias[row];
    at = kept != 0 ? sum + at : sum;
  }
};

void multiply(const Matrix& a, const Matrix& b, const Sums& to) {
  const std::int64_t rows = a.rows();
  std::vector<double> sums(static_cast<std::size_t>(rows));
  for (std::int64_t column = 0; column < b.columns(); ++column) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t i = 0; i < b.rows(); ++i) {
      const double right = b.at(i, column);
      for (std::int64_t row = 0; row < rows; ++row) {
        sums[std::size_t(row)] += a.at(row, i) * right;
      }
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      to.store(row, column, float(sums[std::size_t(row)]));
    }
  }
}

// The operand lies in device memory and is as aligned as keel promised cuBLASLt.
void expect_operand(const void* data, const Layout& of, const char* what,
                    std::uint64_t alignment = 64) {
  const auto at = reinterpret_cast<std::uint64_t>(data);
  if (at % alignment) fail("a product's {} is not aligned to {} bytes", what, alignment);
  const std::int64_t last = (of.batch - 1) * of.stride + (of.columns - 1) * of.height + of.rows;
  if (!device().kernels.memory().holds(at, last * of.width())) {
    fail("a product's {}: {}", what, device().kernels.memory().whereabouts(at));
  }
}

template <class T>
cublasStatus_t set(T& field, const void* value, std::size_t bytes) {
  if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// The bias that the product adds to each row of its result, which must lie in device memory.
const float* bias_of(const Description& how, const Layout& y) {
  if (how.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return nullptr;
  if (how.epilogue != CUBLASLT_EPILOGUE_BIAS) fail("a product with another epilogue than a bias");
  expect_operand(how.bias, {.rows = y.rows, .columns = 1, .height = y.rows}, "bias");
  return how.bias;
}

cublasStatus_t status_of(cudaError_t status) {
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

KEEL_PTX_API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API const char* cublasLtGetStatusString(cublasStatus_t) { return device().text.c_str(); }

KEEL_PTX_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made,
                                                       cudaDataType type, std::uint64_t rows,
                                                       std::uint64_t columns, std::int64_t height) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, std::int64_t(rows), std::int64_t(columns), height});
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  delete reinterpret_cast<Layout*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                             cublasLtMatrixLayoutAttribute_t what,
                                                             const void* value, std::size_t bytes) {
  auto& to = *reinterpret_cast<Layout*>(handle);
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(to.batch, value, bytes);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(to.stride, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

KEEL_PTX_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made,
                                                     cublasComputeType_t compute, cudaDataType) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(
      new Description{compute == CUBLAS_COMPUTE_32F_FAST_TF32});
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  delete reinterpret_cast<Description*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                           cublasLtMatmulDescAttributes_t what,
                                                           const void* value, std::size_t bytes) {
  auto& to = *reinterpret_cast<Description*>(handle);
  if (what == CUBLASLT_MATMUL_DESC_TRANSA) return set(to.transposes[0], value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB) return set(to.transposes[1], value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(to.epilogue, value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(to.bias, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

KEEL_PTX_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new std::uint32_t(256));
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  delete reinterpret_cast<std::uint32_t*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
KEEL_PTX_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t what, const void* value,
    std::size_t bytes) {
  if (what != CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) return CUBLAS_STATUS_SUCCESS;
  return set(*reinterpret_cast<std::uint32_t*>(handle), value, bytes);
}
KEEL_PTX_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference, int,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  results[0] = {};
  results[0].algo.data[0] = *reinterpret_cast<std::uint32_t*>(preference);
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

KEEL_PTX_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void*,
                                           const void* a, cublasLtMatrixLayout_t a_layout,
                                           const void* b, cublasLtMatrixLayout_t b_layout,
                                           const void* beta, const void*, cublasLtMatrixLayout_t,
                                           void* y, cublasLtMatrixLayout_t y_layout,
                                           const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                           std::size_t, cudaStream_t stream) {
  return status_of(answer([&] {
    keel::ptx::begin_work(stream);
    const Layout of_a = layout(a_layout), of_b = layout(b_layout), of_y = layout(y_layout);
    const Description description = *reinterpret_cast<Description*>(how);
    const std::uint64_t alignment = algorithm->data[0];
    expect_operand(a, of_a, "first factor", alignment);
    expect_operand(b, of_b, "second factor", alignment);
    expect_operand(y, of_y, "result", alignment);
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256) fail("a workspace begins unaligned");
    const float* const bias = bias_of(description, of_y);
    const float kept = *static_cast<const float*>(beta);
    if (kept != 0 && kept != 1) fail("a product that keeps another part of y than all or none");
    device().enqueue([=] {
      for (std::int64_t i = 0; i < of_y.batch; ++i) {
        const auto* const left = static_cast<const std::byte*>(a) + i * of_a.stride * of_a.width();
        const auto* const right = static_cast<const std::byte*>(b) + i * of_b.stride * of_b.width();
        multiply({left, of_a, description.transposes[0] == CUBLAS_OP_T, description.tf32},
                 {right, of_b, description.transposes[1] == CUBLAS_OP_T, description.tf32},
                 {static_cast<float*>(y) + i * of_y.stride, of_y, bias, kept});
      }
    });
    return cudaSuccess;
  }));
}
