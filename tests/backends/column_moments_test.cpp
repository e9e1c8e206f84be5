// Norms over columns that are given their statistics: the same bits, on every backend; and merged
// statistics of shards.
#include "src/ops/column_moments.h"

#include <cmath>

#include "src/ops/column_gradient_sums.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/column_norms.h"
#include "tests/support/norm_checks.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

void check_same(const Results& got, const Results& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    const Tensor& other = got.at(name);
    REQUIRE(other.type() == value.type());
    CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
  }
}

void check_same_bits(Backend& backend, const Shape& shape, ColumnMask mask) {
  CAPTURE(shape.text());
  CAPTURE(int(mask));
  const ColumnBatch batch = column_batch(shape, mask);
  for (const ColumnNorm& norm : column_norms()) {
    if (shape[0] == 1 && shape.rank() == 2 && norm.name.starts_with("unbiased")) continue;
    CAPTURE(norm.name);
    check_same(run_column_norm(backend, norm, batch, true),
               run_column_norm(backend, norm, batch, false));
  }
}

// Too large for a backend that is not fast.
bool is_left_out(const Shape& shape) {
  const bool is_slow = is_emulated() || default_backend() == "reference";
  return is_slow && shape.elements() > 70'000;
}

TEST_CASE("backend column moments: a norm that is given its statistics has the same bits" *
          doctest::test_suite("slow")) {
  for_each_target([] {
    const auto backend = make_backend(default_backend(), {2});
    for (std::int64_t rows : {1, 3, 257, 5000}) {
      for (std::int64_t channels : {1, 7, 64, 1052}) {
        const Shape shape{rows, channels};
        if (is_left_out(shape)) continue;
        for (ColumnMask mask : {ColumnMask::kNone, ColumnMask::kSome, ColumnMask::kEmpty}) {
          if (mask == ColumnMask::kEmpty && shape.elements() > 70'000) continue;
          check_same_bits(*backend, shape, mask);
        }
      }
    }
  });
}

TEST_CASE("backend column moments: the same of images") {
  for_each_target([] {
    const auto backend = make_backend(default_backend(), {2});
    for (const Shape& shape : {Shape{1, 3, 1, 2}, Shape{3, 7, 5, 9}, Shape{2, 3, 40, 41},
                               Shape{6, 44, 7, 9}, Shape{67, 12, 9, 11}}) {
      if (!is_left_out(shape)) check_same_bits(*backend, shape, ColumnMask::kNone);
    }
  });
}

TEST_CASE("backend column moments: the same on the reference" * doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  for (const Shape& shape : {Shape{1, 7}, Shape{3, 64}, Shape{257, 33}, Shape{3, 7, 5, 9}}) {
    check_same_bits(*backend, shape, ColumnMask::kNone);
    if (shape.rank() > 2) continue;
    check_same_bits(*backend, shape, ColumnMask::kSome);
    check_same_bits(*backend, shape, ColumnMask::kEmpty);
  }
}

// In memory of its own between guards.
TEST_CASE("backend column moments: nothing outside of inputs and outputs is touched") {
  for_each_target([] {
    const auto backend = make_backend(default_backend(), {2});
    for (std::int64_t channels : {1, 5, 37}) {
      const NormCase c{.layout = NormLayout::kColumns, .groups = channels, .n = 67, .states = 2};
      const NormData data = make_data(c);
      for (const ColumnNorm& norm : column_norms()) {
        CAPTURE(norm.name);
        const auto build = [&](bool given) {
          return [&norm, &c, given](Graph& g, const NormInputs& in, double) {
            const auto all = [&](const Shape& shape) {
              return g.constant(random_normal(shape, 5, 2, 0.1).to(DType::kF32));
            };
            const Value ring = all({4, c.groups});
            return norm.build(g,
                              {in.x,
                               {in.gain, in.bias},
                               all({c.groups}),
                               all({c.groups}),
                               ring,
                               ring,
                               g.constant(Tensor::of<std::int32_t>({}, {norm.step})),
                               {}},
                              given);
          };
        };
        if (norm.name.starts_with("noisy")) continue;
        CHECK(same_bits(run_norm(*backend, build(true), data),
                        run_norm(*backend, build(false), data)));
      }
    }
  });
}

// The rows of shard s: some are masked out, and shard 1 has none that is kept.
struct Shards {
  static constexpr std::int64_t kCount = 5, kRows = 41, kChannels = 23;
  std::vector<ColumnBatch> all;
  ColumnBatch whole;

  Shards() : whole(column_batch({kCount * kRows, kChannels}, ColumnMask::kSome)) {
    for (std::int64_t row = kRows; row < 2 * kRows; ++row) whole.mask[std::size_t(row)] = 0;
    for (std::int64_t s = 0; s < kCount; ++s) {
      const auto rows = [&](const Tensor& t) {
        Tensor part(DType::kF32, {kRows, kChannels});
        std::memcpy(part.data(), t.as<float>().data() + s * kRows * kChannels,
                    std::size_t(part.bytes()));
        return part;
      };
      const auto first = whole.mask.begin() + s * kRows;
      all.push_back({rows(whole.x), rows(whole.dy), {first, first + kRows}});
    }
  }
};

// The result of `op` for a batch, in float64 as it is.
Tensor statistics_of(Backend& backend, const ColumnBatch& batch, bool centred) {
  Graph g;
  const Value x = g.input("x", batch.x.type());
  const Tensor rows = Tensor::of<std::uint8_t>({std::ssize(batch.mask)}, batch.mask);
  const Value mask = g.input("mask", rows.type());
  g.mark_output("y", centred ? ops::column_moments(g, x, mask) : ops::column_squares(g, x, mask));
  Feeds feeds;
  feeds["x"] = batch.x.clone();
  feeds["mask"] = rows.clone();
  return std::move(run_graph(backend, g, feeds).at("y"));
}

// Sums may be taken about any element, be it sqrt(n) deviations from the mean. Sums of n terms in
// double about such a one are off by n^2 2^-53 at the most; onednn's terms are float32.
TEST_CASE("backend column moments: accurate where the first row is far from all others") {
  constexpr std::int64_t kRows = 2100, kChannels = 12;
  ColumnBatch batch = column_batch({kRows, kChannels}, ColumnMask::kSome);
  const auto x = batch.x.as<float>();
  for (std::int64_t c = 0; c < kChannels; ++c) x[std::size_t(c)] = 1e6f + float(c);
  batch.mask[0] = 1;
  const std::string backend = default_backend() == "onednn" ? "reference" : default_backend();
  const Tensor moments = statistics_of(*make_backend(backend), batch, true);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    CAPTURE(c);
    const auto over_kept = [&](auto term) {
      double sum = 0;
      for (std::int64_t row = 0; row < kRows; ++row) {
        if (batch.mask[std::size_t(row)] != 0) sum += term(x[std::size_t(row * kChannels + c)]);
      }
      return sum;
    };
    const double count = over_kept([](double) { return 1; });
    const double mean = over_kept([](double v) { return v; }) / count;
    const double squares = over_kept([&](double v) { return (v - mean) * (v - mean); });
    CHECK(moments.at(MomentRow::kMean * kChannels + c) == doctest::Approx(mean).epsilon(1e-10));
    CHECK(moments.at(MomentRow::kSquares * kChannels + c) ==
          doctest::Approx(squares).epsilon(kRows * kRows * 0x1p-53));
  }
}

