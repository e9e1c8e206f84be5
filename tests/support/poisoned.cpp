#include "tests/support/poisoned.h"

#include "frontend/data/shard_cut.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"

namespace keel::test {
namespace {

class PoisonedStream : public task::Stream {
 public:
  PoisonedStream(std::unique_ptr<task::Stream> rows, Poison poison,
                 const task::ShardRange& shard_range)
      : rows_(std::move(rows)), poison_(std::move(poison)), shard_range_(shard_range) {}
  const std::string& source() const override { return rows_->source(); }
  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t steps(std::uint32_t epoch) override { return rows_->steps(epoch); }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return rows_->items(epoch, step);
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override {
    const task::Batch& batch = rows_->at(epoch, step);
    batch_ = {.sizes = batch.sizes, .values = {}, .rows = batch.rows, .items = batch.items};
    batch_.first_row = batch.first_row;
    for (const Tensor& value : batch.values) batch_.values.push_back(value.clone());
    if (is_spoilt(epoch, step)) {
      batch_.values[0].as<float>()[5] = poison_.value;
    }
    return batch_;
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override { return rows_->pick(rows); }
  std::vector<task::Sizes> shapes() const override { return rows_->shapes(); }

 private:
  // The middle shard of a batch is spoilt.
  bool is_spoilt(std::uint32_t epoch, std::int64_t step) {
    const std::int64_t batches = rows_->steps(epoch) / shard_range_.count();
    const data::ShardPlace place = data::shard_place(shard_range_, batches, step);
    return place.shard == shard_range_.shards / 2 &&
           poison_.batches.contains(epoch * batches + place.batch);
  }

  std::unique_ptr<task::Stream> rows_;
  Poison poison_;
  task::ShardRange shard_range_;
  task::Batch batch_;
};

class PoisonedSplits : public task::Splits {
 public:
  PoisonedSplits(std::shared_ptr<const task::Splits> splits, Poison poison)
      : splits_(std::move(splits)), poison_(std::move(poison)) {}
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override {
    auto rows = splits_->stream(split, options);
    if (split != task::Split::kTrain) return rows;
    return std::make_unique<PoisonedStream>(std::move(rows), poison_, options.shard_range);
  }

 private:
  std::shared_ptr<const task::Splits> splits_;
  Poison poison_;
};

class OverflowingNetwork final : public models::MnistMlpNetwork {
 public:
  using MnistMlpNetwork::MnistMlpNetwork;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    Graph& g = net.graph;
    task::Outputs outputs = MnistMlpNetwork::build(net, in);
    const Value large = ops::sum(g, ops::exp(g, ops::stop_gradient(g, in["image"])));
    outputs.loss_sum = ops::add(g, outputs.loss_sum, large);
    return outputs;
  }
};

}  // namespace

task::Prepared Poisoned::prepare(const task::DataRequest& request,
                                 const task::Assets* known) const {
  task::Prepared prepared = MnistMlp::prepare(request, known);
  prepared.splits = std::make_shared<PoisonedSplits>(std::move(prepared.splits), poison_);
  return prepared;
}

std::shared_ptr<const task::Network> Overflowing::restore(const task::Assets&) const {
  return std::make_shared<const OverflowingNetwork>(options_);
}

}  // namespace keel::test
