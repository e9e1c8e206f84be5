// Parts of the un-centred column norms, compiled once per instruction set: sums of squares of
// channels, the sums for a gradient, and zeros in the rows that a mask leaves out.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_COLUMNS_INL_H_
#endif

#include "backends/onednn/column_plan.h"
#include "backends/onednn/simd/column_norm-inl.h"
#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Sums of squares for a register of columns whose squares leave the range of a float.
template <class Part, class T>
HWY_NOINLINE WideDoubles strip_squares_in_double(Part part, const T* x, const Strip& strip) {
  WideDoubles sum = WideDoubles::zero();
  for (std::size_t row = 0; row < strip.rows; ++row) {
    const WideDoubles v = WideDoubles::of(part.load(x + strip.offsets[row]));
    sum = sum + v * v;
  }
  return sum;
}

// Adds the sums of squares of a strip of columns, for sum_strip.
template <class T>
struct StripSquares {
  static constexpr std::size_t kKinds = 1;
  struct None {};
  const Strip& strip;
  const T* x;
  double* squares;

  template <class Part>
  HWY_INLINE None constants(Part, std::size_t) const {
    return {};
  }
  template <class Part>
  HWY_INLINE void add(Part part, std::size_t i, None, Floats (&sums)[kKinds]) const {
    const Floats v = part.load(x + i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  }
  template <class Part>
  HWY_INLINE void take(Part part, std::size_t c, None, const Floats (&sums)[kKinds]) const {
    const WideDoubles usual = WideDoubles::of(sums[0]);
    const hn::Mask<F> is_usual = in_range(sums[0]);
    add_to(squares + c, holds_for_all(part, is_usual)
                            ? usual
                            : either(is_usual, usual, strip_squares_in_double(part, x + c, strip)));
  }
};

// The sum of squares of n neighbours.
template <class T>
HWY_INLINE double span_squares(const T* x, std::size_t n) {
  ChainedSum squares;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats v = part.load(x + i);
        squares.add_product(chain, v, v);
      },
      [&]() KEEL_LOOP_BODY { squares.end_run(); });
  const double sum = squares.total();
  return sum > kLeastSquares && std::isfinite(sum) ? sum : row_squares_in_double(x, n);
}

// Adds sums of x^2 over a tile to squares, one a channel; padded to whole registers.
template <class T>
HWY_INLINE void add_squares(const Tile& tile, const T* x, RowMask mask, double* squares) {
  if (tile.inner == 1) {
    return for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
      sum_strip(strip, tile.channels, StripSquares<T>{strip, x, squares});
    });
  }
  if (has_short_spans(tile)) {
    return for_span_columns(tile, [&](const SpanColumns& columns) HWY_ATTR {
      HWY_ALIGN double of_columns[kSpanStride] = {};
      add_squares(columns.tile, x, mask, of_columns);
      add_spans(columns, of_columns, squares);
    });
  }
  for (std::size_t row = 0; row < tile.rows; ++row) {
    const T* spans = x + tile.offset + row * tile.stride;
    for (std::size_t c = 0; c < tile.channels; ++c) {
      squares[c] += span_squares(spans + c * tile.inner, tile.inner);
    }
  }
}

// Sums part by part, in the same order as a kernel that uses each part again while it is cached, so
// that all kernels get the same sums.
template <class T>
HWY_INLINE void tile_squares(const Tile& tile, const T* x, RowMask mask, double* squares) {
  std::fill_n(squares, tile.channels, 0.0);
  for_row_parts(tile, [&](const Tile& part) HWY_ATTR { add_squares(part, x, mask, squares); });
}

// The inputs: tensors x and dy, and the factor of xhat = x * rstd (channels).
template <class T>
struct UncentredGradient {
  const T *x, *dy;
  const float* rstd;
};

// Per channel: sums over rows of dy and of dy * xhat; padded to whole registers.
struct GradientSums {
  double *dy, *dy_xhat;
};

// The sums of a strip of columns, for sum_strip. `in` holds whole tensors, but only the
// factors of these channels.
template <class T>
struct StripUncentredGradient {
  static constexpr std::size_t kKinds = 2;
  enum : std::size_t { kDy, kDyXhat };
  const UncentredGradient<T>& in;
  const GradientSums& into;

