#include "program/search_folder.h"

#include <algorithm>

#include "backends/backends.h"
#include "frontend/io/atomic_file.h"
#include "frontend/io/packed_file.h"
#include "frontend/report/run.h"
#include "frontend/train/run_folder.h"
#include "program/common.h"
#include "program/trial.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxSearchBytes = 1 << 20;
const std::string kSearched = "run.search";

std::string searched_text(const std::vector<SearchKey>& keys) {
  std::vector<std::string> names;
  for (const SearchKey& search : keys) names.push_back(search.key);
  std::ranges::sort(names);  // the order of the keys only matters for the table
  return fmt::format("{}", fmt::join(names, " "));
}

report::Settings read_search_file(const fs::path& file) {
  report::Settings settings;
  try {
    for (const auto& [key, value] :
         train::read_settings(io::read_file(file, kMaxSearchBytes), file.string())) {
      settings[key] = value;
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    fail(ErrorKind::kBadInput, "{}", error.what());
  }
  check(settings.contains(kSearched), ErrorKind::kBadInput,
        "{}: expected the recipe of a search, which has search = ... in its table [run]",
        file.string());
  return settings;
}

// The settings that all points have in common, as a recipe.
std::string search_file_text(const std::vector<SearchKey>& keys, const RunArgs& run) {
  const std::string backend = run.backend.empty() ? default_backend() : run.backend;
  return draft_config(run).to_toml(
      {{"keel", KEEL_VERSION}, {"backend", backend}, {"search", searched_text(keys)}});
}

// How messages call a setting in the table [run].
std::string spoken_key(const std::string& key) {
  return key.starts_with("run.") ? key.substr(std::string("run.").size()) : key;
}

void expect_same_search(const fs::path& folder, const report::Settings& held,
                        const report::Settings& asked, const std::vector<SearchKey>& keys) {
  const auto expect_same = [&](const std::string& key) {
    const auto in_folder = held.find(key), here = asked.find(key);
    const std::string value = in_folder == held.end() ? "no value" : in_folder->second,
                      now = here == asked.end() ? "no value" : here->second;
    check(is_same_setting(key, value, now), ErrorKind::kUsage,
          "{}: this folder holds a search with {} = {}, here it is {}; give another --out",
          folder.string(), spoken_key(key), value, now);
  };
  for (const char* first : {"run.model", "run.search", "run.keel"}) expect_same(first);
  for (const auto* settings : {&asked, &held}) {
    for (const auto& [key, value] : *settings) {
      if (std::ranges::find(keys, key, &SearchKey::key) == keys.end()) expect_same(key);
    }
  }
}

}  // namespace

void settle_search_folder(const fs::path& folder, const std::vector<SearchKey>& keys,
                          const RunArgs& run) {
  train::expect_no_run({folder});
  const fs::path file = folder / "search.toml";
  const std::string text = search_file_text(keys, run);
  if (fs::exists(file)) {
    report::Settings asked;
    for (const auto& [key, value] : train::read_settings(text, "recipe")) asked[key] = value;
    return expect_same_search(folder, read_search_file(file), asked, keys);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.string(),
        error.message());
  io::write_file_atomically(file, text);
}

fs::path chosen_recipe(const fs::path& folder) { return folder / "chosen.toml"; }

}  // namespace keel::cli
