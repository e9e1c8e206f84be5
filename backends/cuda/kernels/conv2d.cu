// Convolution: by cuDNN if the build has it and it takes the sizes, else as matrix products,
//   rows(y) = weight columns(x)   columns(dx) = weight^T rows(dy)   dweight = rows(dy) columns(x)^T
// over chunks of images, so that columns and rows stay small. The gradient of weights of 3x3 has
// kernels of its own (conv_dweight.cuh).
#include <memory>

#include "backends/cuda/kernels/conv_columns.cuh"
#include "backends/cuda/kernels/conv_dweight.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/matmul.h"
#include "src/core/bf16.h"
#include "src/ops/conv2d.h"

namespace keel::cuda {
namespace {

// A chunk's columns and rows take no more than this, unless a single image has more. With what
// products work in, it is less than 64 MB.
constexpr std::int64_t kChunkBytes = 24 << 20;
constexpr auto kFloat = std::int64_t(sizeof(float));

std::int64_t aligned_bytes(std::int64_t floats) { return ceil_div(floats * kFloat, 256) * 256; }

std::int64_t terms_of(const ConvSizes& s) { return s.channels * s.rows * s.cols; }

// The product of a chunk `width` columns wide.
Product product_of(const Convolution& c, std::int64_t width) {
  const std::int64_t terms = terms_of(c.sizes), filters = c.sizes.filters;
  Product product{.is_narrow = c.is_narrow};
  switch (c.pass) {
    case ConvPass::kForward:
      product.sizes = {1, filters, terms, width, false};
      break;
    case ConvPass::kBackwardInput:
      product.sizes = {1, terms, filters, width, false}, product.transpose_a = true;
      break;
    default:
      product.sizes = {1, filters, width, terms, false}, product.transpose_b = true;
  }
  return product;
}

// Memory for floats as that of as many T.
template <class T>
Global<T> as(const Global<float>& memory) {
  return {reinterpret_cast<T*>(memory.data()), memory.size()};
}

// Calls f with a value of the type of factors.
template <class F>
void with_factor(DType dtype, const F& f) {
  dtype == DType::kBF16 ? f(BF16{}) : f(float{});
}

// One chunk and the memory it is worked on in; what is a factor there has the type of factors.
struct Work {
  Chunk chunk;
  Global<float> columns, rows;
  const std::function<void(const ProductData&)>& product;
  void* product_memory;

  std::int64_t input_image() const {  // elements
    return chunk.sizes.channels * chunk.sizes.height * chunk.sizes.width;
  }
  std::int64_t output_image() const { return chunk.sizes.filters * chunk.places(); }
  // The chunk's own images, of so many elements each.
  template <class T>
  Global<T> of_chunk(const Global<T>& images, std::int64_t image) const {
    return {images.data() + chunk.first * image, chunk.images * image};
  }
  void read_columns(const TensorRef& x) const {
    const Grid grid = one_thread_each(chunk.sizes.channels * chunk.width());
    with_index(chunk.most_elements(), [&]<class Index>(Index) {
      with_factor(x.type.dtype, [&]<class T>(T) {
        launch(unfold<Index, T>, grid, ChunkSizes<Index>(chunk),
               of_chunk(global<const T>(x), input_image()), as<T>(columns));
      });
    });
  }
  void read_rows(const TensorRef& dy) const {
    with_index(chunk.most_elements(), [&]<class Index>(Index) {
      with_factor(dy.type.dtype, [&]<class T>(T) {
        launch(gather_rows<Index, T>, one_thread_each(rows.size()), ChunkSizes<Index>(chunk),
               of_chunk(global<const T>(dy), output_image()), as<T>(rows));
      });
    });
  }
  void multiply(const void* a, const void* b, float* y) const {
    product({a, b, nullptr, y, product_memory});
  }
};

// A convolution cut into chunks of equally many images, but for the last. There is at least one
// chunk, if of no images: products of nothing are zero.
class Plan {
 public:
  explicit Plan(const Convolution& c) : sizes_(c.sizes) {
    const Chunk image{sizes_, 0, 1};
    const std::int64_t bytes = (terms_of(sizes_) + sizes_.filters) * image.places() * kFloat;
    const std::int64_t most = std::max<std::int64_t>(kChunkBytes / std::max(bytes, kFloat), 1);
    chunks_ = std::max<std::int64_t>(ceil_div(sizes_.images, most), 1);
    length_ = ceil_div(sizes_.images, chunks_);
    whole_ = plan_product(product_of(c, chunk(0).width()));
    last_ = plan_product(product_of(c, chunk(chunks_ - 1).width()));
    rows_ = kProductWorkspace + aligned_bytes(terms_of(sizes_) * chunk(0).width());
    end_ = rows_ + aligned_bytes(sizes_.filters * chunk(0).width());
  }

