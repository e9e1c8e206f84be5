// keel bench accuracy
#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/norm_accuracy.h"
#include "program/common.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

// One in so many of all combinations of sizes, moments and options is measured.
constexpr int kEvery = 5;

constexpr const char* kScales =
    "errors against the float64 reference in units of 2^-23: of y and the statistics relative to "
    "the larger of 1, their size and, for statistics, the deviation, but of rstd to itself; of dx "
    "and the gradients of the parameters relative to the terms that cancel in them";

Json to_json(const bench::NormAccuracy& a) {
  Json json{{"norm", a.norm}, {"cases", a.cases}};
  for (const bench::WorstError& w : a.worst) {
    json[w.of] = {{"error", w.error}, {"bound", w.bound}, {"holds", w.holds()}, {"case", w.at}};
  }
  return json;
}

std::string text_of(const std::vector<bench::NormAccuracy>& results) {
  std::vector<std::vector<std::string>> rows{
      {"", "norm", "cases", "of", "worst", "bound", "at --case"}};
  for (const bench::NormAccuracy& a : results) {
    for (const bench::WorstError& w : a.worst) {
      rows.push_back({w.holds() ? "ok" : "FAILED", a.norm, fmt::format("{}", a.cases), w.of,
                      fmt::format("{:.2f}", w.error), fmt::format("{}", w.bound), w.at});
    }
  }
  return table_text(rows) + kScales + "\nonly one line: keel bench accuracy NORM --case CASE\n";
}

bool holds(const bench::NormAccuracy& a) {
  return std::ranges::all_of(a.worst, &bench::WorstError::holds);
}

}  // namespace

int run_bench_accuracy(const AccuracyArgs& args) {
  const auto backend = make_backend(args.run);
  const auto cases_of = [&](bench::NormLayout layout) {
    return bench::generated_cases(layout, args.thorough ? 1 : kEvery);
  };
  std::vector<bench::NormAccuracy> results;
  for (const std::string& norm : args.norms.empty() ? bench::accuracy_norms() : args.norms) {
    results.push_back(args.at.empty() ? bench::measure_accuracy(*backend, norm, cases_of)
                                      : bench::measure_accuracy(*backend, norm, args.at));
  }
  if (args.run.json) {
    Json rows = Json::array();
    for (const bench::NormAccuracy& a : results) rows.push_back(to_json(a));
    print_json({{"backend", backend->description()}, {"scales", kScales}, {"norms", rows}});
  } else {
    print(backend->description() + "\n" + text_of(results));
  }
  return std::ranges::all_of(results, holds) ? 0 : 1;
}

}  // namespace keel::cli
