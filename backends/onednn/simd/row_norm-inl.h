// Parts of the row norms, compiled once per instruction set: moments of a row, centring, gain and
// bias, and the sums for a backward. Sums are kept in double.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ROW_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ROW_NORM_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ROW_NORM_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ROW_NORM_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/onednn/row_blocks.h"
#include "backends/onednn/simd/rounded-inl.h"
#include "backends/onednn/simd/standardize-inl.h"
#include "backends/onednn/simd/wide_doubles-inl.h"
#include "backends/onednn/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

template <std::size_t kRows>
using Rows = std::integral_constant<std::size_t, kRows>;

// Calls body(Rows<k>{}, row) for groups of k rows that cover the range. The rows of a group go
// through each pass together, so that one row's sums are added while the next row's are collected.
// A group is as large as L1 allows. A row's results must not depend on its group.
template <class Body>
HWY_INLINE void for_row_groups(const RowRange& range, const Body& body) {
  const std::size_t together = rows_together(range.width);
  std::size_t row = range.first;
  if (together == 4) {
    for (; row + 4 <= range.last; row += 4) body(Rows<4>{}, row);
  } else if (together == 2) {
    for (; row + 2 <= range.last; row += 2) body(Rows<2>{}, row);
  }
  for (; row < range.last; ++row) body(Rows<1>{}, row);
}

// Rows are prefetched at least this many elements ahead. Passes that compute as much as these
// outrun the processor's own prefetcher, which stops at the end of a page.
inline constexpr std::size_t kAhead = 2 * 1024;

// Prefetches a row that will be read or written soon; it may lie after the last row.
template <class T>
HWY_INLINE void prefetch_row(const T* p, std::size_t n) {
  constexpr std::size_t kCacheLine = 64 / sizeof(T);
  for (std::size_t i = 0; i < n; i += kCacheLine) hwy::Prefetch(p + i);
}

// Calls body(T{}) with the element type of x, which is float or BF16: a kernel is compiled for both
// and otherwise the same.
template <class Body>
HWY_INLINE void with_elements(const TensorRef& x, const Body& body) {
  x.type.dtype == DType::kBF16 ? body(BF16{}) : body(float{});
}

// The rows of a node's first result, to which a norm is written: in float32 or rounded to bf16,
// through the caches or past them (see is_streamed).
class ResultRows {
 public:
  HWY_INLINE ResultRows(const Binding& b, std::size_t width)
      : data_(b.outputs.front().data),
        is_narrow_(b.outputs.front().type.dtype == DType::kBF16),
        streamed_(is_streamed(b, width)),
        is_far_(b.outputs.front().type.bytes() >= kStreamedBytes) {}
  // A result that stays in the caches, whatever its size.
  static HWY_INLINE ResultRows cached(const Binding& b) {
    ResultRows rows(b, 0);
    rows.streamed_ = false;
    return rows;
  }
  // The same from element `at` on.
  HWY_INLINE ResultRows from(std::size_t at) const {
    ResultRows rest = *this;
    rest.data_ = is_narrow_ ? static_cast<void*>(narrow() + at) : floats() + at;
    return rest;
  }
  // Whether it is the usual result, float32 through the caches, and the address of that.
  HWY_INLINE bool is_plain() const { return !is_narrow_ && !streamed_; }
  HWY_INLINE float* plain() const { return floats(); }
  HWY_INLINE bool streamed() const { return streamed_; }
  HWY_INLINE bool is_narrow() const { return is_narrow_; }
  // Prefetches n elements that will be written soon, unless the result is small enough for a cache:
  // the processor then keeps up by itself, and prefetches cost more than they save.
  HWY_INLINE void prefetch(std::size_t at, std::size_t n) const {
    if (streamed_ || !is_far_) return;
    is_narrow_ ? prefetch_row(narrow() + at, n) : prefetch_row(floats() + at, n);
  }
  // The same for n elements of an input as large as this, which may lie after its last row.
  template <class T>
  HWY_INLINE void prefetch_input(const T* p, std::size_t n) const {
    if (is_far_) prefetch_row(p, n);
  }
  // Stores one register.
  HWY_INLINE void put(Whole part, Floats v, std::size_t at) const {
    if (!streamed_) return put_cached(part, v, at);
    is_narrow_ ? stream<true>(v, at) : stream<false>(v, at);
  }
  HWY_INLINE void put(First part, Floats v, std::size_t at) const { put_cached(part, v, at); }
  // Stores one register of a result that is not streamed.
  template <class Part>
  HWY_INLINE void put_cached(Part part, Floats v, std::size_t at) const {
    is_narrow_ ? store_rounded(part, v, narrow() + at) : part.store(v, floats() + at);
  }
  // Stores one register of a result that is streamed, and narrow or not.
  template <bool kNarrow>
  HWY_INLINE void stream(Floats v, std::size_t at) const {
    kNarrow ? stream_rounded(v, narrow() + at) : hn::Stream(v, F(), floats() + at);
  }

