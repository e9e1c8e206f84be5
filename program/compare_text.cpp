// The output of `keel compare` for people.
#include <algorithm>
#include <cmath>

#include "program/common.h"
#include "program/compare.h"
#include "src/core/shown.h"
#include "src/ops/norm/norm_ops.h"

namespace keel::cli {
namespace {

using Nodes = std::vector<const compare::NodeSummary*>;

constexpr std::size_t kShownNodes = 12;  // unless all are ranked

// Names of backends, which may be those of files, and of arrays come from outside.
std::string shown_line(const std::string& text) { return keel::shown(text) + "\n"; }

std::string first_text(const compare::NodeReport& r, const std::string& command) {
  const compare::Element& w = r.errors.worst;
  std::string values;
  for (const auto& [backend, value] : r.values) {
    values += fmt::format(", {} has {:.9g}", backend, value);
  }
  return shown_line(fmt::format(
             "first: {} ({}, {}) on {} in step {}: output {} at {}: expected {:.9g}, got {:.9g}{}; "
             "off by {:.3g}, rounding explains {:.3g}",
             r.path, r.op, r.phase, r.backend, r.step, w.port, r.place, w.expected, w.got,
             r.values.size() > 1 ? values : "", std::abs(w.got - w.expected), w.bound)) +
         shown_line("this node only: " + command);
}

std::string nearest_text(const compare::Comparison& c) {
  if (c.nearest.empty()) return "";
  std::string text = "nearest to float64, in nodes:";
  for (const auto& [backend, count] : c.nearest) text += fmt::format(" {} {}", backend, count);
  return shown_line(text);
}

// Every node that was not compared or is suspect, and why: the table may be cut.
std::string reserved_text(const compare::Comparison& c) {
  std::string text;
  for (const compare::NodeSummary& s : c.nodes) {
    const compare::Verdict verdict = s.verdict();
    const bool is_named =
        verdict == compare::Verdict::kUncompared || verdict == compare::Verdict::kSuspect;
    if (!is_named) continue;
    text += shown_line(fmt::format(
        "{}: {} on {}: {}", verdict == compare::Verdict::kSuspect ? "suspect" : "not compared",
        s.worst.path, s.worst.backend, compare::reservation(s)));
  }
  return text;
}

bool is_norm_op(const std::string& op) {
  return std::ranges::any_of(
      norm_ops(), [&](const OpInfo* info) { return std::string_view(info->name) == op; });
}

// Whether a node stands in the scope of a norm, as its variables do.
bool is_beside_norm(const std::string& path) {
  return path.starts_with("norm/") || path.find("/norm") != std::string::npos;
}

// Faults first, then what was not told, then what was asked for: the op, or the norms of a network
// and what belongs to them.
int order_of(const CompareArgs& args, const compare::NodeSummary& s) {
  const compare::Verdict verdict = s.verdict();
  if (verdict == compare::Verdict::kDiverges) return 0;
  const bool is_told =
      verdict == compare::Verdict::kOk || verdict == compare::Verdict::kInsensitive;
  if (!is_told) return 1;
  const bool asks_op = !args.subject.empty() && args.subject[0] == "op";
  if (asks_op ? s.worst.op == args.subject.back() : is_norm_op(s.worst.op)) return 2;
  return !asks_op && is_beside_norm(s.worst.path) ? 3 : 4;
}

std::string table_of(const CompareArgs& args, const compare::Comparison& c) {
  Nodes nodes = c.ranked();
  if (!args.rank) {
    std::ranges::stable_sort(nodes, {}, [&](const auto* s) { return order_of(args, *s); });
  }
  const std::size_t all = nodes.size(), shown = args.rank ? all : std::min(kShownNodes, all);
  nodes.resize(shown);
  const auto columns = args.rank ? compare::ErrorColumns::kAll : compare::ErrorColumns::kVerdict;
  std::string text = table_text(compare::summary_rows(nodes, columns));
  if (shown < all) {
    text += fmt::format("{} more node{} (use --rank to list all)\n", all - shown,
                        all - shown == 1 ? "" : "s");
  }
  return text;
}

std::string full_text(const CompareArgs& args, const compare::Comparison& c,
                      const std::string& argument) {
  std::string text = shown_line(c.subject) + table_of(args, c);
  if (!args.rank) text += reserved_text(c);
  text += nearest_text(c);
  if (c.first) text += first_text(*c.first, reproducing_command(args, argument, c.first->path));
  return text;
}

// One of many subjects in a line.
std::string brief_text(const compare::Comparison& c) {
  const double worst = c.nodes.empty() ? 0 : c.ranked()[0]->worst.errors.of_bound;
  return shown_line(fmt::format("ok  {}: {}; at most {:.2f} of what rounding explains", c.subject,
                                compare::verdict_text({&c, 1}, 0), worst));
}

}  // namespace

std::string comparison_text(const CompareArgs& args,
                            std::span<const compare::Comparison> comparisons,
                            std::span<const std::string> arguments) {
  std::string text;
  bool has_table = false;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const compare::Comparison& c = comparisons[i];
    const bool is_brief = comparisons.size() > 1 && c.agrees() && !args.rank;
    has_table = has_table || !is_brief;
    text += is_brief ? brief_text(c) : full_text(args, c, arguments[i]);
  }
  const auto columns = args.rank ? compare::ErrorColumns::kAll : compare::ErrorColumns::kVerdict;
  if (has_table) text += compare::summary_legend(columns) + "\n";
  return text + shown_line(compare::verdict_text(comparisons));
}

}  // namespace keel::cli