// `parts` one after the other.
Tensor stacked(const std::vector<Tensor>& parts) {
  const Shape& of = parts[0].shape();
  Tensor all(DType::kF64, {std::ssize(parts), of[0], of[1]});
  for (std::size_t s = 0; s < parts.size(); ++s) {
    std::memcpy(all.data() + s * std::size_t(parts[0].bytes()), parts[s].data(),
                std::size_t(parts[0].bytes()));
  }
  return all;
}

Tensor merged(Backend& backend, const std::vector<Tensor>& parts, bool centred) {
  Graph g;
  Feeds feeds;
  feeds["parts"] = stacked(parts);
  const Value all = g.input("parts", feeds.at("parts").type());
  g.mark_output("y", centred ? ops::merge_moments(g, all) : ops::merge_sums(g, all));
  return std::move(run_graph(backend, g, feeds).at("y"));
}

std::vector<Tensor> statistics_of_shards(Backend& backend, const Shards& shards, bool centred) {
  std::vector<Tensor> parts;
  for (const ColumnBatch& shard : shards.all) {
    parts.push_back(statistics_of(backend, shard, centred));
  }
  return parts;
}

// The reference adds K doubles, and so do its shards before they are merged. With u = 2^-53 a mean
// is off by (K + 2) u (|mean| + deviation), squares by 2 (K + 2) u of themselves, and merging S
// shards adds 7 S u of the largest mean, and (4 S + 8) u and 4 M K times that to squares.
TEST_CASE("backend column moments: merged moments of shards are those of the whole") {
  using Row = MomentRow;
  const Shards shards;
  const auto judge = make_backend("reference");
  const std::vector<Tensor> parts = statistics_of_shards(*judge, shards, true);
  const Tensor got = merged(*judge, parts, true);
  const Tensor whole = statistics_of(*judge, shards.whole, true);
  constexpr double kU = 0x1p-53;
  for (std::int64_t c = 0; c < Shards::kChannels; ++c) {
    const auto at = [&](const Tensor& t, int row) { return t.at(row * Shards::kChannels + c); };
    CHECK(at(got, Row::kCount) == at(whole, Row::kCount));
    CHECK(at(got, Row::kAll) == at(whole, Row::kAll));
    const double k = at(whole, Row::kCount), squares = at(whole, Row::kSquares);
    double largest = 0;
    for (const Tensor& part : parts) largest = std::max(largest, std::abs(at(part, Row::kMean)));
    const double size = largest + std::sqrt(squares / k);
    const double of_mean = (2 * (k + 2) + 7 * Shards::kCount) * kU * size;
    CHECK(std::abs(at(got, Row::kMean) - at(whole, Row::kMean)) <= of_mean);
    CHECK(std::abs(at(got, Row::kSquares) - squares) <=
          (4 * (k + 2) + 4 * Shards::kCount + 8) * kU * squares + 4 * largest * k * of_mean);
  }
}

