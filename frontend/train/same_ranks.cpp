#include "frontend/train/same_ranks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
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
std::size_t usual_rank(const std::vector<double>& sums) {
  std::size_t usual = 0;
  for (std::size_t rank = 1; rank < sums.size(); ++rank) {
    if (std::ranges::count(sums, sums[rank]) > std::ranges::count(sums, sums[usual])) usual = rank;
  }
  return usual;
}

}  // namespace

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
