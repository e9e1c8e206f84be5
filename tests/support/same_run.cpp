#include "tests/support/same_run.h"

#include <doctest/doctest.h>

#include "frontend/io/metrics_log.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::test {

namespace fs = std::filesystem;

bool same_bytes(const fs::path& a, const fs::path& b) { return read_bytes(a) == read_bytes(b); }

std::vector<nlohmann::ordered_json> timeless_metrics(const fs::path& folder) {
  auto lines = io::read_metrics(folder / "metrics.jsonl");
  for (auto& line : lines) {
    line.erase("items_per_second");
    line.erase("seconds");
  }
  return lines;
}

void check_same_end(const fs::path& a, const fs::path& b, std::int64_t step) {
  CHECK(same_bytes(step_file(a, step), step_file(b, step)));
  CHECK(timeless_metrics(a) == timeless_metrics(b));
  const fs::path best = "checkpoints/best.safetensors";
  REQUIRE(fs::exists(a / best) == fs::exists(b / best));
  if (fs::exists(a / best)) CHECK(same_bytes(a / best, b / best));
}

}  // namespace keel::test
