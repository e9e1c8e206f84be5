#include "src/runtime/communicator.h"

#include <cstdlib>
#include <cstring>

namespace keel {
namespace {

void copy(Communicator::Bytes from, Communicator::Room to) {
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}

}  // namespace

void OneRank::exchange(std::span<const Bytes> to, std::span<const Room> from) {
  copy(to[0], from[0]);
}

void OneRank::gather(Bytes mine, std::span<const Room> from) { copy(mine, from[0]); }

void OneRank::end_all(int code) { std::_Exit(code); }

std::vector<double> gathered(Communicator& ranks, std::span<const double> mine) {
  std::vector<double> all(mine.size() * std::size_t(ranks.size()));
  std::vector<Communicator::Room> rooms;
  for (int r = 0; r < ranks.size(); ++r) {
    rooms.push_back(
        std::as_writable_bytes(std::span(all).subspan(std::size_t(r) * mine.size(), mine.size())));
  }
  ranks.gather(std::as_bytes(mine), rooms);
  return all;
}

std::vector<std::string> gathered(Communicator& ranks, std::string_view mine) {
  const double size = double(mine.size());
  const std::vector<double> sizes = gathered(ranks, std::span(&size, 1));
  std::size_t total = 0;
  for (const double s : sizes) total += std::size_t(s);
  std::string all(total, '\0');
  std::vector<Communicator::Room> rooms;
  std::size_t begin = 0;
  for (const double s : sizes) {
    rooms.push_back(std::as_writable_bytes(std::span(all).subspan(begin, std::size_t(s))));
    begin += std::size_t(s);
  }
  ranks.gather(std::as_bytes(std::span(mine)), rooms);
  std::vector<std::string> texts;
  for (const Communicator::Room room : rooms) {
    texts.emplace_back(reinterpret_cast<const char*>(room.data()), room.size());
  }
  return texts;
}

}  // namespace keel
