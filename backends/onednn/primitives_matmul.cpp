// Matrix products of oneDNN.
#include <algorithm>
#include <string_view>

#include "backends/onednn/primitives_plan.h"
#include "backends/onednn/threads.h"
#include "src/ops/matmul.h"

namespace keel::onednn {
namespace {

using Type = dnnl::memory::data_type;

// Describes (batch, rows, cols), or (rows, cols) for one matrix, stored as (cols, rows) when
// `transposed`.
Desc matrix(const Dims& sizes, bool transposed, Type type = Type::f32) {
  const std::int64_t rows = sizes[sizes.size() - 2], cols = sizes.back();
  Dims strides = transposed ? Dims{1, rows} : Dims{cols, 1};
  if (sizes.size() == 3) strides.insert(strides.begin(), rows * cols);
  return {sizes, type, strides};
}

using Tag = dnnl::memory::format_tag;

// The order of a matrix in panels of `width` columns, whose rows are rounded up to multiples of 16;
// none of another width.
constexpr std::int64_t kPanelRows = 16;
Tag panel_order(std::int64_t width) {
  switch (width) {
    case 16:
      return Tag::BA16a16b;
    case 32:
      return Tag::BA16a32b;
    case 48:
      return Tag::BA16a48b;
    case 64:
      return Tag::BA16a64b;
    default:
      return Tag::undef;
  }
}

Desc panels(const Dims& sizes, std::int64_t width) {
  return {sizes, dnnl::memory::data_type::f32, panel_order(width)};
}

// Whether b is copied into oneDNN's own order first. With AVX-512 that changes no bit and makes a
// product up to three times as fast: long rows of b, stored as they are, meet in few sets of the
// cache. For few rows of y, or a small b, the copy costs more than it brings; a b that is stored
// transposed is fast as it is. See bench/results/products.md.
bool packs_b(const MatmulSpec& spec) {
  return spec.batch == 1 && !spec.narrow && !spec.transpose_b && spec.packed_width == 0 &&
         spec.m >= 256 && std::max(spec.k, spec.n) >= 1000;
}

// Whether products of oneDNN 3.2 for AVX-512 may give each thread a part of a long sum: they do so
// for an `a` stored transposed and few columns, if no fewer threads run them than were planned for.
bool splits_sums(const MatmulSpec& spec) {
  constexpr std::int64_t kLongSum = 2048, kColumns = 64;  // columns that a thread takes
  const std::int64_t parts = spec.batch * ((spec.n + kColumns - 1) / kColumns);
  return spec.transpose_a && spec.k >= kLongSum && parts < kPrimitiveConcurrency;
}

struct ProductDescs {
  Desc a, b, bias, y;
};

ProductDescs descs_of(const MatmulSpec& spec) {
  const auto sizes = [&](std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    return spec.batch == 1 ? Dims{rows, cols} : Dims{batch, rows, cols};
  };
  const Dims b = sizes(spec.shared_b ? 1 : spec.batch, spec.k, spec.n);
  const Type type = spec.narrow ? Type::bf16 : Type::f32;
  return {
      .a = matrix(sizes(spec.batch, spec.m, spec.k), spec.transpose_a, type),
      .b = spec.packed_width > 0 ? panels(b, spec.packed_width) : matrix(b, spec.transpose_b, type),
      .bias = spec.bias ? matrix(sizes(1, 1, spec.n), false) : Desc(),
      .y = matrix(sizes(spec.batch, spec.m, spec.n), false),
  };
}

dnnl::matmul::primitive_desc describe(const ProductDescs& d,
                                      const dnnl::primitive_attr& attributes) {
  return {cpu_engine(), d.a, d.b, d.bias, d.y, attributes};
}

// The order that the product likes b best in. The kernels that AVX2 has, which copy b in pieces
// themselves, take it as it is.
Desc preferred_b(ProductDescs d) {
  const Desc stored = d.b;
  d.b = Desc(d.b.get_dims(), d.b.get_data_type(), Tag::any);
  const auto description = describe(d, {});
  const bool chooses = std::string_view(description.impl_info_str()).starts_with("brg");
  return chooses ? description.weights_desc() : stored;
}

// Puts b into that order, and says where it then lies.
Place pack_b(Plan& plan, ProductDescs& d) {
  const Place stored = input(MatmulInput::kB);
  const Desc packed = preferred_b(d);
  if (packed == d.b) return stored;
  const Place place = plan.reserve(packed);
  plan.reorder(d.b, stored, packed, place);
  d.b = packed;
  return place;
}

void add_product(Plan& plan, const MatmulSpec& spec) {
  using In = MatmulInput;
  ProductDescs d = descs_of(spec);
  const Place b_place = packs_b(spec) ? pack_b(plan, d) : input(In::kB);
  const auto with = [&](const dnnl::primitive_attr& attributes) { return describe(d, attributes); };
  const auto arguments = [&](const auto&) {
    std::vector<Argument> result{{DNNL_ARG_SRC, d.a, input(In::kA)},
                                 {DNNL_ARG_WEIGHTS, d.b, b_place},
                                 {DNNL_ARG_DST, d.y, output(0)}};
    if (spec.bias) result.push_back({DNNL_ARG_BIAS, d.bias, input(In::kBias)});
    return result;
  };
  plan.add(with, spec.relu, arguments, splits_sums(spec));
}

}  // namespace

Prepared make_matmul(const MatmulSpec& spec) {
  return make_plan([&](Plan& plan) { add_product(plan, spec); });
}

PackedLayout preferred_packing(const MatmulSpec& spec) {
  const Dims sizes{spec.k, spec.n};
  PackedLayout form;
  const Prepared asked = make_plan([&](Plan&) {
    const Desc preferred = preferred_b(descs_of(spec));
    for (const std::int64_t width : {16, 32, 48, 64}) {
      if (preferred == panels(sizes, width)) form = {width, kPanelRows};
    }
  });
  return asked.refusal.empty() ? form : PackedLayout{};
}

}  // namespace keel::onednn
