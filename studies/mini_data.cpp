#include "studies/mini_data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/nn/init.h"

namespace keel::study {
namespace {

constexpr std::int64_t kHidden = 48, kWords = 200, kTopics = 20, kTokens = 16;

// A (rows, columns) matrix of N(0, deviation^2).
class Matrix {
 public:
  Matrix(std::uint64_t seed, std::string_view name, const Shape& shape, double deviation)
      : values_(DType::kF32, shape), columns_(std::size_t(shape.back())) {
    nn::normal(deviation)(values_, Philox(seed, stream_of(name)));
  }
  std::span<const float> row(std::int64_t i) const {
    return values_.as<float>().subspan(std::size_t(i) * columns_, columns_);
  }
  // x times the matrix
  std::vector<double> times(std::span<const double> x) const {
    std::vector<double> y(columns_, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < columns_; ++j) y[j] += x[i] * double(row(std::int64_t(i))[j]);
    }
    return y;
  }

 private:
  Tensor values_;
  std::size_t columns_;
};

class Teacher {
 public:
  Teacher(const MiniData& sizes, double deviation)
      : first_(sizes.seed, "teacher/first", {sizes.features, kHidden}, deviation),
        second_(sizes.seed, "teacher/second", {kHidden, sizes.classes},
                std::sqrt(4.0 / double(kHidden))) {}

  std::int32_t label(std::span<const double> x) const {
    std::vector<double> hidden = first_.times(x);
    for (double& h : hidden) h = std::tanh(h);
    const std::vector<double> logits = second_.times(hidden);
    return std::int32_t(std::ranges::max_element(logits) - logits.begin());
  }

 private:
  Matrix first_, second_;
};

struct Columns {
  explicit Columns(const MiniData& sizes)
      : rows(sizes.train_rows + sizes.test_rows),
        x(DType::kF32, {rows, sizes.features}),
        label(DType::kI32, {rows}) {}
  std::span<float> row(std::int64_t i) {
    const auto width = std::size_t(x.shape().back());
    return x.as<float>().subspan(std::size_t(i) * width, width);
  }
  std::unique_ptr<data::TableSplits> split(const MiniData& sizes) {
    data::TensorDataset all(fmt::format("drawn from seed {}", sizes.seed));
    all.add("x", std::move(x));
    all.add("label", std::move(label));
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return [rows = std::make_shared<data::TensorDataset>(all.slice(first, count))] {
        return std::move(*rows);
      };
    };
    return std::make_unique<data::TableSplits>(
        mini_columns(sizes.features), part(0, sizes.train_rows),
        part(sizes.train_rows, sizes.test_rows), part(sizes.train_rows, sizes.test_rows));
  }

  std::int64_t rows;
  Tensor x, label;
};

// The word of every row: the first whose share of Zipf's law and those before it exceed a draw.
std::vector<std::int64_t> draw_words(const MiniData& sizes, std::int64_t rows) {
  std::vector<double> upto;
  double total = 0;
  for (std::int64_t rank = 0; rank < kWords; ++rank)
    upto.push_back(total += 1.0 / double(rank + 2));
  const Philox random(sizes.seed, stream_of("words"));
  std::vector<std::int64_t> words;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double draw = random.uniform(std::uint64_t(row)) * total;
    words.push_back(std::ranges::upper_bound(upto, draw) - upto.begin());
  }
  return words;
}

// The label of every word under every topic, (words, topics).
std::vector<std::int32_t> label_words(const MiniData& sizes, const Matrix& words,
                                      const Matrix& topics) {
  const Teacher teacher(sizes, 1.5 / std::sqrt(double(sizes.features)));
  std::vector<std::int32_t> labels;
  std::vector<double> sum(std::size_t(sizes.features));
  for (std::int64_t w = 0; w < kWords; ++w) {
    for (std::int64_t k = 0; k < kTopics; ++k) {
      std::ranges::transform(words.row(w), topics.row(k), sum.begin(), std::plus<double>());
      labels.push_back(teacher.label(sum));
    }
  }
  return labels;
}

// Batches of rows that are drawn by the number of the update, in one epoch without an end.
class DrawnRows final : public task::Stream {
 public:
  DrawnRows(std::unique_ptr<task::Stream> rows, const task::StreamOptions& options)
      : rows_(std::move(rows)), batch_(options.batch), seed_(*options.shuffle) {}

  const std::string& source() const override { return rows_->source(); }
  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t steps(std::uint32_t) override { return std::int64_t(1) << 40; }
  double items(std::uint32_t, std::int64_t) override { return double(batch_); }
  const task::Batch& at(std::uint32_t, std::int64_t step) override {
    const Philox random(seed_, stream_of("rows"), std::uint32_t(step));
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(batch_));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      drawn[i] = random.below(i, std::uint32_t(rows()));
    }
    return pick(drawn);
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override { return rows_->pick(rows); }
  std::vector<task::Sizes> shapes() const override { return {{batch_}}; }

 private:
  std::unique_ptr<task::Stream> rows_;
  std::int64_t batch_;
  std::uint64_t seed_;
};

