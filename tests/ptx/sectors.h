// Which sectors of global memory, 32 bytes each, were touched before: in this launch, or in an
// earlier one of the same pass, such as a norm's forward.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace keel::ptx {

inline constexpr std::uint64_t kSectorBytes = 32;

// Where the data of a sector lie at best.
enum class Found : std::uint8_t {
  kMemory,      // nobody of this pass has touched it
  kEarlier,     // an earlier launch of the pass has, or a prefetch
  kOtherBlock,  // another block of this launch has
  kOwnBlock,    // this block has
};

class Sectors {
 public:
  // All that was touched until now is only in memory.
  void begin_pass() { ++launch_, pass_ = launch_; }
  void begin_launch() { ++launch_; }

  Found read(std::uint64_t sector, std::int64_t block);
  // Whether this launch writes there for the first time.
  bool write(std::uint64_t sector, std::int64_t block);
  // Whether the sector comes from memory.
  bool prefetch(std::uint64_t sector);

 private:
  struct Mark {
    std::uint64_t launch = 0, written = 0;  // the last that touched it, and that wrote it
    std::int64_t block = -1;
    bool is_only_prefetched = false;
  };
  static constexpr std::uint64_t kPage = 256;  // sectors
  using Page = std::array<Mark, kPage>;
  Mark& at(std::uint64_t sector);
  Found found(const Mark& mark, std::int64_t block) const;

  std::uint64_t launch_ = 1, pass_ = 1;
  std::uint64_t latest_page_ = ~std::uint64_t{0};
  Page* latest_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace keel::ptx
