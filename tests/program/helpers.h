// Helpers of the program's tests: the shape of a refusal, and small runs to look at.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "backends/backends.h"
#include "tests/support/process.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::cli {

using Json = nlohmann::ordered_json;
using test::ProcessResult;
using test::run_keel;

// Exit code `code`, nothing on stdout, and one line on stderr that holds `part`.
inline void check_refusal(const ProcessResult& result, int code, std::string_view part = "") {
  CAPTURE(result.err);
  CAPTURE(std::string(part));
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("keel: error: "));
  CHECK(std::ranges::count(result.err, '\n') == 1);
  CHECK(result.err.ends_with('\n'));
  CHECK(result.err.find(part) != std::string::npos);
}

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Returns when the file is there, or false when the program has ended without it.
inline bool wait_for_file(const std::filesystem::path& path, test::Process& process) {
  while (!std::filesystem::exists(path)) {
    if (process.has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Standard output as JSON; a discarded value, which compares with nothing, when it is none.
inline Json json_of(const ProcessResult& result) {
  CAPTURE(result.err);
  CHECK(result.code == 0);
  Json value = Json::parse(result.out, nullptr, false);
  CHECK_FALSE(value.is_discarded());
  return value;
}

inline bool has_onednn() {
  return std::ranges::any_of(known_backends(), [](const BackendEntry& entry) {
    return entry.name == "onednn" && entry.missing.empty();
  });
}

// The backends of the program: it has no emulator, which is only for tests.
inline std::vector<BackendEntry> program_backends() {
  std::vector<BackendEntry> all = known_backends();
  for (BackendEntry& entry : all) {
    if (entry.summary.starts_with("emulated")) entry.missing = "built with -Dcuda=disabled";
  }
  return all;
}

}  // namespace keel::cli
