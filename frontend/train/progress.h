// The progress that a person sees while a run goes on: a line that updates itself on a terminal, a
// plain line now and then elsewhere. Everything goes to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/train/time_left.h"

namespace keel::train {

class Progress {
 public:
  // Asks whether stderr is a terminal.
  explicit Progress(bool quiet);
  ~Progress();

  struct Point {
    std::int64_t step, total, epoch;  // the current epoch, from 1 on
    double loss, items_per_second;
    std::string_view item_unit;  // "rows"
    Spent spent;
    ToDo to_do;
  };
  // Shows a point if it is time: ten times a second on a terminal, every ten seconds elsewhere.
  void update(const Point& point);
  // The same for anything of which a part, in [0, 1], is done.
  void update(double part, const std::string& text);
  // The same for an evaluation of `what`: `done` of `of` batches are over, or `of` is 0 while a
  // decoder searches, since nobody knows when a search ends.
  void evaluation(std::string_view what, std::int64_t done, std::int64_t of);
  // A line that stays, such as the result of an evaluation.
  void line(const std::string& text);
  // The same, also when quiet.
  void warning(const std::string& text);

 private:
  bool is_due();
  void show(double part, const std::string& text);
  void clear();

  bool quiet_, terminal_, shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

// "1:02:03", "4:05", "6 s" or, below a second, "0.6 s".
std::string duration_text(double seconds);

}  // namespace keel::train