// Merging is done in double in one order; the backends round alike.
TEST_CASE("backend column moments: merging has the same bits on every backend and in every run") {
  const Shards shards;
  const auto judge = make_backend("reference");
  for (bool centred : {true, false}) {
    const std::vector<Tensor> parts = statistics_of_shards(*judge, shards, centred);
    const Tensor expected = merged(*judge, parts, centred);
    for (int threads : {1, 2, 7}) {
      const Tensor got = merged(*make_backend(default_backend(), {threads}), parts, centred);
      CHECK(std::memcmp(got.data(), expected.data(), std::size_t(got.bytes())) == 0);
    }
  }
}

// A shard's norm and backward, given the merged statistics and the merged sums.
struct ShardRun {
  const ColumnBatch& shard;
  bool centred;
  Tensor statistics;

  // Only the gradient sums of the shard, or with `sums` all outputs.
  Results run(Backend& backend, const Tensor* sums) const {
    Graph g;
    Feeds feeds;
    const ColumnOperands o = column_operands(g, feeds, column_norms()[0], shard);
    const auto feed = [&](const std::string& name, const Tensor& t) {
      feeds[name] = t.clone();
      return g.input(name, t.type());
    };
    const Value given = feed("statistics", statistics), dy = feed("dy", shard.dy);
    centred ? add_centred(g, o, {given, dy}, sums ? feed("sums", *sums) : Value{})
            : add_uncentred(g, o, {given, dy}, sums ? feed("sums", *sums) : Value{});
    return run_graph(backend, g, feeds);
  }

