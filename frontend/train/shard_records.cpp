#include "frontend/train/shard_records.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/runtime/shard_tree.h"

namespace keel::train {

ShardRecords::ShardRecords(Communicator& ranks, std::int64_t shards, std::size_t monitored,
                           std::size_t whole, std::size_t losses)
    : ranks_(ranks), shards_(shards), watched_(monitored), whole_(whole), losses_(losses) {}

ShardRecord ShardRecords::empty() const {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  return {.losses = std::vector<double>(losses_),
          .monitored = std::vector<double>(watched_, kNothing),
          .whole = std::vector<double>(whole_)};
}

// A rank with fewer shards than another sends empty ones, too.
void ShardRecords::exchange(const std::vector<ShardRecord>& own, int signal) {
  const std::size_t most = std::size_t((shards_ + ranks_.size() - 1) / ranks_.size());
  std::vector<double> mine{double(signal)};
  for (const ShardRecord& record : own) {
    mine.push_back(record.with_rows);
    mine.insert(mine.end(), record.losses.begin(), record.losses.end());
    mine.insert(mine.end(), record.monitored.begin(), record.monitored.end());
    mine.insert(mine.end(), record.whole.begin(), record.whole.end());
  }
  mine.resize(1 + most * (1 + losses_ + watched_ + whole_));
  const std::vector<double> all = gathered(ranks_, mine);
  all_.clear();
  signal_ = 0;
  for (int r = 0; r < ranks_.size(); ++r) {
    const double* from = all.data() + std::size_t(r) * mine.size();
    signal_ = std::max(signal_, int(*from++));
    for (std::int64_t i = shards_of_rank(shards_, r, ranks_.size()).count(); i > 0; --i) {
      const double *losses = from + 1, *monitored = losses + losses_, *whole = monitored + watched_,
                   *end = whole + whole_;
      all_.push_back({{losses, monitored}, *from, {monitored, whole}, {whole, end}});
      from = end;
    }
  }
}

double ShardRecords::loss() const {
  TreeSum<double> sum;
  for (std::size_t i = 0; i < losses_; ++i) {
    for (const ShardRecord& record : all_) {
      std::vector<double> term{record.losses[i]};
      sum.add(term);
    }
  }
  return sum.sum().front();
}

double ShardRecords::with_rows() const {
  double sum = 0;
  for (const ShardRecord& record : all_) sum += record.with_rows;
  return sum;
}

std::vector<double> ShardRecords::monitored() const {
  std::vector<double> largest = all_.front().monitored;
  for (const ShardRecord& record : all_) {
    for (std::size_t i = 0; i < watched_; ++i) {
      largest[i] = std::max(largest[i], record.monitored[i]);
    }
  }
  return largest;
}

std::vector<double> ShardRecords::whole() const {
  std::vector<double> whole;
  for (const ShardRecord& record : all_) {
    if (record.with_rows == 0) continue;
    if (whole.empty()) whole = record.whole;
    for (std::size_t i = 0; i < whole_; ++i) {
      // A NaN of either stays.
      if (!(whole[i] >= record.whole[i]) && !std::isnan(whole[i])) whole[i] = record.whole[i];
    }
  }
  return whole;
}

}  // namespace keel::train
