// Parts of the un-centred norms over columns, compiled once per instruction set: sums of squares of
// channels, the sums that a gradient needs, and zeros for the rows that a mask leaves out.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#endif

#include "backends/onednn/column_plan.h"
#include "backends/onednn/simd/column_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Some rows of a slab that are taken together, without those left out; each is the offset of its
// first element.
struct Strip {
  static constexpr std::size_t kMostRows = 64;
  std::size_t rows = 0, offsets[kMostRows];
};

// Calls body(strip) for strips that cover a slab.
template <class Body>
HWY_INLINE void for_strips(const Slab& slab, RowMask mask, const Body& body) {
  const std::size_t step = std::min(strip_rows(slab.channels), Strip::kMostRows);
  const std::size_t first = slab.offset / slab.stride;
  for (std::size_t row = 0; row < slab.rows; row += step) {
    Strip strip;
    for (std::size_t k = row; k < std::min(row + step, slab.rows); ++k) {
      const bool is_kept = mask == nullptr || mask[first + k] != 0;
      if (is_kept) strip.offsets[strip.rows++] = slab.offset + k * slab.stride;
    }
    body(strip);
  }
}

HWY_INLINE void add_to(double* sums, const WideDoubles& more) {
  (WideDoubles::load(sums) + more).store(sums);
}

// Whether a sum of squares has neither overflowed nor lost elements to underflow.
HWY_INLINE hn::Mask<F> in_range(Floats squares) {
  return hn::And(hn::Gt(squares, splat(static_cast<float>(kLeastSquares))),
                 hn::Lt(squares, splat(std::numeric_limits<float>::infinity())));
}

// Sums of squares of a register's worth of columns.
template <class Part>
HWY_INLINE WideDoubles strip_squares(Part part, const float* x, const Strip& strip) {
  Floats chains[kChains] = {zero(), zero(), zero(), zero()};
  for_rows_in_turn(strip.rows, [&](std::size_t row, int chain) HWY_ATTR {
    const Floats v = part.load(x + strip.offsets[row]);
    chains[chain] = hn::MulAdd(v, v, chains[chain]);
  });
  const Floats squares = sum_of_chains(chains);
  const Floats outside = part.only(hn::IfThenZeroElse(in_range(squares), splat(1)));
  if (hn::AllTrue(F(), hn::Eq(outside, zero()))) return WideDoubles::of(squares);
  WideDoubles sum = WideDoubles::zero();
  for (std::size_t row = 0; row < strip.rows; ++row) {
    const WideDoubles v = WideDoubles::of(part.load(x + strip.offsets[row]));
    sum = sum + v * v;
  }
  return sum;
}

// The sum of squares of n neighbours.
HWY_INLINE double span_squares(const float* x, std::size_t n) {
  ChainedSum squares;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) HWY_ATTR {
        const Floats v = part.load(x + i);
        squares.add_product(chain, v, v);
      },
      [&]() HWY_ATTR { squares.end_run(); });
  const double sum = squares.total();
  if (sum > kLeastSquares && std::isfinite(sum)) return sum;
  DoubleSum exact;
  for_lanes(n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats v = part.load(x + i);
    exact.add_product(v, v);
  });
  return exact.total();
}

// squares: the sums of x^2 over a slab, a channel; padded to whole registers.
HWY_INLINE void slab_squares(const Slab& slab, const float* x, RowMask mask, double* squares) {
  std::fill_n(squares, slab.channels, 0.0);
  if (slab.inner == 1) {
    return for_strips(slab, mask, [&](const Strip& strip) HWY_ATTR {
      for_lanes(slab.channels, [&](auto part, std::size_t c) HWY_ATTR {
        add_to(squares + c, strip_squares(part, x + c, strip));
      });
    });
  }
  for (std::size_t row = 0; row < slab.rows; ++row) {
    const float* spans = x + slab.offset + row * slab.stride;
    for (std::size_t c = 0; c < slab.channels; ++c) {
      squares[c] += span_squares(spans + c * slab.inner, slab.inner);
    }
  }
}

// Tensors x and dy, and the factor of xhat = x * rpsi (channels).
struct UncentredGradient {
  const float *x, *dy, *rpsi;
};

// Sums over some rows of dy and of dy * xhat, a channel; padded to whole registers.
struct GradientSums {
  double *dy, *dy_xhat;
};

template <class Part>
HWY_INLINE void add_strip(Part part, const UncentredGradient& in, Floats rpsi, const Strip& strip,
                          const GradientSums& sums) {
  Floats dys[kChains] = {zero(), zero(), zero(), zero()};
  Floats products[kChains] = {zero(), zero(), zero(), zero()};
  for_rows_in_turn(strip.rows, [&](std::size_t row, int chain) HWY_ATTR {
    const Floats xhat = hn::Mul(part.load(in.x + strip.offsets[row]), rpsi);
    const Floats dy = part.load(in.dy + strip.offsets[row]);
    dys[chain] = hn::Add(dys[chain], dy);
    products[chain] = hn::MulAdd(dy, xhat, products[chain]);
  });
  add_to(sums.dy, WideDoubles::of(sum_of_chains(dys)));
  add_to(sums.dy_xhat, WideDoubles::of(sum_of_chains(products)));
}

