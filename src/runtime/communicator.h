// The processes that train together, called ranks: what one gives to another. Every rank calls the
// same functions in the same order; each returns when this rank's part is done. Bytes lie in the
// host's memory and must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

class Communicator {
 public:
  using Bytes = std::span<const std::byte>;
  using Room = std::span<std::byte>;

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The library that carries the bytes, for people: "Open MPI 4.1.4".
  virtual std::string description() const = 0;

  // Gives to[r] to rank r, and takes from[r] from rank r, for every r. Both sides know the sizes,
  // which may be 0.
  virtual void exchange(std::span<const Bytes> to, std::span<const Room> from) = 0;
  // Every rank gives its bytes to all: from[r] takes those of rank r. The rooms adjoin in memory.
  virtual void gather(Bytes mine, std::span<const Room> from) = 0;
  // Makes each value the sum over the ranks, in an order that is the library's own.
  virtual void add_up(std::span<float> values) = 0;
  virtual void add_up(std::span<double> values) = 0;
  // Returns when every rank has called it.
  virtual void wait_for_all() = 0;
  // Ends all ranks at once, with this exit code.
  [[noreturn]] virtual void end_all(int code) = 0;
};

// A training without any other process.
class OneRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "one process"; }
  void exchange(std::span<const Bytes> to, std::span<const Room> from) override;
  void gather(Bytes mine, std::span<const Room> from) override;
  void add_up(std::span<float>) override {}
  void add_up(std::span<double>) override {}
  void wait_for_all() override {}
  [[noreturn]] void end_all(int code) override;
};

// The same number of values of every rank, one rank after another.
std::vector<double> gathered(Communicator& ranks, std::span<const double> mine);
// A text of every rank.
std::vector<std::string> gathered(Communicator& ranks, std::string_view mine);

}  // namespace keel
