#include "frontend/train/same_ranks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/core/error.h"

namespace keel::train {
namespace {

double checksum(const io::TensorFile& content) {
  uLong crc = 0;
  const auto add = [&](std::string_view bytes) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  for (const auto& [name, text] : content.metadata) add(name + "=" + text);
  for (const auto& [name, value] : content.tensors) {
    add(name);
    add({reinterpret_cast<const char*>(value.data()), std::size_t(value.bytes())});
  }
  return double(crc);
}

// The lowest rank that has what most have.
template <class T>
std::size_t usual_rank(const std::vector<T>& sums) {
  std::size_t usual = 0;
  for (std::size_t rank = 1; rank < sums.size(); ++rank) {
    if (std::ranges::count(sums, sums[rank]) > std::ranges::count(sums, sums[usual])) usual = rank;
  }
  return usual;
}

}  // namespace

void expect_same_facts(Communicator& ranks, const RankFacts& facts) {
  if (ranks.size() == 1) return;
  std::string mine;
  nlohmann::json::to_cbor(nlohmann::json(facts), mine);
  std::vector<RankFacts> all;
  for (const std::string& bytes : gathered(ranks, mine)) {
    all.push_back(nlohmann::json::from_cbor(bytes));
  }
  const RankFacts& longest = *std::ranges::max_element(all, {}, &RankFacts::size);
  for (std::size_t i = 0; i < longest.size(); ++i) {
    RankFacts of_ranks;
    for (const RankFacts& of_rank : all) {
      of_ranks.push_back(i < of_rank.size() ? of_rank[i]
                                            : RankFacts::value_type{longest[i].first, ""});
    }
    const std::size_t usual = usual_rank(of_ranks);
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      check(of_ranks[rank] == of_ranks[usual], ErrorKind::kBadInput,
            "rank {} has another {} than rank {}: expected '{}', got '{}'", rank,
            of_ranks[usual].first, usual, of_ranks[usual].second, of_ranks[rank].second);
    }
  }
}

void expect_same_content(Communicator& ranks, const io::TensorFile& content, std::string_view has) {
  if (ranks.size() == 1) return;
  const double mine = checksum(content);
  const std::vector<double> sums = gathered(ranks, std::span(&mine, 1));
  const std::size_t usual = usual_rank(sums);
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    check(sums[rank] == sums[usual], ErrorKind::kBadInput, "rank {} {} than rank {}", rank, has,
          usual);
  }
}

}  // namespace keel::train