// Rows in their order, in one epoch.
class StreamedRows final : public task::Stream {
 public:
  explicit StreamedRows(std::unique_ptr<task::Stream> rows) : rows_(std::move(rows)) {}

  const std::string& source() const override { return rows_->source(); }
  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t steps(std::uint32_t) override { return rows_->steps(0); }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return rows_->items(epoch, step);
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override {
    check(epoch == 0, ErrorKind::kUsage,
          "[rows] expected at most {} updates, in which a stream ends", steps(0));
    return rows_->at(epoch, step);
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override { return rows_->pick(rows); }
  std::vector<task::Sizes> shapes() const override { return rows_->shapes(); }

 private:
  std::unique_ptr<task::Stream> rows_;
};

class OrderedSplits final : public task::Splits {
 public:
  OrderedSplits(std::unique_ptr<data::TableSplits> splits, RowOrder order)
      : splits_(std::move(splits)), order_(order) {}

  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override {
    if (split != task::Split::kTrain || !options.shuffle) return splits_->stream(split, options);
    task::StreamOptions ordered = options;
    ordered.shuffle.reset();
    std::unique_ptr<task::Stream> rows = splits_->stream(split, ordered);
    if (order_ == RowOrder::kStream) return std::make_unique<StreamedRows>(std::move(rows));
    return std::make_unique<DrawnRows>(std::move(rows), options);
  }

 private:
  std::unique_ptr<data::TableSplits> splits_;
  RowOrder order_;
};

}  // namespace

std::unique_ptr<task::Splits> in_order(std::unique_ptr<data::TableSplits> splits, RowOrder order) {
  if (order == RowOrder::kEpochs) return splits;
  return std::make_unique<OrderedSplits>(std::move(splits), order);
}

std::vector<data::TableColumn> mini_columns(std::int64_t features) {
  return {{"x", DType::kF32, {features}}, {"label", DType::kI32}};
}

std::unique_ptr<data::TableSplits> vectors(const MiniData& sizes) {
  Columns columns(sizes);
  const Teacher teacher(sizes, std::sqrt(4.0 / double(sizes.features)));
  const Matrix directions(sizes.seed, "directions", {columns.rows, sizes.features}, 1);
  const Philox magnitudes(sizes.seed, stream_of("magnitudes"));
  for (std::int64_t i = 0; i < columns.rows; ++i) {
    const double magnitude = std::exp(magnitudes.normal(std::uint64_t(i)) / 2);
    const std::span<float> x = columns.row(i);
    std::ranges::transform(directions.row(i), x.begin(),
                           [&](float n) { return float(magnitude * double(n)); });
    const std::vector<double> exact(x.begin(), x.end());
    columns.label.as<std::int32_t>()[std::size_t(i)] = teacher.label(exact);
  }
  return columns.split(sizes);
}

std::unique_ptr<data::TableSplits> mixture(const MiniData& sizes) {
  constexpr std::int64_t kMeans = 3;
  Columns columns(sizes);
  const Matrix means(sizes.seed, "means", {kMeans * sizes.classes, sizes.features}, 1);
  const Matrix noise(sizes.seed, "noise", {columns.rows, sizes.features}, 1);
  const Philox which(sizes.seed, stream_of("component"));
  for (std::int64_t i = 0; i < columns.rows; ++i) {
    const std::int64_t drawn = which.below(std::uint64_t(i), std::uint32_t(kMeans * sizes.classes));
    std::ranges::transform(means.row(drawn), noise.row(i), columns.row(i).begin(),
                           [](float m, float n) { return 0.35f * m + n; });
    columns.label.as<std::int32_t>()[std::size_t(i)] = std::int32_t(drawn / kMeans);
  }
  return columns.split(sizes);
}

std::unique_ptr<data::TableSplits> sentences(const MiniData& sizes, double spread) {
  check(sizes.train_rows % kTokens == 0 && sizes.test_rows % kTokens == 0, ErrorKind::kUsage,
        "[sentences] rows: expected multiples of {}, got {} and {}", kTokens, sizes.train_rows,
        sizes.test_rows);
  Columns columns(sizes);
  const Matrix words(sizes.seed, "word vectors", {kWords, sizes.features}, 1);
  const Matrix topics(sizes.seed, "topic vectors", {kTopics, sizes.features}, 1);
  const std::vector<std::int32_t> labels = label_words(sizes, words, topics);
  const std::vector<std::int64_t> drawn = draw_words(sizes, columns.rows);
  const Philox scales(sizes.seed, stream_of("scales")), which(sizes.seed, stream_of("topics"));
  for (std::int64_t i = 0; i < columns.rows; ++i) {
    const auto sentence = std::uint64_t(i / kTokens);
    const std::int64_t word = drawn[std::size_t(i)], topic = which.below(sentence, kTopics);
    const double scale = std::exp(spread * scales.normal(sentence));
    std::ranges::transform(words.row(word), topics.row(topic), columns.row(i).begin(),
                           [&](float e, float k) { return float(double(e) + scale * double(k)); });
    columns.label.as<std::int32_t>()[std::size_t(i)] = labels[std::size_t(word * kTopics + topic)];
  }
  return columns.split(sizes);
}

}  // namespace keel::study
