// keel list
#include <nlohmann/json.hpp>
#include <set>

#include "backends/backends.h"
#include "frontend/nn/norm.h"
#include "models/registry.h"
#include "program/common.h"
#include "program/reproduce_choice.h"
#include "program/support_probe.h"
#include "src/ops/op_table.h"
#include "studies/observers.h"
#include "studies/study.h"

namespace keel::cli {
namespace {

// A listing is rows of named cells; as text a table, as JSON a list of objects.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

std::string gradient_text(GradientKind kind) {
  switch (kind) {
    case GradientKind::kNone:
      return "none";
    case GradientKind::kExact:
      return "exact";
    case GradientKind::kDetached:
      return "detached";
    case GradientKind::kSurrogate:
      return "surrogate";
  }
  return "?";
}

// The names that `keel list` accepts.
Listing list_listings() {
  Listing listing{{"list", "about"}, {}};
  for (const auto& [name, about] : kListings) listing.rows.push_back({name, about});
  return listing;
}

// `models` is another name of the tasks.
Listing list_tasks(const std::string& what) {
  Listing listing{{what == "models" ? "model" : "task", "summary", "recipes"}, {}};
  for (const auto& entry : models::all_models()) {
    std::vector<std::string> recipes;
    for (const auto& recipe : entry.recipes) recipes.push_back(recipe.name);
    listing.rows.push_back({entry.name, std::string(entry.make()->summary()),
                            fmt::format("{}", fmt::join(recipes, " "))});
  }
  return listing;
}

Listing list_recipes() {
  Listing listing{{"model", "recipe", "about"}, {}};
  for (const auto& entry : models::all_models()) {
    for (const auto& recipe : entry.recipes) {
      const std::string first = recipe.toml.substr(0, recipe.toml.find('\n'));
      listing.rows.push_back(
          {entry.name, recipe.name, first.starts_with("# ") ? first.substr(2) : ""});
    }
  }
  return listing;
}

Listing list_observers() {
  Listing listing{{"observer", "about", "options", "source"}, {}};
  for (const study::ObserverKind& kind : study::observer_kinds()) {
    listing.rows.push_back(
        {kind.name, kind.about,
         fmt::format("every={}{}", attr_text(kind.usual.every), kind.has_site ? " site=" : ""),
         kind.source});
  }
  return listing;
}

Listing list_studies() {
  Listing listing{{"study", "about", "source"}, {}};
  for (const study::Study& s : study::studies()) {
    listing.rows.push_back({s.name, s.about, s.source});
  }
  return listing;
}

// Its columns by name, then the tasks that are yet to come. Figures that a study computes stand
// last.
Listing list_tables() {
  Listing listing{{"table", "about", "source", "columns", "no such task yet"}, {}};
  for (const study::PaperTable& table : study::paper_tables()) {
    std::vector<std::string> columns;
    std::set<std::string> missing;
    for (const study::PaperColumn& column : table.columns) {
      if (is_in_zoo(column)) {
        columns.push_back(column.name);
      } else {
        missing.insert(column.task);
      }
    }
    listing.rows.push_back({table.name, table.about, table.source,
                            fmt::format("{}", fmt::join(columns, " ")),
                            fmt::format("{}", fmt::join(missing, " "))});
  }
  for (const study::StudiedFigure& figure : study::studied_figures()) {
    const study::Study& computed = study::find_study(figure.study);
    listing.rows.push_back({figure.name, computed.about, computed.source,
                            fmt::format("by keel study {}", figure.study), ""});
  }
  return listing;
}

Listing list_norms(const std::string& name) {
  Listing listing{
      {"norm", "formula", "parameters", "state", "gradient", "defaults", "source", "differs"}, {}};
  const std::string only = name.empty() ? name : nn::Norm::parse(name).name();
  for (const nn::NormFacts& f : nn::norm_facts()) {
    if (!only.empty() && f.name != only) continue;
    listing.rows.push_back({f.name, f.formula, f.parameters, f.state, f.gradient,
                            nn::Norm::parse(f.name).options(), f.source, f.differs});
  }
  return listing;
}

// The backend, or null and why this build or this machine has not got it.
std::unique_ptr<Backend> try_backend(const BackendEntry& entry, std::string& missing) {
  missing = entry.missing;
  if (!missing.empty()) return nullptr;
  try {
    return keel::make_backend(entry.name);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBackendMissing) throw;
    missing = error.what();
    return nullptr;
  }
}

Listing list_backends() {
  Listing listing{{"backend", "state", "about", "refuses"}, {}};
  const std::vector<Graph> graphs = graphs_to_ask_for();
  for (const BackendEntry& entry : known_backends()) {
    std::string missing;
    const auto backend = try_backend(entry, missing);
    if (!backend) {
      listing.rows.push_back({entry.name, "missing: " + missing, entry.summary, ""});
      continue;
    }
    listing.rows.push_back({entry.name, "ready", entry.summary + "; " + backend->description(),
                            refusal_summary(*backend, graphs)});
  }
  return listing;
}

Listing list_ops() {
  Listing listing{{"op", "gradient", "in place"}, {}};
  for (const OpInfo* op : all_ops()) {
    std::vector<std::string> claims;
    for (const InPlace& claim : op->in_place) {
      claims.push_back(fmt::format("{}->{}", claim.input, claim.output));
    }
    if (op->view != View::kNo) claims.push_back("view");
    listing.rows.push_back({std::string(op->name), gradient_text(op->gradient),
                            fmt::format("{}", fmt::join(claims, " "))});
  }
  return listing;
}

// The first cell of every row over the others, each with its column's name.
std::string blocks_text(const Listing& listing) {
  std::string text;
  for (const auto& row : listing.rows) {
    text += (text.empty() ? "" : "\n") + row[0] + "\n";
    for (std::size_t i = 1; i < row.size(); ++i) {
      const bool empty = row[i].empty() || row[i] == "-";
      if (!empty) text += labelled(listing.columns[i], row[i]);
    }
  }
  return text;
}

void show(const Listing& listing, bool json) {
  if (!json && listing.columns[0] == "norm") return print(blocks_text(listing));
  if (!json) {
    std::vector<std::vector<std::string>> rows{listing.columns};
    rows.insert(rows.end(), listing.rows.begin(), listing.rows.end());
    return print(table_text(rows));
  }
  auto list = nlohmann::ordered_json::array();
  for (const auto& row : listing.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) object[listing.columns[i]] = row[i];
    list.push_back(object);
  }
  print_json(list);
}

}  // namespace

int run_list(const ListArgs& args) {
  const std::string& what = args.what;
  if (what == "keys") return run_list_keys(args);
  check(!args.markdown, ErrorKind::kUsage, "list {}: --markdown applies only to keys", what);
  check(args.name.empty() || what == "norms", ErrorKind::kUsage,
        "list {}: expected no name, got '{}'", what, args.name);
  show(what.empty()          ? list_listings()
       : what == "norms"     ? list_norms(args.name)
       : what == "ops"       ? list_ops()
       : what == "backends"  ? list_backends()
       : what == "studies"   ? list_studies()
       : what == "observers" ? list_observers()
       : what == "tables"    ? list_tables()
       : what == "recipes"   ? list_recipes()
                             : list_tasks(what),
       args.json);
  return 0;
}

}  // namespace keel::cli