  // Writes n zeros.
  void clear(std::size_t at, std::size_t n) const {
    if (is_narrow_) {
      std::fill_n(narrow() + at, n, BF16(0.0f));
    } else {
      std::fill_n(floats() + at, n, 0.0f);
    }
  }
  // Writes the n elements from `from` on.
  void copy(const float* from, std::size_t n, std::size_t at) const {
    if (is_narrow_) {
      std::transform(from, from + n, narrow() + at, [](float v) { return BF16(v); });
    } else {
      std::copy_n(from, n, floats() + at);
    }
  }

 private:
  HWY_INLINE float* floats() const { return static_cast<float*>(data_); }
  HWY_INLINE BF16* narrow() const { return static_cast<BF16*>(data_); }

  void* data_;
  bool is_narrow_, streamed_;
  bool is_far_;  // too large for the caches
};

// Calls body(put), where put(part, v, at) stores a register. The usual result has a body of its
// own, for asking at every register where to store it takes a fourth of the time of a row in L1.
template <class Body>
HWY_INLINE void with_put(const ResultRows& y, const Body& body) {
  if (y.is_plain()) {
    body([to = y.plain()](auto part, Floats v, std::size_t at)
             KEEL_LOOP_BODY { part.store(v, to + at); });
  } else {
    body([=](auto part, Floats v, std::size_t at) KEEL_LOOP_BODY { y.put(part, v, at); });
  }
}

// Writes n elements of a result from `at` on: value(part, i) is the register at i.
template <class Value>
HWY_INLINE void write_row(const ResultRows& y, std::size_t at, std::size_t n, const Value value) {
  with_put(y, [&](auto put) KEEL_LOOP_BODY {
    for_lanes(n,
              [=](auto part, std::size_t i) KEEL_LOOP_BODY { put(part, value(part, i), at + i); });
  });
}

// One order of sums, for every instruction set with registers of eight floats or more: element i of
// a row belongs to lane i mod 32. Lanes add a run of elements in float; after it lanes j, j + 8,
// j + 16 and j + 24 are joined, and the eight sums of these are kept in double
// (docs/determinism.md).
inline constexpr std::size_t kSumLanes = kLanes < 8 ? 4 * kLanes : 32;
// The registers that hold the lanes: independent sums, so that additions need not wait.
inline constexpr int kChains = kSumLanes / kLanes;

// Elements of a run: fewer in long rows, where one element can be sqrt(n) deviations out and bring
// an error of the sum of g * xhat into dx.
HWY_INLINE std::size_t float_run(std::size_t n) { return n > 2048 ? 128 : 512; }

// Calls body(part, i, chain) for the registers that cover [first, last), whose lanes `chain` holds.
template <class Body>
HWY_INLINE void for_lanes_in_turn(std::size_t first, std::size_t last, const Body& body) {
  std::size_t i = first;
  for (; i + kSumLanes <= last; i += kSumLanes) {
    unrolled<kChains>([&](std::size_t k) KEEL_LOOP_BODY { body(Whole{}, i + k * kLanes, int(k)); });
  }
  // The rest; a chain that is known when this is compiled stays in its register without a choice.
  const std::size_t rest = last - i, whole = rest / kLanes;
  unrolled<kChains - 1>([&](std::size_t k) KEEL_LOOP_BODY {
    if (k < whole) body(Whole{}, i + k * kLanes, int(k));
  });
  i += whole * kLanes;
  if (i < last) body(First(last - i), i, int(whole));
}

// The same over [0, n) in runs of float_run(n) elements, each followed by end_of_run().
template <class Body, class EndOfRun>
HWY_INLINE void for_runs(std::size_t n, const Body& body, const EndOfRun& end_of_run) {
  const std::size_t run = float_run(n);
  for (std::size_t first = 0; first < n; first += run) {
    for_lanes_in_turn(first, std::min(first + run, n), body);
    end_of_run();
  }
}

// Sums j, j + 8, j + 16 and j + 24 of the lanes, for the eight j.
template <std::size_t kCount>
HWY_INLINE auto joined(const Floats (&chains)[kCount]) {
  if constexpr (kCount == 2) {
    const NarrowF eight;
    const auto halves = [eight](auto v) KEEL_LOOP_BODY {
      return hn::Add(hn::LowerHalf(eight, v), hn::UpperHalf(eight, v));
    };
    return hn::Add(halves(chains[0]), halves(chains[1]));
  } else {
    return hn::Add(hn::Add(chains[0], chains[1]), hn::Add(chains[2], chains[3]));
  }
}

