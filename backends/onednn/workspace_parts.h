// Parts of a node's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::onednn {

// Parts one after the other; each begins at a multiple of 64 bytes. The same calls count the bytes
// when a node is prepared, with a null workspace, and give the places when it runs.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* workspace = nullptr)
      : workspace_(static_cast<std::byte*>(workspace)) {}

  template <class T>
  T* take(std::size_t n) {
    T* const at = workspace_ ? reinterpret_cast<T*>(workspace_ + bytes_) : nullptr;
    bytes_ += (n * sizeof(T) + 63) / 64 * 64;
    return at;
  }
  float* floats(std::size_t n) { return take<float>(n); }
  std::int64_t bytes() const { return std::int64_t(bytes_); }

 private:
  std::byte* workspace_;
  std::size_t bytes_ = 0;
};

}  // namespace keel::onednn
