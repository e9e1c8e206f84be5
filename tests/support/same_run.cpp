#include "tests/support/same_run.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

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

nlohmann::ordered_json timeless_result(const fs::path& folder) {
  std::ifstream file(folder / "result.json");
  auto json = nlohmann::ordered_json::parse(file, nullptr, false);
  for (const char* key : {"seconds", "total_seconds", "items_per_second"}) json.erase(key);
  return json;
}

namespace {

// The files of a run that can be compared, by their paths in it.
std::set<std::string> files_of(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool has_times = name.starts_with("events.out.tfevents") || name == "lock";
    if (entry.is_regular_file() && !has_times) files.insert(fs::relative(entry.path(), folder));
  }
  return files;
}

}  // namespace

void check_same_files(const fs::path& a, const fs::path& b) {
  CHECK(files_of(a) == files_of(b));
  for (const std::string& name : files_of(b)) {
    CAPTURE(name);
    if (name == "metrics.jsonl") {
      CHECK(timeless_metrics(a) == timeless_metrics(b));
    } else if (name == "result.json") {
      CHECK(timeless_result(a) == timeless_result(b));
    } else {
      CHECK(same_bytes(a / name, b / name));
    }
  }
}

void check_same_end(const fs::path& a, const fs::path& b, std::int64_t step) {
  CHECK(same_bytes(step_file(a, step), step_file(b, step)));
  CHECK(timeless_metrics(a) == timeless_metrics(b));
  const fs::path best = "checkpoints/best.safetensors";
  REQUIRE(fs::exists(a / best) == fs::exists(b / best));
  if (fs::exists(a / best)) CHECK(same_bytes(a / best, b / best));
}

}  // namespace keel::test