  std::int64_t chunks() const { return chunks_; }
  // Bytes of workspace; what else a pass needs may follow them.
  std::int64_t workspace() const { return end_; }

  Work work(const Binding& b, std::int64_t i) const {
    const Chunk part = chunk(i);
    return {part, cuda::workspace(b, terms_of(sizes_) * part.width(), kProductWorkspace),
            cuda::workspace(b, sizes_.filters * part.width(), rows_),
            i + 1 < chunks_ ? whole_ : last_, b.workspace};
  }

 private:
  Chunk chunk(std::int64_t i) const {
    const std::int64_t first = i * length_;
    return {sizes_, first, std::min(length_, sizes_.images - first)};
  }

  ConvSizes sizes_;
  std::int64_t chunks_, length_, rows_, end_;
  std::function<void(const ProductData&)> whole_, last_;
};

void forward(const Binding& b, const Plan& plan, bool relu) {
  using In = ConvInput;
  for (std::int64_t i = 0; i < plan.chunks(); ++i) {
    const Work work = plan.work(b, i);
    work.read_columns(b.inputs[In::kX]);
    work.multiply(b.inputs[In::kWeight].data, work.columns.data(), work.rows.data());
    with_index(work.chunk.most_elements(), [&]<class Index>(Index) {
      launch(scatter_rows<Index>, one_thread_each(work.rows.size()), ChunkSizes<Index>(work.chunk),
             work.rows, input(b.inputs[In::kBias]),
             work.of_chunk(output(b.outputs[0]), work.output_image()), relu);
    });
  }
}

void backward_input(const Binding& b, const Plan& plan) {
  using In = ConvDxInput;
  for (std::int64_t i = 0; i < plan.chunks(); ++i) {
    const Work work = plan.work(b, i);
    work.read_rows(b.inputs[In::kDy]);
    work.multiply(b.inputs[In::kWeight].data, work.rows.data(), work.columns.data());
    const Grid grid = one_thread_each(work.chunk.images * work.input_image());
    with_index(work.chunk.most_elements(), [&]<class Index>(Index) {
      launch(fold<Index>, grid, ChunkSizes<Index>(work.chunk), work.columns,
             work.of_chunk(output(b.outputs[0]), work.input_image()));
    });
  }
}

__global__ void add(Global<float> sum, Global<const float> term) {
  for (std::int64_t e = grid_thread(); e < sum.size(); e += grid_threads()) sum[e] += term[e];
}

// The chunks' sums are added up in order.
void backward_weight(const Binding& b, const Plan& plan) {
  const auto dweight = output(b.outputs[0]);
  const auto term = workspace(b, dweight.size(), plan.workspace());
  for (std::int64_t i = 0; i < plan.chunks(); ++i) {
    const Work work = plan.work(b, i);
    work.read_columns(b.inputs[ConvDweightInput::kX]);
    work.read_rows(b.inputs[ConvDweightInput::kDy]);
    const auto sum = i == 0 ? dweight : term;
    work.multiply(work.rows.data(), work.columns.data(), sum.data());
    if (i > 0) launch(add, one_thread_each(dweight.size()), dweight, term);
  }
}

Prepared by_products(const Convolution& c) {
  const auto plan = std::make_shared<const Plan>(c);
  switch (c.pass) {
    case ConvPass::kForward:
      return kernel_of([plan, relu = c.relu](const Binding& b) { forward(b, *plan, relu); },
                       plan->workspace());
    case ConvPass::kBackwardInput:
      return kernel_of([plan](const Binding& b) { backward_input(b, *plan); }, plan->workspace());
    default:
      return kernel_of([plan](const Binding& b) { backward_weight(b, *plan); },
                       plan->workspace() + aligned_bytes(c.sizes.filters * terms_of(c.sizes)));
  }
}

// dweight = the sums of all slices, in order.
__global__ void join_dweight(Global<const float> sums, int slices, Global<float> dweight) {
  const std::int64_t n = dweight.size();
  for (std::int64_t e = grid_thread(); e < n; e += grid_threads()) {
    float sum = 0;
    for (int slice = 0; slice < slices; ++slice) sum += sums[slice * n + e];
    dweight[e] = sum;
  }
}

// Whether the kernels of conv_dweight.cuh take it. They count in int, and multiply without tensor
// cores and in smaller tiles than products do: by an estimate for an H100, which was not measured,
// the columns that they do without cost more than that as long as there are few channels.
bool has_direct_dweight(const Convolution& c) {
  const ConvSizes& s = c.sizes;
  const auto fits = [](std::int64_t elements) { return elements > 0 && elements < (1 << 30); };
  const std::int64_t most = c.is_narrow ? 32 * 32 : 64 * 64;
  return c.pass == ConvPass::kBackwardWeight && s.channels * s.filters <= most && s.rows == 3 &&
         s.cols == 3 && (s.stride == 1 || s.stride == 2) && s.padding < (1 << 20) &&
         fits(s.images * s.channels * s.height * s.width) &&
         fits(s.images * s.filters * s.out_height * s.out_width) &&
         fits(s.filters * s.channels * 9);
}

template <class S>
Prepared direct_dweight(const Convolution& c) {
  const DweightSizes sizes(c.sizes, S::kRows, S::kCols);
  const bool is_joined = sizes.slices > 1;
  const auto run = [=, stride = c.sizes.stride](const Binding& b) {
    const TensorRef &x = b.inputs[ConvDweightInput::kX], &dy = b.inputs[ConvDweightInput::kDy];
    const auto dweight = output(b.outputs[0]);
    const auto sums = is_joined ? workspace(b, sizes.slices * sizes.weights()) : dweight;
    with_factor(x.type.dtype, [&]<class T>(T) {
      launch(stride == 1 ? sum_dweight<1, S, T> : sum_dweight<2, S, T>,
             {std::int64_t{sizes.tiles} * sizes.slices, kDweightBlock}, sizes, global<const T>(x),
             global<const T>(dy), sums);
    });
    if (is_joined) {
      launch(join_dweight, one_thread_each(dweight.size()), sums, sizes.slices, dweight);
    }
  };
  return kernel_of(run, is_joined ? sizes.slices * sizes.weights() * kFloat : 0);
}

// Narrow images have short strips, of which less is empty.
Prepared direct_dweight(const Convolution& c) {
  if (c.sizes.out_width <= 8) return direct_dweight<Strip<2, 8>>(c);
  if (c.sizes.out_width <= 16) return direct_dweight<Strip<2, 16>>(c);
  return direct_dweight<Strip<1, 32>>(c);
}

template <class Attrs>
Prepared prepare(const NodeContext& c, ConvPass pass, const Shape (&shapes)[3], const Attrs& attrs,
                 bool relu = false) {
  if (attrs.channels_last) return refuse("convolves images stored as (n, c, h, w) only");
  const auto& [x, weight, y] = shapes;
  const ConvSizes sizes{x[0],      x[1], x[2], x[3],         weight[0],    weight[2],
                        weight[3], y[2], y[3], attrs.stride, attrs.padding};
  const Convolution convolution{pass, sizes, relu, c.input(0).dtype == DType::kBF16};
  if (has_direct_dweight(convolution)) return direct_dweight(convolution);
#ifdef KEEL_CUDNN
  // cuDNN's results have the type of its factors, and float32 is wanted.
  if (!convolution.is_narrow) {
    if (std::optional<Prepared> prepared = plan_convolution(convolution)) return *prepared;
  }
#endif
  return by_products(convolution);
}

}  // namespace

std::string convolution_library() {
#ifdef KEEL_CUDNN
  return cudnn_version();
#else
  return "";
#endif
}

Prepared prepare_conv2d(const NodeContext& c) {
  using In = ConvInput;
  const auto& attrs = c.attrs<ConvAttrs>();
  return prepare(c, ConvPass::kForward,
                 {c.input(In::kX).shape, c.input(In::kWeight).shape, c.output().shape}, attrs,
                 attrs.activation == Activation::kRelu);
}

Prepared prepare_conv2d_backward_input(const NodeContext& c) {
  using In = ConvDxInput;
  return prepare(c, ConvPass::kBackwardInput,
                 {c.output().shape, c.input(In::kWeight).shape, c.input(In::kDy).shape},
                 c.attrs<ConvBackwardAttrs>());
}

Prepared prepare_conv2d_backward_weight(const NodeContext& c) {
  using In = ConvDweightInput;
  return prepare(c, ConvPass::kBackwardWeight,
                 {c.input(In::kX).shape, c.output().shape, c.input(In::kDy).shape},
                 c.attrs<ConvBackwardAttrs>());
}

}  // namespace keel::cuda
