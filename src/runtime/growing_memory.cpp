#include "src/runtime/growing_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace keel {
namespace {

// More than the machines that keel is for have memory: addresses alone cost nothing.
constexpr std::int64_t kRoom = std::int64_t{256} << 30;

// The addresses are set aside at once, without memory. Pages get theirs, zero-filled, when they are
// first written to, which the system allows for those below `bytes_` only.
class GrowingMemory : public Memory {
 public:
  explicit GrowingMemory(std::int64_t room) : room_(room) {
    void* const address =
        mmap(nullptr, std::size_t(room), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address != MAP_FAILED) address_ = static_cast<std::byte*>(address);
  }
  ~GrowingMemory() override {
    if (address_ != nullptr) munmap(address_, std::size_t(room_));
  }
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  std::byte* address() const override { return address_; }
  std::int64_t bytes() const override { return bytes_; }
  void upload(std::int64_t offset, const void* src, std::int64_t bytes) override {
    std::memcpy(address_ + offset, src, std::size_t(bytes));
  }
  void download(std::int64_t offset, void* dst, std::int64_t bytes) const override {
    std::memcpy(dst, address_ + offset, std::size_t(bytes));
  }
  bool grow(std::int64_t bytes) override {
    if (bytes <= bytes_) return true;
    const bool has_room = address_ != nullptr && bytes <= room_;
    if (!has_room) return false;
    if (mprotect(address_, std::size_t(bytes), PROT_READ | PROT_WRITE) != 0) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  std::byte* address_ = nullptr;
  std::int64_t room_, bytes_ = 0;
};

}  // namespace

std::unique_ptr<Memory> allocate_growing_memory(std::int64_t bytes) {
  auto memory = std::make_unique<GrowingMemory>(std::max(kRoom, bytes));
  if (!memory->grow(std::max<std::int64_t>(bytes, 1))) return nullptr;
  return memory;
}

}  // namespace keel