  template <class Part>
  HWY_INLINE Floats constants(Part part, std::size_t c) const {
    return part.load(in.rstd + c);
  }
  template <class Part>
  HWY_INLINE void add(Part part, std::size_t i, Floats rstd, Floats (&sums)[kKinds]) const {
    const Floats xhat = hn::Mul(part.load(in.x + i), rstd), dy = part.load(in.dy + i);
    sums[kDy] = hn::Add(sums[kDy], dy);
    sums[kDyXhat] = hn::MulAdd(dy, xhat, sums[kDyXhat]);
  }
  template <class Part>
  HWY_INLINE void take(Part, std::size_t c, Floats, const Floats (&sums)[kKinds]) const {
    add_to(into.dy + c, WideDoubles::of(sums[kDy]));
    add_to(into.dy_xhat + c, WideDoubles::of(sums[kDyXhat]));
  }
};

template <class T>
HWY_INLINE void add_span(const UncentredGradient<T>& in, std::size_t n, const GradientSums& sums) {
  ChainedSum dys, products;
  const Floats rstd = splat(*in.rstd);
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats dy = part.load(in.dy + i);
        dys.add(chain, dy);
        products.add_product(chain, dy, hn::Mul(part.load(in.x + i), rstd));
      },
      [&]() KEEL_LOOP_BODY {
        dys.end_run();
        products.end_run();
      });
  *sums.dy += dys.total();
  *sums.dy_xhat += products.total();
}

// Adds the sums of a tile. `in` holds whole tensors; sums begins at the tile's first channel.
template <class T>
HWY_INLINE void add_gradient_sums(const Tile& tile, const UncentredGradient<T>& in, RowMask mask,
                                  const GradientSums& sums) {
  const float* rstd = in.rstd + tile.first;
  if (tile.inner == 1) {
    const UncentredGradient<T> from_first{in.x, in.dy, rstd};
    return for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
      sum_strip(strip, tile.channels, StripUncentredGradient<T>{from_first, sums});
    });
  }
  if (has_short_spans(tile)) {
    return for_span_columns(tile, [&](const SpanColumns& columns) HWY_ATTR {
      HWY_ALIGN float rstds[kSpanStride];
      HWY_ALIGN double dy[kSpanStride] = {}, dy_xhat[kSpanStride] = {};
      spread(columns, rstd, rstds);
      add_gradient_sums(columns.tile, UncentredGradient<T>{in.x, in.dy, rstds}, mask,
                        {dy, dy_xhat});
      add_spans(columns, dy, sums.dy);
      add_spans(columns, dy_xhat, sums.dy_xhat);
    });
  }
  for (std::size_t row = 0; row < tile.rows; ++row) {
    for (std::size_t c = 0; c < tile.channels; ++c) {
      const std::size_t first = tile.offset + row * tile.stride + c * tile.inner;
      add_span(UncentredGradient<T>{in.x + first, in.dy + first, rstd + c}, tile.inner,
               {sums.dy + c, sums.dy_xhat + c});
    }
  }
}

template <class T>
HWY_INLINE void tile_gradient_sums(const Tile& tile, const UncentredGradient<T>& in, RowMask mask,
                                   const GradientSums& sums) {
  for (double* sum : {sums.dy, sums.dy_xhat}) std::fill_n(sum, tile.channels, 0.0);
  for_row_parts(tile, [&](const Tile& part) HWY_ATTR { add_gradient_sums(part, in, mask, sums); });
}

// Sum `kind` of channels c, c + 1, ... over all blocks, in their order.
HWY_INLINE WideDoubles sum_of_blocks(const ColumnPlan& plan, void* workspace, std::size_t kind,
                                     std::size_t c) {
  WideDoubles sum = WideDoubles::load(plan.sum(workspace, 0, kind) + c);
  for (std::size_t block = 1; block < plan.sum_blocks(); ++block) {
    sum = sum + WideDoubles::load(plan.sum(workspace, block, kind) + c);
  }
  return sum;
}

// The location in a workspace of a block's sums for one tile, beginning with `kind`.
struct SumPlace {
  void* workspace;
  std::size_t block, kind;
};

