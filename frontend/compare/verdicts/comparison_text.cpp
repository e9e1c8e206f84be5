// A comparison in words: its verdict, and its errors as a table.
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/compare/verdicts/comparison.h"

namespace keel::compare {
namespace {

std::string number(double v) { return fmt::format("{:.3g}", v); }

// The nodes with a verdict, over all comparisons, and what they are called.
std::vector<std::string> names_of(std::span<const Comparison> comparisons, Verdict verdict) {
  std::vector<std::string> names;
  for (const Comparison& c : comparisons) {
    for (const NodeSummary& s : c.nodes) {
      if (s.verdict() != verdict) continue;
      const std::string place = comparisons.size() > 1 ? c.subject + ": " : "";
      names.push_back(place + s.worst.path);
    }
  }
  return names;
}

std::string list_of(const std::vector<std::string>& names, std::size_t most) {
  if (most == 0) return "";
  const std::size_t shown = std::min(names.size(), most);
  std::string text =
      fmt::format(": {}", fmt::join(names.begin(), names.begin() + long(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string counted_nodes(std::size_t count) {
  return fmt::format("{} node{}", count, count == 1 ? "" : "s");
}

// "all 79 nodes match float64 within rounding error", or how many of them do.
std::string agreement_text(std::size_t matching, std::size_t all) {
  const char* end = "float64 within rounding error";
  if (all == 0) return "no node was compared";
  if (matching < all) {
    return fmt::format("{} of {} match{} {}", matching, counted_nodes(all),
                       matching == 1 ? "es" : "", end);
  }
  return all == 1 ? fmt::format("the node matches {}", end)
                  : fmt::format("all {} nodes match {}", all, end);
}

// The words for nodes that are neither ok nor divergent.
struct Reserve {
  Verdict verdict;
  const char *one, *several;
};
constexpr Reserve kReserves[] = {
    {Verdict::kInsensitive, "is too small to tell", "are too small to tell"},
    {Verdict::kSuspect, "is suspect", "are suspect"},
    {Verdict::kUncompared, "was not compared", "were not compared"},
    {Verdict::kRefused, "was refused", "were refused"}};

}  // namespace

std::string verdict_text(std::span<const Comparison> comparisons, std::size_t most_names) {
  std::size_t all = 0, matching = 0;
  for (const Comparison& c : comparisons) {
    all += c.nodes.size();
    matching += std::size_t(c.count(Verdict::kOk) + c.count(Verdict::kInsensitive));
  }
  const std::vector<std::string> diverging = names_of(comparisons, Verdict::kDiverges);
  std::string text = agreement_text(matching, all);
  if (!diverging.empty()) {
    text = fmt::format("{} of {} differ{} from float64 by more than rounding explains{}",
                       diverging.size(), counted_nodes(all), diverging.size() == 1 ? "s" : "",
                       list_of(diverging, most_names));
  }
  for (const Reserve& reserve : kReserves) {
    const std::vector<std::string> names = names_of(comparisons, reserve.verdict);
    if (names.empty()) continue;
    text +=
        fmt::format("; {} {}{}", names.size(), names.size() == 1 ? reserve.one : reserve.several,
                    list_of(names, most_names));
  }
  return text;
}

namespace {

std::string word_of(Verdict verdict) {
  if (verdict == Verdict::kDiverges) return "DIVERGES";
  if (verdict == Verdict::kUncompared) return "not compared";
  return std::string(choice_text(verdict));
}

// A column of the table of errors, and its cell for a node that the backend has run.
struct Column {
  const char* heading;
  bool decides;  // the verdict
  std::string (*cell)(const NodeReport&);
};

const Column kColumns[] = {
    {"error/bound", true,
     [](const NodeReport& r) { return r.compared ? number(r.errors.of_bound) : "-"; }},
    {"sensitivity", true,
     [](const NodeReport& r) { return r.compared ? number(r.errors.sensitivity) : "-"; }},
    {"max abs", true, [](const NodeReport& r) { return number(r.errors.absolute); }},
    {"max rel", false, [](const NodeReport& r) { return number(r.errors.relative); }},
    {"max ulp", false, [](const NodeReport& r) { return number(r.errors.ulps); }},
    {"nmse", false, [](const NodeReport& r) { return number(r.errors.nmse); }},
    {"cosine - 1", false, [](const NodeReport& r) { return number(r.errors.cosine - 1); }},
    {"drift", true, [](const NodeReport& r) { return r.drift ? number(r.drift->nmse) : "-"; }}};

std::vector<std::string> summary_row(const NodeSummary& s,
                                     const std::vector<const Column*>& columns) {
  const NodeReport& r = s.worst;
  const Verdict verdict = s.verdict();
  std::vector<std::string> row{word_of(verdict), r.backend};
  for (const Column* column : columns) {
    row.push_back(verdict == Verdict::kRefused ? "-" : column->cell(r));
  }
  std::string name = r.output.empty() ? r.path : fmt::format("{} ({})", r.path, r.output);
  if (const std::string why = reservation(s); !why.empty()) name += ": " + why;
  row.push_back(r.op);
  row.push_back(std::move(name));
  return row;
}

}  // namespace

std::vector<std::vector<std::string>> summary_rows(std::span<const NodeSummary* const> nodes,
                                                   ErrorColumns asked) {
  const bool has_drift =
      std::ranges::any_of(nodes, [](const NodeSummary* s) { return s->worst.drift.has_value(); });
  std::vector<const Column*> columns;
  std::vector<std::vector<std::string>> rows{{"", "backend"}};
  for (const Column& column : kColumns) {
    if (asked == ErrorColumns::kVerdict && !column.decides) continue;
    if (std::string_view(column.heading) == "drift" && !has_drift) continue;
    columns.push_back(&column);
    rows[0].emplace_back(column.heading);
  }
  rows[0].insert(rows[0].end(), {"op", "node"});
  for (const NodeSummary* s : nodes) rows.push_back(summary_row(*s, columns));
  return rows;
}

std::string summary_legend(ErrorColumns columns) {
  std::string text =
      "error/bound: the largest error as a share of what rounding may add; above 1 it is a fault. "
      "sensitivity: the size of a fault, as a share of the values, that would show. max abs: the "
      "largest error.";
  if (columns == ErrorColumns::kVerdict) return text;
  return text +
         " max rel: as a share of the value. max ulp: in units of its last place in float32. nmse: "
         "squared errors by squared values. cosine: of the angle between result and reference.";
}

}  // namespace keel::compare
