#include "program/rank_facts.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <fstream>

#include "backends/product_facts.h"

namespace keel::cli {
namespace {

// "" where the system does not say which file this program is.
std::string checksum_of_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  if (!file) return "";
  uLong crc = 0;
  std::array<char, 1 << 16> bytes;
  while (file.read(bytes.data(), bytes.size()) || file.gcount() > 0) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), std::size_t(file.gcount()));
  }
  return fmt::format(", file {:08x}", crc);
}

}  // namespace

train::RankFacts program_facts(const Backend& backend) {
  train::RankFacts facts{{"build of keel", KEEL_VERSION + checksum_of_program()},
                         {"backend", std::string(backend.name())}};
  for (const auto& fact : product_facts(backend)) facts.push_back(fact);
  return facts;
}

void expect_same_ranks(Communicator& ranks, const Backend& backend, const train::RankFacts& more) {
  if (ranks.size() == 1) return;
  train::RankFacts facts = program_facts(backend);
  facts.insert(facts.end(), more.begin(), more.end());
  train::expect_same_facts(ranks, facts);
}

}  // namespace keel::cli
