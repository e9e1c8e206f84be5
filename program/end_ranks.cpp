#include "program/end_ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

#include "backends/ranks.h"
#include "frontend/io/message.h"
#include "src/core/failure.h"
#include "src/core/shown.h"

namespace keel::cli {

// An error of rank 0 is an error of the others, too: only rank 0 reports it, if it does so within a
// moment.
int end_ranks(Communicator& ranks) {
  const Failure failure = current_failure();
  const std::string text = keel::shortened(failure.text, kMostShownBytes);
  if (ranks.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  io::say(ranks.rank() > 0 ? fmt::format("keel: error: rank {}: {}", ranks.rank(), text)
                           : "keel: error: " + text);
  ranks.end_all(int(failure.kind));
  return int(failure.kind);
}

int with_ranks(const std::function<int(Communicator&)>& command) {
  const auto ranks = start_ranks([](const std::string& line) { io::say(line); });
  if (ranks->size() == 1) return command(*ranks);
  try {
    return command(*ranks);
  } catch (...) {
    return end_ranks(*ranks);
  }
}

}  // namespace keel::cli
