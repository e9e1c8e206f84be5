// Counts what launches do, for bench/cuda_counts.py.
#pragma once

#include <set>
#include <string>

#include "tests/ptx/block.h"

namespace keel::ptx {

// With KEEL_PTX_COUNT=FILE launches between two events, of which `keel bench` times what lies
// between, are counted, and each is written as a line of JSON. What comes between two events is a
// pass. The first passes that launch anything are counted, as many as KEEL_PTX_PASSES says; those
// after them are not even run, nor is what was run before outside of a pass: results are wrong
// then, but counts are what is asked for.
class Counting {
 public:
  Counting();

  bool is_wanted() const { return !path_.empty(); }
  void note_event() {
    is_in_pass_ = !is_in_pass_;
    if (!is_in_pass_) return;
    is_new_pass_ = true;
    sectors_.begin_pass();
  }
  // Runs the launch, if it is to be counted or was not run yet.
  void run(Launch& launch);

 private:
  void write(const Launch& launch, const Counts& counts) const;

  std::string path_;
  Sectors sectors_;
  bool is_in_pass_ = false, is_new_pass_ = false;
  int pass_ = 0, passes_ = 0;
  std::set<std::string> seen_;
};

}  // namespace keel::ptx
