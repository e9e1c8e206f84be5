// The outputs of a shard's graph (shard_graph.h) go from one program to another as rows of numbers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/runtime/program.h"

namespace keel::train {

// T, in its functions, is the type in which the backend stores float32.
class ShardOutputs {
 public:
  // The outputs of every program of a shard, of which `like` is one. Each output can be read after
  // its part of the run: the part that computes it if they are read `by_part`, else the last.
  ShardOutputs(const Program& like, bool by_part);

  // The numbers of outputs that differ between shards, and of those that are the same in each.
  std::size_t summed_count() const { return count(summed_); }
  std::size_t whole_count() const { return count(whole_); }
  // Where in the row of the former those of a part lie.
  struct Range {
    std::size_t first = 0, count = 0;
  };
  Range summed_in(std::int64_t part) const;
  // Whether an output can be read after this part.
  bool comes(const std::string& name, std::int64_t part) const { return part_of_.at(name) == part; }
  // Throws Error{kInternal} unless the parts of a program have the outputs that those of `like`
  // have.
  void expect_same_parts(const Program& program) const;

  // The outputs of a part of a program's last run.
  template <class T>
  void read_summed(const Program& program, std::int64_t part, std::span<T> to) const;
  template <class T>
  void read_whole(const Program& program, std::int64_t part, std::span<double> to) const;
  // All of them become the inputs of the same names.
  template <class T>
  void feed_summed(Program& program, std::span<const T> from) const;
  template <class T>
  void feed_whole(Program& program, std::span<const double> from) const;

 private:
  struct Place {
    std::string name;
    std::size_t first = 0, count = 0;
    bool is_floating = true;
    std::int64_t part = 0;
  };
  static std::size_t count(const std::vector<Place>& places);
  static void order(std::vector<Place>& places);

  std::vector<Place> summed_, whole_;  // by part
  std::map<std::string, std::int64_t> part_of_;
};

}  // namespace keel::train
