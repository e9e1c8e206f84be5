#include "src/runtime/rank_sum.h"

#include <algorithm>

namespace keel {
namespace {

constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

template <class T>
Communicator::Bytes bytes_of(const std::vector<T>& values, std::size_t first, std::size_t size) {
  return std::as_bytes(std::span(values).subspan(first, size));
}

}  // namespace

template <class T>
RankSum<T>::RankSum(Communicator& ranks, std::int64_t shards, Reduction reduction)
    : ranks_(ranks), shards_(shards), reduction_(reduction) {
  for (int r = 0; r < ranks.size(); ++r) {
    const ShardRange own = shards_of_rank(shards, r, ranks.size());
    // The tree within a rank is the same in both ways, so that one process gives the same bits.
    const bool is_fixed = reduction == Reduction::kFixed;
    subtrees_.push_back(is_fixed ? whole_subtrees(own, shards) : std::vector<ShardRange>{own});
  }
  next_shard_ = subtrees_[std::size_t(ranks.rank())].front().first;
  roots_.resize(subtrees_[std::size_t(ranks.rank())].size());
}

template <class T>
void RankSum<T>::add(std::vector<T>& term) {
  const std::vector<ShardRange>& own = subtrees_[std::size_t(ranks_.rank())];
  sum_.add(term);
  if (++next_shard_ != own[done_].end) return;
  std::swap(roots_[done_++], sum_.sum());
  if (done_ == own.size()) next_shard_ = own.front().first;
}

template <class T>
std::span<const T> RankSum<T>::total() {
  done_ = 0;
  if (ranks_.size() == 1) return roots_.front();
  if (reduction_ == Reduction::kFast) {
    ranks_.add_up(std::span(roots_.front()));
    return roots_.front();
  }
  total_.resize(roots_.front().size());
  const std::size_t most = kBucketBytes / sizeof(T);
  for (std::size_t first = 0; first < total_.size(); first += most) {
    sum_bucket({first, std::min(most, total_.size() - first)});
  }
  return total_;
}

template <class T>
typename RankSum<T>::Slice RankSum<T>::slice(Slice of, int rank) const {
  const std::size_t ranks = std::size_t(ranks_.size()), r = std::size_t(rank);
  const std::size_t begin = of.size * r / ranks, end = of.size * (r + 1) / ranks;
  return {of.first + begin, end - begin};
}

template <class T>
void RankSum<T>::sum_bucket(Slice bucket) {
  exchange(bucket);
  std::size_t next = 0;
  const std::vector<T>& mine = received_[fold({0, shards_}, next)];
  std::vector<Communicator::Room> rooms;
  for (int r = 0; r < ranks_.size(); ++r) {
    const Slice s = slice(bucket, r);
    rooms.push_back(std::as_writable_bytes(std::span(total_).subspan(s.first, s.size)));
  }
  ranks_.gather(std::as_bytes(std::span(mine)), rooms);
}

// Ranks own different numbers of subtrees. In round i each gives its i-th, if it has one.
template <class T>
void RankSum<T>::exchange(Slice bucket) {
  std::size_t rounds = 0, all = 0;
  for (const auto& trees : subtrees_) {
    rounds = std::max(rounds, trees.size());
    all += trees.size();
  }
  received_.resize(all);
  for (auto& values : received_) values.resize(slice(bucket, ranks_.rank()).size);
  for (std::size_t i = 0; i < rounds; ++i) {
    std::vector<Communicator::Bytes> to;
    std::vector<Communicator::Room> from;
    std::size_t first_of_rank = 0;
    for (int r = 0; r < ranks_.size(); ++r) {
      const Slice s = slice(bucket, r);
      to.push_back(i < roots_.size() ? bytes_of(roots_[i], s.first, s.size)
                                     : Communicator::Bytes{});
      const std::size_t trees = subtrees_[std::size_t(r)].size();
      from.push_back(i < trees ? std::as_writable_bytes(std::span(received_[first_of_rank + i]))
                               : Communicator::Room{});
      first_of_rank += trees;
    }
    ranks_.exchange(to, from);
  }
}

// Adds up what was received within a tree, from subtree `next` on. Returns where the sum lies.
template <class T>
std::size_t RankSum<T>::fold(ShardRange tree, std::size_t& next) {
  std::size_t before = next;
  for (const auto& trees : subtrees_) {
    if (before < trees.size()) {
      if (trees[before] == tree) return next++;
      break;
    }
    before -= trees.size();
  }
  const std::size_t left = fold({tree.first, tree.middle()}, next);
  const std::size_t right = fold({tree.middle(), tree.end}, next);
  add_to(std::span(received_[left]), std::span<const T>(received_[right]));
  return left;
}

template class RankSum<float>;
template class RankSum<double>;

}  // namespace keel
