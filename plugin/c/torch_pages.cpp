#include "plugin/c/torch_pages.h"

#include <sys/mman.h>

namespace keel::plugin::torch {
namespace {

constexpr std::int64_t kPage = std::int64_t{2} << 20;
// The GNU C library's largest threshold for mapping a block by itself; smaller blocks lie together
// with others, in memory that it keeps.
constexpr std::int64_t kMapped = std::int64_t{32} << 20;
// MADV_POPULATE_WRITE, which headers have from Linux 5.14 on.
constexpr int kPopulate = 23;

}  // namespace

void ready_pages(void* address, std::int64_t bytes, const keel_executor& threads) {
  if (bytes < kMapped) return;
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::int64_t before = -std::int64_t(place) & (kPage - 1);
  char* first = static_cast<char*>(address) + before;
  const std::int64_t pages = (bytes - before) / kPage;
  madvise(first, std::size_t(pages * kPage), MADV_HUGEPAGE);
  const auto populate = [](void* from, std::int64_t begin, std::int64_t end) {
    madvise(static_cast<char*>(from) + begin * kPage, std::size_t((end - begin) * kPage),
            kPopulate);
  };
  if (threads.threads > 1) {
    threads.run(threads.context, pages, populate, first);
  } else {
    populate(first, 0, pages);
  }
}

}  // namespace keel::plugin::torch
