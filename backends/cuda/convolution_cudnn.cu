// Convolution by cuDNN. Only algorithms are used that add products directly (no transforms, whose
// rounding errors are larger) and give the same bits from run to run. Its only such algorithm for
// gradients of weights takes twice as long as products and more: 339 us against 147 us, the average
// over ResNet-20 with a batch of 128 on an H100.
#include <cudnn.h>

#include <limits>
#include <memory>

#include "backends/cuda/convolution.h"
#include "backends/cuda/device.h"
#include "backends/cuda/kernels/index.cuh"
#include "src/core/error.h"
#include "src/ops/conv2d.h"

namespace keel::cuda {
namespace {

// A convolution that would work in more than this is left to products, which work in less.
constexpr std::size_t kMostWorkspace = 256 << 20;

constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kBackwardInput = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;

void expect(cudnnStatus_t status, const char* call, const char* file, int line) {
  if (status != CUDNN_STATUS_SUCCESS) cudaGetLastError();  // not the next launch's
  check(status == CUDNN_STATUS_SUCCESS, ErrorKind::kCheckFailed, "[cuda] {}: {} ({}:{})", call,
        cudnnGetErrorString(status), file, line);
}
#define KEEL_CUDNN_CALL(call) expect(call, #call, __FILE__, __LINE__)

// cuDNN's handle of the current device.
cudnnHandle_t handle() {
  std::shared_ptr<void>& kept = current_device().library(Device::kConvolutions);
  if (!kept) {
    cudnnHandle_t made = nullptr;
    KEEL_CUDNN_CALL(cudnnCreate(&made));
    kept = {made, [](void* h) { cudnnDestroy(static_cast<cudnnHandle_t>(h)); }};
    KEEL_CUDNN_CALL(cudnnSetStream(made, current_device().stream()));
  }
  return static_cast<cudnnHandle_t>(kept.get());
}

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cudnnStatus_t (*)(T)>;

template <class T>
Owned<T> make(cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)) {
  T made = nullptr;
  KEEL_CUDNN_CALL(create(&made));
  return {made, destroy};
}

// y = y + bias of its channel, then ReLU if asked for: cuDNN's own ReLU turns NaN into 0.
__global__ void finish_images(Global<float> y, Global<const float> bias, std::int64_t channels,
                              std::int64_t places, bool relu) {
  for (std::int64_t e = grid_thread(); e < y.size(); e += grid_threads()) {
    const float value = y[e] + bias.get(Divided(Divided(e, places).quotient, channels).rest, 0);
    y[e] = relu && value <= 0 ? 0 : value;
  }
}

// One convolution, forward or for the gradient of its input, described to cuDNN.
class Plan {
 public:
  explicit Plan(const Convolution& c) : convolution_(c) {
    const ConvSizes& s = c.sizes;
    set_images(x_.get(), s.images, s.channels, s.height, s.width);
    set_images(y_.get(), s.images, s.filters, s.out_height, s.out_width);
    KEEL_CUDNN_CALL(cudnnSetFilter4dDescriptor(weight_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                               int(s.filters), int(s.channels), int(s.rows),
                                               int(s.cols)));
    const int padding = int(s.padding), stride = int(s.stride);
    KEEL_CUDNN_CALL(cudnnSetConvolution2dDescriptor(windows_.get(), padding, padding, stride,
                                                    stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                                    CUDNN_DATA_FLOAT));
    const auto math = current_device().tf32() ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    KEEL_CUDNN_CALL(cudnnSetConvolutionMathType(windows_.get(), math));
    is_usable_ = find_workspace() == CUDNN_STATUS_SUCCESS && workspace_ <= kMostWorkspace;
  }

  bool is_usable() const { return is_usable_; }
  std::int64_t workspace() const { return std::int64_t(workspace_); }

  void run(const Binding& b) const {
    const auto in = [&](int place) -> const void* { return b.inputs[std::size_t(place)].data; };
    void* const result = b.outputs[0].data;
    const float one = 1, zero = 0;
    if (convolution_.pass == ConvPass::kForward) {
      KEEL_CUDNN_CALL(cudnnConvolutionForward(
          handle(), &one, x_.get(), in(ConvInput::kX), weight_.get(), in(ConvInput::kWeight),
          windows_.get(), kForward, b.workspace, workspace_, &zero, y_.get(), result));
      return finish(b);
    }
    KEEL_CUDNN_CALL(cudnnConvolutionBackwardData(
        handle(), &one, weight_.get(), in(ConvDxInput::kWeight), y_.get(), in(ConvDxInput::kDy),
        windows_.get(), kBackwardInput, b.workspace, workspace_, &zero, x_.get(), result));
  }

 private:
  static void set_images(cudnnTensorDescriptor_t images, std::int64_t n, std::int64_t c,
                         std::int64_t h, std::int64_t w) {
    KEEL_CUDNN_CALL(cudnnSetTensor4dDescriptor(images, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, int(n),
                                               int(c), int(h), int(w)));
  }

  cudnnStatus_t find_workspace() {
    if (convolution_.pass == ConvPass::kForward) {
      return cudnnGetConvolutionForwardWorkspaceSize(
          handle(), x_.get(), weight_.get(), windows_.get(), y_.get(), kForward, &workspace_);
    }
    return cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle(), weight_.get(), y_.get(), windows_.get(), x_.get(), kBackwardInput, &workspace_);
  }

  void finish(const Binding& b) const {
    const TensorRef& bias = b.inputs[ConvInput::kBias];
    if (!bias && !convolution_.relu) return;
    const ConvSizes& s = convolution_.sizes;
    const auto y = output(b.outputs[0]);
    launch(finish_images, one_thread_each(y.size()), y, input(bias), s.filters,
           s.out_height * s.out_width, convolution_.relu);
  }

  Convolution convolution_;
  Owned<cudnnTensorDescriptor_t> x_ = make(cudnnCreateTensorDescriptor,
                                           cudnnDestroyTensorDescriptor),
                                 y_ = make(cudnnCreateTensorDescriptor,
                                           cudnnDestroyTensorDescriptor);
  Owned<cudnnFilterDescriptor_t> weight_ =
      make(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
  Owned<cudnnConvolutionDescriptor_t> windows_ =
      make(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);
  std::size_t workspace_ = 0;
  bool is_usable_ = false;
};

// cuDNN counts in int, and knows no empty tensors.
bool is_describable(const ConvSizes& s) {
  const auto fits = [](std::int64_t elements) {
    return elements > 0 && elements <= std::numeric_limits<int>::max();
  };
  return fits(s.images * s.channels * s.height * s.width) &&
         fits(s.filters * s.channels * s.rows * s.cols) &&
         fits(s.images * s.filters * s.out_height * s.out_width) && fits(s.padding + 1) &&
         fits(s.stride);
}

}  // namespace

std::optional<Prepared> plan_convolution(const Convolution& convolution) {
  if (convolution.pass == ConvPass::kBackwardWeight) return std::nullopt;
  if (!is_describable(convolution.sizes)) return std::nullopt;
  const auto plan = std::make_shared<const Plan>(convolution);
  if (!plan->is_usable()) return std::nullopt;
  return kernel_of([plan](const Binding& b) { plan->run(b); }, plan->workspace());
}

// It counts so: 91200 is 9.12.0, and 8907 is 8.9.7.
std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion(), major = version < 10000 ? 1000 : 10000;
  return fmt::format("cuDNN {}.{}.{}", version / major, version % major / 100, version % 100);
}

}  // namespace keel::cuda
