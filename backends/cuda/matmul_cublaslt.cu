// Matrix products by cuBLASLt.
#include <cublasLt.h>

#include <memory>
#include <utility>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/index.cuh"
#include "backends/cuda/matmul.h"
#include "src/core/error.h"

namespace keel::cuda {
namespace {

void expect(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) cudaGetLastError();  // not the next launch's
  check(status == CUBLAS_STATUS_SUCCESS, ErrorKind::kCheckFailed, "[cuda] {}: {} ({}:{})", call,
        cublasLtGetStatusString(status), file, line);
}
#define KEEL_CUBLAS(call) expect(call, #call, __FILE__, __LINE__)

// Bytes; a workspace is as much longer than what a product uses of it as it may begin too early.
constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::size_t kUsedWorkspace = kProductWorkspace - kWorkspaceAlignment;

// cuBLASLt's handle of the current device.
cublasLtHandle_t handle() {
  std::shared_ptr<void>& kept = current_device().library(Device::kProducts);
  if (!kept) {
    cublasLtHandle_t made = nullptr;
    KEEL_CUBLAS(cublasLtCreate(&made));
    kept = {made, [](void* h) { cublasLtDestroy(static_cast<cublasLtHandle_t>(h)); }};
  }
  return static_cast<cublasLtHandle_t>(kept.get());
}

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

using Layout = Owned<cublasLtMatrixLayout_t>;

// A batch of row-major (rows, columns) matrices, `stride` elements apart. cuBLASLt knows them by
// columns, as their transposes: only of such results does it take a bias.
struct Matrices {
  std::int64_t rows, columns, batch, stride;
  cudaDataType_t type = CUDA_R_32F;
};
Layout make_layout(const Matrices& of) {
  cublasLtMatrixLayout_t layout = nullptr;
  const auto row = static_cast<std::uint64_t>(of.rows);
  const auto column = static_cast<std::uint64_t>(of.columns);
  KEEL_CUBLAS(cublasLtMatrixLayoutCreate(&layout, of.type, column, row, of.columns));
  Layout owned(layout, cublasLtMatrixLayoutDestroy);
  const auto count = static_cast<std::int32_t>(of.batch);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t what, const auto& value) {
    KEEL_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout, what, &value, sizeof value));
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, of.stride);
  return owned;
}

Layout make_factor(Matrices of, bool transposed) {
  if (transposed) std::swap(of.rows, of.columns);
  return make_layout(of);
}

// One product where a batch shares b and its rows of a lie one after the other.
MatmulSizes folded(const Product& product, std::int64_t batch) {
  MatmulSizes sizes = product.sizes;
  sizes.batch = batch;
  if (sizes.shared_b && !product.transpose_a) {
    sizes.m *= sizes.batch;
    sizes.batch = 1;
  }
  return sizes;
}

// y (rows, n) += bias, if there is one, then ReLU if asked for. cuBLASLt adds the bias of a product
// itself, but its ReLU turns NaN into 0.
__global__ void finish_rows(Global<float> y, Global<const float> bias, std::int64_t n, bool relu) {
  for (std::int64_t e = grid_thread(); e < y.size(); e += grid_threads()) {
    const float value = y[e] + bias.get(Divided(e, n).rest, 0);
    y[e] = relu && value <= 0 ? 0 : value;
  }
}

// The first address from `memory` on that is as aligned as cuBLASLt wants it.
void* aligned_workspace(void* memory) {
  const auto place = reinterpret_cast<std::uintptr_t>(memory);
  constexpr std::uintptr_t kUnit = kWorkspaceAlignment;
  return reinterpret_cast<void*>((place + kUnit - 1) / kUnit * kUnit);
}

