#include "tests/ptx/cuda/counting.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace keel::ptx {
namespace {

// The key by which launches differ.
std::string key_of(const Launch& launch) {
  const auto* const parameters = reinterpret_cast<const char*>(launch.parameters.data());
  return fmt::format("{} {} {} {}", launch.code.name, launch.blocks, launch.threads,
                     std::string_view(parameters, launch.parameters.size()));
}

}  // namespace

Counting::Counting() {
  if (const char* const path = std::getenv("KEEL_PTX_COUNT")) path_ = path;
  if (const char* const passes = std::getenv("KEEL_PTX_PASSES")) passes_ = std::atoi(passes);
}

void Counting::run(Launch& launch) {
  if (!is_in_pass_) {
    if (seen_.insert(key_of(launch)).second) run_grid(launch);
    return;
  }
  if (std::exchange(is_new_pass_, false)) ++pass_;
  if (pass_ > passes_) return;
  Tally tally(launch.code, sectors_);
  launch.tally = &tally;
  run_grid(launch);
  write(launch, tally.counts());
}

void Counting::write(const Launch& launch, const Counts& c) const {
  std::string classes;
  for (int i = 0; i < kClasses; ++i) {
    classes += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", kClassNames[std::size_t(i)],
                           c.instructions[std::size_t(i)]);
  }
  std::ofstream(path_, std::ios::app) << fmt::format(
      "{{\"pass\": {}, \"kernel\": \"{}\", \"blocks\": {}, \"threads\": {}, "
      "\"instructions\": {{{}}}, \"barriers\": {}, \"requests\": {}, \"asked_bytes\": {}, "
      "\"read_sectors\": {}, \"written_sectors\": {}, \"wasted_sectors\": {}, "
      "\"from_memory\": {}, \"from_earlier\": {}, \"again_own\": {}, \"again_other\": {}, "
      "\"to_memory\": {}, \"shared_requests\": {}, \"shared_cycles\": {}, \"conflicts\": {}, "
      "\"local_sectors\": {}}}\n",
      pass_, launch.code.name, launch.blocks, launch.threads, classes, c.barriers, c.requests,
      c.asked_bytes, c.read_sectors, c.written_sectors, c.wasted_sectors, c.from_memory,
      c.from_earlier, c.again_own, c.again_other, c.to_memory, c.shared_requests, c.shared_cycles,
      c.conflicts, c.local_sectors);
}

}  // namespace keel::ptx
