// What the graph of a shard gives (shard_graph.h) goes from one program to another as rows of
// numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/runtime/program.h"

namespace keel::train {

// T, in its functions, is the type in which the backend stores float32.
class ShardOutputs {
 public:
  explicit ShardOutputs(const Graph& shard);

  // The numbers of outputs that differ between shards, and of those that are the same in each.
  std::size_t summed_count() const { return count(summed_); }
  std::size_t whole_count() const { return count(whole_); }

  // The outputs of a program's last run.
  template <class T>
  void read_summed(const Program& program, std::span<T> to) const;
  template <class T>
  void read_whole(const Program& program, std::span<double> to) const;
  // They become the inputs of the same names.
  template <class T>
  void feed_summed(Program& program, std::span<const T> from) const;
  template <class T>
  void feed_whole(Program& program, std::span<const double> from) const;

 private:
  struct Place {
    std::string name;
    std::size_t first = 0, count = 0;
    bool is_floating = true;
  };
  static std::size_t count(const std::vector<Place>& places);

  std::vector<Place> summed_, whole_;
};

}  // namespace keel::train