// Copy the values given to a node, for one tile, to the place of the first block's sums. The
// other blocks have no sums.
HWY_INLINE void take_squares(const ColumnPlan& plan, const SumPlace& at, const TensorRef& given,
                             const Tile& tile) {
  if (at.block > 0) return;
  take_row(plan, given, SquareRow::kSquares, plan.sum(at.workspace, 0, at.kind), tile);
}
HWY_INLINE void take_gradients(const ColumnPlan& plan, const SumPlace& at, const TensorRef& given,
                               const Tile& tile) {
  if (at.block > 0) return;
  take_row(plan, given, UncentredSumRow::kDy, plan.sum(at.workspace, 0, at.kind), tile);
  take_row(plan, given, UncentredSumRow::kDyXhat, plan.sum(at.workspace, 0, at.kind + 1), tile);
}

// Writes y = x * rstd * gain + bias (channels; gain and bias may be null) of a tile,
// and 0 in the rows left out.
template <class T>
struct UncentredForward {
  const T* x;
  const float *rstd, *gain, *bias;
  ResultRows y;
};

// Calls body(i) for each row of a tile that the mask leaves out; i is the row's first element.
template <class Body>
HWY_INLINE void for_left_out(const Tile& tile, RowMask mask, const Body& body) {
  if (mask == nullptr) return;
  for (std::size_t row = 0; row < tile.rows; ++row) {
    const std::size_t at = tile.offset + row * tile.stride;
    if (mask[at / tile.stride] == 0) body(at);
  }
}

HWY_INLINE void clear_left_out(const Tile& tile, RowMask mask, const ResultRows& y) {
  for_left_out(tile, mask, [&](std::size_t at) { y.clear(at, tile.channels); });
}

template <class T>
HWY_INLINE void write_forward(const Tile& tile, const UncentredForward<T>& in, RowMask mask) {
  struct Constants {
    Floats rstd, gain, bias;
  };
  const auto at = [in](auto reader, std::size_t c) KEEL_LOOP_BODY {
    return Constants{reader.load(in.rstd + c), in.gain ? reader.load(in.gain + c) : splat(1),
                     in.bias ? reader.load(in.bias + c) : zero()};
  };
  with_put(in.y, [&](auto put) KEEL_LOOP_BODY {
    const auto body = [x = in.x, put](auto part, const Constants& k, std::size_t i) KEEL_LOOP_BODY {
      put(part, hn::MulAdd(hn::Mul(part.load(x + i), k.rstd), k.gain, k.bias), i);
    };
    for_tile(tile, at, body, &in.y);
  });
  clear_left_out(tile, mask, in.y);
}

// dx = factor * (dy * gain - xhat * slope), xhat = x * rstd. rstd, factor, slope, gain are
// (channels); slope (then 0) and gain may be null. dx may be dy.
template <class T>
struct UncentredBackward {
  UncentredGradient<T> in;
  const float *factor, *slope, *gain;
  ResultRows dx;
};

template <class T>
HWY_INLINE void write_backward(const Tile& tile, const UncentredBackward<T>& b, RowMask mask) {
  struct Constants {
    Floats rstd, factor, slope, gain;
  };
  const auto at = [b](auto reader, std::size_t c) KEEL_LOOP_BODY {
    return Constants{reader.load(b.in.rstd + c), reader.load(b.factor + c),
                     b.slope ? reader.load(b.slope + c) : zero(),
                     b.gain ? reader.load(b.gain + c) : splat(1)};
  };
  with_put(b.dx, [&](auto put) KEEL_LOOP_BODY {
    const auto body = [x = b.in.x, dy = b.in.dy, put](auto part, const Constants& k, std::size_t i)
                          KEEL_LOOP_BODY {
                            const Floats xhat = hn::Mul(part.load(x + i), k.rstd);
                            const Floats g = hn::Mul(part.load(dy + i), k.gain);
                            put(part, hn::Mul(k.factor, hn::NegMulAdd(xhat, k.slope, g)), i);
                          };
    for_tile(tile, at, body, &b.dx);
  });
  clear_left_out(tile, mask, b.dx);
}

// Stores a register of dgain and of dbias from channel c on, if they are wanted.
template <class BackOut, class Part>
HWY_INLINE void store_parameter_gradients(Part part, const Binding& b, std::size_t c,
                                          const WideDoubles& dgain, const WideDoubles& dbias) {
  if (b.outputs[BackOut::kDgain]) {
    part.store(dgain.floats(), b.outputs[BackOut::kDgain].template as<float>() + c);
  }
  if (b.outputs[BackOut::kDbias]) {
    part.store(dbias.floats(), b.outputs[BackOut::kDbias].template as<float>() + c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
