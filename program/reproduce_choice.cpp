#include "program/reproduce_choice.h"

#include <algorithm>
#include <charconv>

#include "models/registry.h"
#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::cli {
namespace {

std::int64_t seed_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size() && value >= 0, ErrorKind::kUsage,
        "--seeds: expected a count or seeds separated by commas, got '{}'", text);
  return value;
}

// The elements that are called by one of `wanted`; all if nothing is.
template <class T, class NamesOf>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<std::string>& wanted,
                      const std::string& option, NamesOf names_of) {
  std::vector<std::string> known;
  std::vector<T> result;
  for (const T& element : all) {
    const std::vector<std::string> names = names_of(element);
    known.insert(known.end(), names.begin(), names.end());
    const bool asked = std::ranges::any_of(names, [&](const std::string& name) {
      return std::ranges::find(wanted, name) != wanted.end();
    });
    if (asked || wanted.empty()) result.push_back(element);
  }
  for (const std::string& name : wanted) {
    check(std::ranges::find(known, name) != known.end(), ErrorKind::kUsage, "{}: {}", option,
          unknown_name(name, known));
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> seeds_of(const std::string& text) {
  std::vector<std::int64_t> seeds;
  if (text.find(',') == std::string::npos) {
    const std::int64_t count = seed_number(text);
    check(count >= 1 && count <= 1000, ErrorKind::kUsage, "--seeds: expected 1 to 1000, got {}",
          count);
    for (std::int64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
    return seeds;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::int64_t seed = seed_number(text.substr(at, end - at));
    check(std::ranges::find(seeds, seed) == seeds.end(), ErrorKind::kUsage,
          "--seeds: expected each once, got {} twice", seed);
    seeds.push_back(seed);
    at = end + 1;
  }
  return seeds;
}

void expect_consecutive(const std::string& text) {
  const std::vector<std::int64_t> seeds = seeds_of(text);
  for (std::size_t i = 1; i < seeds.size(); ++i) {
    check(seeds[i] == seeds[i - 1] + 1, ErrorKind::kUsage,
          "--seeds: expected seeds that follow each other, as studies take them, got {}", text);
  }
}

study::PaperTable chosen_table(const ReproduceArgs& args) {
  study::PaperTable table = study::find_paper_table(args.table);
  table.columns = chosen(table.columns, args.tasks, "--tasks", [](const study::PaperColumn& c) {
    return std::vector{c.name, c.task};
  });
  table.rows = chosen(table.rows, args.norms, "--norms",
                      [](const study::PaperRow& row) { return std::vector{row.name}; });
  return table;
}

std::string data_of(const ReproduceArgs& args, const study::PaperColumn& column) {
  const bool builtin = column.is_builtin || args.run.data == "builtin";
  return builtin ? "" : args.run.data;
}

bool is_in_zoo(const study::PaperColumn& column) {
  const auto models = models::all_models();
  return !column.recipes.empty() &&
         std::ranges::find(models, column.task, &models::ModelEntry::name) != models.end();
}

}  // namespace keel::cli