// One product, prepared: what to multiply and by which algorithm.
class Plan {
 public:
  explicit Plan(const Product& product)
      : product_(product), sizes_(folded(product, product.sizes.batch)) {
    if (is_empty()) return;
    // The transpose of y is that of b times that of a.
    set_transpose(CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b);
    set_transpose(CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a);
    if (product.has_bias) describe(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    const std::int64_t planned = product.planned_batch;
    lay_out(planned > 0 ? folded(product, planned) : sizes_);
    choose();
    lay_out(sizes_);
  }

  // The bytes of a workspace whose beginning may be unaligned.
  std::int64_t workspace() const {
    return workspace_ == 0 ? 0 : std::int64_t(workspace_ + kWorkspaceAlignment);
  }

  void run(const ProductData& data) const {
    const auto [batch, m, k, n, shared_b] = sizes_;
    if (batch * m * n == 0) return;
    const bool lacks_bias = is_empty() && product_.has_bias;
    if (is_empty() && !data.adds) {
      KEEL_CUDA_CALL(cudaMemsetAsync(data.y, 0, std::size_t(batch * m * n) * sizeof(float),
                                     current_device().stream()));
    } else if (!is_empty()) {
      multiply(data);
    }
    if (!lacks_bias && !product_.relu) return;
    const Global<float> y(data.y, batch * m * n);
    launch(finish_rows, one_thread_each(y.size()), y,
           lacks_bias ? Global<const float>(data.bias, n) : Global<const float>(), n,
           product_.relu);
  }

 private:
  bool is_empty() const {
    const MatmulSizes& s = sizes_;
    return s.batch * s.m * s.n * s.k == 0;
  }

  void lay_out(const MatmulSizes& sizes) {
    const auto [batch, m, k, n, shared_b] = sizes;
    const auto type = product_.is_narrow ? CUDA_R_16BF : CUDA_R_32F;
    a_ = make_factor({m, k, batch, m * k, type}, product_.transpose_a);
    b_ = make_factor({k, n, batch, shared_b ? 0 : k * n, type}, product_.transpose_b);
    y_ = make_layout({m, n, batch, m * n});
  }

  // Factors of bf16 have fewer bits than tf32 keeps, so there is nothing to round.
  static Owned<cublasLtMatmulDesc_t> make_description(bool is_narrow) {
    cublasLtMatmulDesc_t made = nullptr;
    const bool rounds = current_device().tf32() && !is_narrow;
    const auto compute = rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    KEEL_CUBLAS(cublasLtMatmulDescCreate(&made, compute, CUDA_R_32F));
    return {made, cublasLtMatmulDescDestroy};
  }

  template <class T>
  void describe(cublasLtMatmulDescAttributes_t what, const T& value) const {
    KEEL_CUBLAS(cublasLtMatmulDescSetAttribute(description_.get(), what, &value, sizeof value));
  }

  void set_transpose(cublasLtMatmulDescAttributes_t which, bool transposed) const {
    describe(which, transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  void multiply(const ProductData& data) const {
    const float one = 1, kept = data.adds ? 1 : 0;
    if (product_.has_bias) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, data.bias);
    KEEL_CUBLAS(cublasLtMatmul(handle(), description_.get(), &one, data.b, b_.get(), data.a,
                               a_.get(), &kept, data.y, y_.get(), data.y, y_.get(), &algorithm_,
                               aligned_workspace(data.workspace), workspace_,
                               current_device().stream()));
  }

  void choose() {
    cublasLtMatmulPreference_t made = nullptr;
    KEEL_CUBLAS(cublasLtMatmulPreferenceCreate(&made));
    const Owned<cublasLtMatmulPreference_t> preference(made, cublasLtMatmulPreferenceDestroy);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      KEEL_CUBLAS(cublasLtMatmulPreferenceSetAttribute(made, what, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kUsedWorkspace});
    for (const auto what :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(what, std::uint32_t(product_.alignment));  // 256 if nothing is said
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    KEEL_CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle(), description_.get(), b_.get(), a_.get(),
                                               y_.get(), y_.get(), made, 1, &best, &found));
    check(found > 0, ErrorKind::kCheckFailed, "[cuda] cuBLASLt has no algorithm for {} x {} x {}",
          sizes_.m, sizes_.k, sizes_.n);
    algorithm_ = best.algo;
    workspace_ = best.workspaceSize;
  }

  Product product_;
  MatmulSizes sizes_;
  Owned<cublasLtMatmulDesc_t> description_ = make_description(product_.is_narrow);
  Layout a_{nullptr, cublasLtMatrixLayoutDestroy}, b_{nullptr, cublasLtMatrixLayoutDestroy},
      y_{nullptr, cublasLtMatrixLayoutDestroy};
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_ = 0;  // bytes
};

}  // namespace

ProductPlan plan_product(const Product& product) {
  const auto plan = std::make_shared<const Plan>(product);
  return {[plan](const ProductData& data) { plan->run(data); }, plan->workspace()};
}

// It counts so: 130002 is 13.0.2.
std::string product_library() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace keel::cuda