 private:
  struct Given {
    Value statistics, dy;
  };
  static void add_centred(Graph& g, const ColumnOperands& o, const Given& of, Value sums) {
    const Value y =
        ops::batch_norm(g, o.x, o.affine, {o.first, o.second, o.mask, of.statistics}, {});
    const Value mean = y.at(BatchNormOutput::kMean), rstd = y.at(BatchNormOutput::kRstd);
    g.mark_output("y", y);
    g.mark_output("running", y.at(BatchNormOutput::kNextRunningVar));
    if (!sums.valid()) {
      const ops::CentredColumns columns{o.x, mean, rstd, of.dy, o.mask};
      return g.mark_output("sums", ops::centred_gradient_sums(g, columns));
    }
    const Value d = g.add(kBatchNormBackward, {o.x, o.affine.gain, mean, rstd, of.dy, o.mask, sums},
                          BatchNormBackwardAttrs{{}, true});
    g.mark_output("dx", d);
    g.mark_output("dgain", d.at(BatchNormGradient::kDgain));
  }
  static void add_uncentred(Graph& g, const ColumnOperands& o, const Given& of, Value sums) {
    const Value y = ops::pn_v(g, o.x, o.affine, {o.first, o.mask, of.statistics});
    const Value rstd = y.at(PnVOutput::kRstd);
    g.mark_output("y", y);
    g.mark_output("running", y.at(PnVOutput::kNextPsi2));
    if (!sums.valid()) {
      return g.mark_output("sums", ops::uncentred_gradient_sums(g, {o.x, rstd, of.dy, o.mask}));
    }
    const Value d = g.add(kPnVBackward, {o.x, o.affine.gain, rstd, of.dy, o.mask, sums},
                          PnVBackwardAttrs{{}, true});
    g.mark_output("dx", d);
    g.mark_output("dgain", d.at(PnVGradient::kDgain));
  }
};

// y, dx, dgain and the running statistics of shards are those of the whole batch, and the same for
// all shards where the batch has one. In float64 the two differ by roundings of doubles: they are
// made of sums of at most 205 terms of at most 10, which are off by 205 2^-53 2050 < 5e-11.
TEST_CASE("backend column moments: shards that merge give what the whole batch gives") {
  const Shards shards;
  const auto judge = make_backend("reference");
  for (bool centred : {true, false}) {
    const ColumnNorm& norm = column_norms()[centred ? 0 : 5];
    REQUIRE(norm.centred == centred);
    const Results whole = run_column_norm(*judge, norm, shards.whole, false);
    const Tensor statistics =
        merged(*judge, statistics_of_shards(*judge, shards, centred), centred);
    std::vector<Tensor> parts;
    for (const ColumnBatch& shard : shards.all) {
      const Results of = ShardRun{shard, centred, statistics.clone()}.run(*judge, nullptr);
      parts.push_back(of.at("sums").clone());
    }
    const Tensor sums = merged(*judge, parts, false);
    for (std::int64_t s = 0; s < Shards::kCount; ++s) {
      CAPTURE(s);
      const ShardRun shard{shards.all[std::size_t(s)], centred, statistics.clone()};
      const Results of = shard.run(*judge, &sums);
      const auto check = [&](const char* name, const Tensor& expected, std::int64_t first) {
        CAPTURE(std::string(name));
        const Tensor& got = of.at(name);
        for (std::int64_t e = 0; e < got.elements(); ++e) {
          CHECK(std::abs(got.at(e) - expected.at(first + e)) <= 5e-11);
        }
      };
      check("y", whole.at("y0"), s * Shards::kRows * Shards::kChannels);
      check("dx", whole.at("d0"), s * Shards::kRows * Shards::kChannels);
      check("dgain", whole.at("d1"), 0);
      check("running", whole.at(centred ? "y4" : "y2"), 0);
    }
  }
}

}  // namespace
}  // namespace keel::test
