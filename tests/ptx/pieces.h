// The device's memory: pieces of the host's, of which the interpreter knows where each lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace keel::ptx {

class Memory {
 public:
  // A piece of memory that kernels may use from now on.
  void add(std::byte* first, std::int64_t bytes);
  void remove(std::byte* first);
  // Whether [first, first + bytes) lies within one piece.
  bool holds(std::uint64_t first, std::int64_t bytes) const {
    if (first >= latest_.first && first + std::uint64_t(bytes) <= latest_.last) return true;
    return find(first, bytes);
  }
  // Says where an address lies: in no piece, or beyond the end of one.
  std::string whereabouts(std::uint64_t address) const;

 private:
  struct Piece {
    std::uint64_t first = 1, last = 0;
  };
  bool find(std::uint64_t first, std::int64_t bytes) const;

  std::map<std::uint64_t, Piece> pieces_;
  mutable Piece latest_;  // the last one that was found
};

}  // namespace keel::ptx