// A sum of floats in kChains chains; end_run() moves the chains' content to double.
class ChainedSum {
 public:
  HWY_INLINE ChainedSum() { clear(); }
  HWY_INLINE void add(int chain, Floats v) {
    of_chain(chain, [v](Floats& sum) KEEL_LOOP_BODY { sum = hn::Add(sum, v); });
  }
  HWY_INLINE void add_product(int chain, Floats a, Floats b) {
    of_chain(chain, [a, b](Floats& sum) KEEL_LOOP_BODY { sum = hn::MulAdd(a, b, sum); });
  }
  HWY_INLINE void end_run() {
    total_.add_eight(joined(chains_));
    clear();
  }
  HWY_INLINE double total() const { return total_.total(); }

 private:
  HWY_INLINE void clear() {
    unrolled<kChains>([&](std::size_t k) KEEL_LOOP_BODY { chains_[k] = zero(); });
  }
  // Chains stay in registers where `chain` is known only at run time, at the end of a row.
  template <class Change>
  HWY_INLINE void of_chain(int chain, const Change& change) {
    unrolled<kChains>([&](std::size_t k) KEEL_LOOP_BODY {
      if (int(k) == chain) change(chains_[k]);
    });
  }

  Floats chains_[kChains];
  EightSums total_;
};

// sum_of_squares = sum of (x - mean)^2.
struct RowMoments {
  double mean, sum_of_squares;
};

// The centre from which deviations of a row of n elements are measured: the mean of its first half
// to about float precision, relative to its first element, so that a constant row has exactly its
// value. The centre is at most one standard deviation from the mean of the row, so the correction
// of the squares in row_moments cancels at most as much as remains.
template <class T>
HWY_INLINE float row_centre(const T* x, std::size_t n) {
  const std::size_t half = std::min(n, (n / 2 + 8) / 8 * 8);
  ChainedSum offsets;
  const float x0 = x[0];
  const Floats first = splat(x0);
  for_runs(
      half,
      [&](auto part, std::size_t i, int chain)
          KEEL_LOOP_BODY { offsets.add(chain, part.only(hn::Sub(part.load(x + i), first))); },
      [&]() KEEL_LOOP_BODY { offsets.end_run(); });
  return static_cast<float>(x0 + offsets.total() * (1 / static_cast<double>(half)));
}

// Computes in double throughout, for rows whose squares leave the range of a float.
template <class T>
HWY_NOINLINE RowMoments row_moments_in_double(const T* x, std::size_t n) {
  EightSums sum, squares;
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { sum.add(WideDoubles::of(part.load(x + i))); });
  const double mean = sum.total() / static_cast<double>(n);
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const WideDoubles exists = WideDoubles::of(part.only(splat(1)));
    const WideDoubles deviation =
        (WideDoubles::of(part.load(x + i)) - WideDoubles::all(mean)) * exists;
    squares.add(deviation * deviation);
  });
  return {mean, squares.total()};
}

// Sums of squares below it may have lost elements to underflow.
inline constexpr double kLeastSquares = 0x1p-100;

// The second pass: sums deviations from the centre; their own mean corrects both results.
template <class T>
HWY_INLINE RowMoments row_moments(const T* x, std::size_t n, float centre) {
  ChainedSum deviations, squares;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats deviation = part.only(hn::Sub(part.load(x + i), splat(centre)));
        deviations.add(chain, deviation);
        squares.add_product(chain, deviation, deviation);
      },
      [&]() KEEL_LOOP_BODY {
        deviations.end_run();
        squares.end_run();
      });
  const double deviation = deviations.total(), low = deviation * (1 / static_cast<double>(n));
  const double sum_of_squares = squares.total() - low * deviation;
  const bool in_range = sum_of_squares > kLeastSquares && std::isfinite(sum_of_squares);
  return in_range ? RowMoments{centre + low, sum_of_squares} : row_moments_in_double(x, n);
}

// gain and bias (width); each may be null.
struct RowAffine {
  const float *gain, *bias;

  template <class Part>
  HWY_INLINE Floats scale(Part part, Floats v, std::size_t i) const {
    return gain ? hn::Mul(v, part.load(gain + i)) : v;
  }
  template <class Part>
  HWY_INLINE Floats apply(Part part, Floats v, std::size_t i) const {
    if (gain && bias) return hn::MulAdd(v, part.load(gain + i), part.load(bias + i));
    v = scale(part, v, i);
    return bias ? hn::Add(v, part.load(bias + i)) : v;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