HWY_INLINE void add_span(const UncentredGradient& in, std::size_t n, const GradientSums& sums) {
  ChainedSum dys, products;
  const Floats rpsi = splat(*in.rpsi);
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) HWY_ATTR {
        const Floats dy = part.load(in.dy + i);
        dys.add(chain, dy);
        products.add_product(chain, dy, hn::Mul(part.load(in.x + i), rpsi));
      },
      [&]() HWY_ATTR {
        dys.end_run();
        products.end_run();
      });
  *sums.dy += dys.total();
  *sums.dy_xhat += products.total();
}

// The sums of a slab; `in` holds whole tensors, sums begins at the slab's first channel.
HWY_INLINE void slab_gradient_sums(const Slab& slab, const UncentredGradient& in, RowMask mask,
                                   const GradientSums& sums) {
  for (double* sum : {sums.dy, sums.dy_xhat}) std::fill_n(sum, slab.channels, 0.0);
  const float* rpsi = in.rpsi + slab.first;
  if (slab.inner == 1) {
    return for_strips(slab, mask, [&](const Strip& strip) HWY_ATTR {
      for_lanes(slab.channels, [&](auto part, std::size_t c) HWY_ATTR {
        add_strip(part, {in.x + c, in.dy + c, nullptr}, part.load(rpsi + c), strip,
                  {sums.dy + c, sums.dy_xhat + c});
      });
    });
  }
  for (std::size_t row = 0; row < slab.rows; ++row) {
    for (std::size_t c = 0; c < slab.channels; ++c) {
      const std::size_t first = slab.offset + row * slab.stride + c * slab.inner;
      add_span({in.x + first, in.dy + first, rpsi + c}, slab.inner,
               {sums.dy + c, sums.dy_xhat + c});
    }
  }
}

// Sum `kind` of channels c, c + 1, ... over all blocks, in their order.
HWY_INLINE WideDoubles sum_of_blocks(const ColumnPlan& plan, void* workspace, std::size_t kind,
                                     std::size_t c) {
  WideDoubles sum = WideDoubles::load(plan.sum(workspace, 0, kind) + c);
  for (std::size_t block = 1; block < std::size_t(plan.blocks.blocks); ++block) {
    sum = sum + WideDoubles::load(plan.sum(workspace, block, kind) + c);
  }
  return sum;
}

// y = x * rpsi * gain + bias (channels; gain and bias each null or not) of a slab; 0 for the rows
// left out.
struct UncentredForward {
  const float *x, *rpsi, *gain, *bias;
  float* y;
};

// Calls body(i) for the rows of a slab that the mask leaves out, i being a row's first element.
template <class Body>
HWY_INLINE void for_left_out(const Slab& slab, RowMask mask, const Body& body) {
  if (mask == nullptr) return;
  for (std::size_t row = 0; row < slab.rows; ++row) {
    const std::size_t at = slab.offset + row * slab.stride;
    if (mask[at / slab.stride] == 0) body(at);
  }
}

HWY_INLINE void clear_left_out(const Slab& slab, RowMask mask, float* y) {
  for_left_out(slab, mask, [&](std::size_t at) { std::fill_n(y + at, slab.channels, 0.0f); });
}

HWY_INLINE void write_forward(const Slab& slab, const UncentredForward& in, RowMask mask) {
  struct Constants {
    Floats rpsi, gain, bias;
  };
  for_slab(
      slab,
      [=](auto reader, std::size_t c) HWY_ATTR {
        return Constants{reader.load(in.rpsi + c), in.gain ? reader.load(in.gain + c) : splat(1),
                         in.bias ? reader.load(in.bias + c) : zero()};
      },
      [=, stride = slab.stride](auto part, const Constants& k, auto rows, std::size_t i) HWY_ATTR {
        for (std::size_t row = 0; row < rows(); ++row) {
          const std::size_t at = i + row * stride;
          const Floats xhat = hn::Mul(part.load(in.x + at), k.rpsi);
          part.store(hn::MulAdd(xhat, k.gain, k.bias), in.y + at);
        }
      });
  clear_left_out(slab, mask, in.y);
}

// dx = factor * (dy * gain - xhat * slope), xhat = x * rpsi; rpsi, factor, slope, gain (channels),
// slope (0 then) and gain each null or not. dx may be dy.
struct UncentredBackward {
  UncentredGradient in;
  const float *factor, *slope, *gain;
  float* dx;
};

HWY_INLINE void write_backward(const Slab& slab, const UncentredBackward& b, RowMask mask) {
  struct Constants {
    Floats rpsi, factor, slope, gain;
  };
  for_slab(
      slab,
      [=](auto reader, std::size_t c) HWY_ATTR {
        return Constants{reader.load(b.in.rpsi + c), reader.load(b.factor + c),
                         b.slope ? reader.load(b.slope + c) : zero(),
                         b.gain ? reader.load(b.gain + c) : splat(1)};
      },
      [=, stride = slab.stride](auto part, const Constants& k, auto rows, std::size_t i) HWY_ATTR {
        for (std::size_t row = 0; row < rows(); ++row) {
          const std::size_t at = i + row * stride;
          const Floats xhat = hn::Mul(part.load(b.in.x + at), k.rpsi);
          const Floats g = hn::Mul(part.load(b.in.dy + at), k.gain);
          part.store(hn::Mul(k.factor, hn::NegMulAdd(xhat, k.slope, g)), b.dx + at);
        }
      });
  clear_left_out(slab, mask, b.dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
