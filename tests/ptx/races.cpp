#include "tests/ptx/races.h"

namespace keel::ptx {
void GlobalCells::restart() {
  ++launch_;
  if (pages_.size() <= kMostPages) return;
  pages_.clear();
  latest_ = nullptr;
  latest_page_ = 0;  // where no memory lies
}

void GlobalCells::enter(std::uint64_t page) {
  std::unique_ptr<Page>& found = pages_[page];
  if (!found) found = std::make_unique<Page>();
  if (found->launch != launch_) {
    found->cells.fill({});
    found->launch = launch_;
  }
  latest_page_ = page;
  latest_ = found.get();
}

}  // namespace keel::ptx
