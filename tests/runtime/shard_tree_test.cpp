// Sums over shards: one tree of additions, no matter which rank owns which shards.
#include "src/runtime/shard_tree.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/core/error.h"
#include "src/core/rng.h"
#include "src/runtime/rank_sum.h"
#include "tests/support/thread_ranks.h"

namespace keel {
namespace {

// The definition, written down once more: by halves that are powers of two.
float tree_by_definition(std::span<const float> terms) {
  if (terms.size() == 1) return terms[0];
  std::size_t half = 1;
  while (2 * half < terms.size()) half *= 2;
  return tree_by_definition(terms.first(half)) + tree_by_definition(terms.subspan(half));
}

std::vector<float> drawn_terms(std::int64_t count, std::uint64_t seed) {
  std::vector<float> terms;
  const Philox random(seed, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const float sign = i % 2 == 0 ? 1.f : -1.f;
    terms.push_back(sign * std::ldexp(1.f + random.row_uniform(i, 0), int(i * 7 % 30) - 15));
  }
  return terms;
}

TEST_CASE("shard tree: terms that come one by one are added up as the tree has them") {
  TreeSum<float> sum;
  for (std::int64_t count = 1; count <= 70; ++count) {
    const std::vector<float> terms = drawn_terms(count, 3);
    for (const float term : terms) {
      std::vector<float> one{term};
      sum.add(one);
    }
    CAPTURE(count);
    CHECK(sum.sum().front() == tree_by_definition(terms));
  }
}

TEST_CASE("shard tree: the order matters for the terms of these tests") {
  const std::vector<float> terms = drawn_terms(40, 3);
  float in_a_row = 0;
  for (const float term : terms) in_a_row += term;
  CHECK(in_a_row != tree_by_definition(terms));
}

TEST_CASE("shard tree: every shard has one owner, and whole subtrees cover what a rank owns") {
  for (std::int64_t shards = 1; shards <= 33; ++shards) {
    for (int ranks = 1; ranks <= shards && ranks <= 9; ++ranks) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardRange own = shards_of_rank(shards, rank, ranks);
        CHECK(own.count() >= 1);
        for (const ShardRange& tree : whole_subtrees(own, shards)) {
          CHECK(tree.first == next);
          next = tree.end;
        }
        CHECK(next == own.end);
      }
      CHECK(next == shards);
    }
  }
}

TEST_CASE("shard tree: eight shards on four ranks travel as one sum a rank") {
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(whole_subtrees(shards_of_rank(8, rank, 4), 8).size() == 1);
  }
  CHECK(whole_subtrees({3, 6}, 8) == std::vector<ShardRange>{{3, 4}, {4, 6}});
}

// The total over `shards` terms of `width` values, as rank 0 of so many ranks has it.
std::vector<float> total_of(std::int64_t shards, std::int64_t width, int ranks,
                            Reduction reduction = Reduction::kFixed) {
  std::vector<float> result;
  test::run_ranks(ranks, [&](Communicator& all) {
    RankSum<float> sum(all, shards, reduction);
    std::vector<float> total;
    for (int round = 0; round < 2; ++round) {  // memory is used again
      const ShardRange own = shards_of_rank(shards, all.rank(), ranks);
      for (std::int64_t s = own.first; s < own.end; ++s) {
        std::vector<float> term;
        for (std::int64_t w = 0; w < width; ++w) {
          term.push_back(drawn_terms(shards, std::uint64_t(w))[std::size_t(s)]);
        }
        sum.add(term);
      }
      const std::span<const float> found = sum.total();
      total.assign(found.begin(), found.end());
    }
    if (all.rank() == 0) result = total;
  });
  return result;
}

TEST_CASE("rank sum: any number of ranks gives the bits of the tree, whatever the width") {
  for (const std::int64_t shards : {2, 7, 8, 12}) {
    for (const std::int64_t width : {1, 5, 40}) {
      std::vector<float> expected;
      for (std::int64_t w = 0; w < width; ++w) {
        expected.push_back(tree_by_definition(drawn_terms(shards, std::uint64_t(w))));
      }
      for (const int ranks : {1, 2, 3, 4, 7}) {
        if (ranks > shards) continue;
        CAPTURE(shards);
        CAPTURE(ranks);
        CHECK(total_of(shards, width, ranks) == expected);
      }
    }
  }
}

// 25 MiB are added up at a time.
TEST_CASE("rank sum: so it is of more values than travel at once") {
  constexpr std::int64_t kShards = 5;
  constexpr std::size_t kWidth = (std::size_t{25} << 20) / sizeof(float) + 13;
  constexpr std::size_t kPeriod = 1021 * 31;  // of the terms
  const auto term = [](std::int64_t shard, std::size_t i) {
    return float(i % 1021) + 0x1p-7f * float(shard + 1) * float(i % 31);
  };
  std::vector<float> expected;
  for (std::size_t i = 0; i < kPeriod; ++i) {
    std::vector<float> terms;
    for (std::int64_t s = 0; s < kShards; ++s) terms.push_back(term(s, i));
    expected.push_back(tree_by_definition(terms));
  }
  test::run_ranks(3, [&](Communicator& all) {
    RankSum<float> sum(all, kShards, Reduction::kFixed);
    const ShardRange own = shards_of_rank(kShards, all.rank(), all.size());
    for (std::int64_t s = own.first; s < own.end; ++s) {
      std::vector<float> values(kWidth);
      for (std::size_t i = 0; i < kWidth; ++i) values[i] = term(s, i);
      sum.add(values);
    }
    const std::span<const float> total = sum.total();
    check(total.size() == kWidth, ErrorKind::kCheckFailed, "{} values", total.size());
    for (std::size_t i = 0; i < kWidth; ++i) {
      check(total[i] == expected[i % kPeriod], ErrorKind::kCheckFailed,
            "value {} is {}, expected {}", i, total[i], expected[i % kPeriod]);
    }
  });
}

TEST_CASE("rank sum: fast gives one process the same bits, and several about the same sum") {
  CHECK(total_of(12, 5, 1, Reduction::kFast) == total_of(12, 5, 1));
  const std::vector<float> fast = total_of(12, 40, 5, Reduction::kFast);
  const std::vector<float> fixed = total_of(12, 40, 5);
  CHECK(fast != fixed);
  for (std::size_t i = 0; i < fast.size(); ++i) {
    CHECK(fast[i] == doctest::Approx(fixed[i]).epsilon(1e-4));
  }
}

TEST_CASE("ranks: texts of different lengths reach every rank in order") {
  test::run_ranks(3, [](Communicator& all) {
    const std::string mine(std::size_t(2 * all.rank()), char('a' + all.rank()));
    if (gathered(all, mine) != std::vector<std::string>{"", "bb", "cccc"}) {
      fail(ErrorKind::kCheckFailed, "rank {} got other texts", all.rank());
    }
  });
}

}  // namespace
}  // namespace keel
