#include "tests/ptx/sectors.h"

namespace keel::ptx {

Sectors::Mark& Sectors::at(std::uint64_t sector) {
  const std::uint64_t page = sector / kPage;
  if (page != latest_page_) {
    std::unique_ptr<Page>& kept = pages_[page];
    if (!kept) kept = std::make_unique<Page>();
    latest_ = kept.get();
    latest_page_ = page;
  }
  return (*latest_)[sector % kPage];
}

Found Sectors::found(const Mark& mark, std::int64_t block) const {
  if (mark.launch < pass_) return Found::kMemory;
  if (mark.launch < launch_ || mark.is_only_prefetched) return Found::kEarlier;
  return mark.block == block ? Found::kOwnBlock : Found::kOtherBlock;
}

Found Sectors::read(std::uint64_t sector, std::int64_t block) {
  Mark& mark = at(sector);
  const Found result = found(mark, block);
  mark.launch = launch_;
  mark.block = block;
  mark.is_only_prefetched = false;
  return result;
}

bool Sectors::write(std::uint64_t sector, std::int64_t block) {
  Mark& mark = at(sector);
  const bool is_first = mark.written != launch_;
  mark.launch = mark.written = launch_;
  mark.block = block;
  mark.is_only_prefetched = false;
  return is_first;
}

bool Sectors::prefetch(std::uint64_t sector) {
  Mark& mark = at(sector);
  if (mark.launch == launch_) return false;
  const bool is_in_memory = mark.launch < pass_;
  mark.launch = launch_;
  mark.is_only_prefetched = true;
  return is_in_memory;
}

}  // namespace keel::ptx
