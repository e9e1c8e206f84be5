// keel list
#include <sstream>

#include "backends/backends.h"
#include "frontend/nn/norm.h"
#include "frontend/train/job.h"
#include "models/registry.h"
#include "src/ops/op_table.h"
#include "studies/paper_table.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

Json listed(const std::string& what) { return json_of(run_keel({"list", what, "--json"})); }

std::vector<std::string> column(const Json& rows, const std::string& name) {
  std::vector<std::string> values;
  for (const Json& row : rows) values.push_back(row.at(name));
  return values;
}

TEST_CASE("list: every listing names all there is, as JSON and as text" *
          doctest::test_suite("slow")) {
  std::map<std::string, std::vector<std::string>> expected;
  for (const auto& entry : models::all_models()) {
    expected["models"].push_back(entry.name);
    for (const auto& recipe : entry.recipes) expected["recipes"].push_back(recipe.name);
  }
  for (const auto& facts : nn::norm_facts()) expected["norms"].push_back(facts.name);
  for (const OpInfo* op : all_ops()) expected["ops"].emplace_back(op->name);
  for (const auto& entry : known_backends()) expected["backends"].push_back(entry.name);
  for (const auto& table : study::paper_tables()) expected["tables"].push_back(table.name);
  for (const auto& figure : study::studied_figures()) expected["tables"].push_back(figure.name);
  for (const auto& [what, names] : expected) {
    CAPTURE(what);
    const std::string key = what.substr(0, what.size() - 1);
    CHECK(column(listed(what), key) == names);
    const ProcessResult text = run_keel({"list", what});
    CHECK(text.code == 0);
    if (what != "norms") CHECK(std::ranges::count(text.out, '\n') == std::ssize(names) + 1);
    for (const std::string& name : names) CHECK(holds(text.out, name));
  }
}

TEST_CASE("list: nothing lists what can be listed, and tasks are the models") {
  const Json listings = json_of(run_keel({"list", "--json"}));
  const std::vector<std::string> names = column(listings, "list");
  CHECK(names.size() == 9);
  CHECK(names.front() == "tasks");
  for (const std::string& name : names) CHECK(run_keel({"list", name, "--json"}).code == 0);
  const ProcessResult text = run_keel({"list"});
  CHECK(text.code == 0);
  for (const std::string& name : names) CHECK(holds(text.out, "\n" + name + " "));
  CHECK(column(listed("tasks"), "task") == column(listed("models"), "model"));
  CHECK(column(listed("tasks"), "recipes") == column(listed("models"), "recipes"));
  check_refusal(run_keel({"list", "mdels"}), 2, "mdels");
}

TEST_CASE("list: norms show their defaults and gradients") {
  for (const Json& row : listed("norms")) {
    CAPTURE(row.at("norm").get<std::string>());
    CHECK(row.at("defaults") == nn::Norm::parse(row.at("norm").get<std::string>()).options());
    CHECK_FALSE(row.at("formula").get<std::string>().empty());
    CHECK_FALSE(row.at("gradient").get<std::string>().empty());
  }
}

TEST_CASE("list: a norm is a block of labelled lines of at most 100 columns, one alone if asked" *
          doctest::test_suite("slow")) {
  std::string all, line;
  for (const Json& row : listed("norms")) {
    const std::string name = row.at("norm");
    CAPTURE(name);
    const ProcessResult one = run_keel({"list", "norms", name});
    CHECK(one.code == 0);
    CHECK(one.out.starts_with(name + "\n  formula     y = ") == (name != "weightnorm"));
    CHECK(holds(one.out, "\n  defaults    ") == (name != "none"));
    CHECK(holds(one.out, "\n  source      "));
    all += (all.empty() ? "" : "\n") + one.out;
    CHECK(json_of(run_keel({"list", "norms", name, "--json"})) == Json::array({row}));
  }
  CHECK(run_keel({"list", "norms"}).out == all);
  std::istringstream lines(all);
  while (std::getline(lines, line)) CHECK(line.size() <= 100);
  check_refusal(run_keel({"list", "norms", "lernorm"}), 2, "nearest: 'layernorm'");
  check_refusal(run_keel({"list", "ops", "add"}), 2, "list ops: expected no name, got 'add'");
}

TEST_CASE("list: where a norm differs from PyTorch and from its authors' program is said") {
  std::map<std::string, std::string> differs;
  for (const Json& row : listed("norms")) differs[row.at("norm")] = row.at("differs");
  const std::pair<const char*, const char*> facts[] = {
      {"layernorm", "as PyTorch's LayerNorm"},
      {"layernorm_simple", "unbiased=true, eps_outside=true"},
      {"rmsnorm", "eps=1.1920929e-07"},
      {"groupnorm", "no default for its groups"},
      {"instancenorm", "(n, features, steps)"},
      {"batchnorm", "momentum = 1 - keep"},
      {"batchnorm", "unbiased running variance (running_unbiased=true)"},
      {"powernorm", "nu = (1 - alpha_b) ema_gz"},
      {"weightnorm", "PyTorch's weight_norm"}};
  for (const auto& [norm, fact] : facts) {
    CAPTURE(std::string(norm));
    CHECK(holds(differs.at(norm), fact));
  }
  CHECK(holds(run_keel({"list", "norms", "batchnorm"}).out, "\n  differs     PyTorch's BatchNorm"));
}

TEST_CASE("list: every key of a model with its meaning, default and values") {
  const Json all = json_of(run_keel({"list", "keys", "--json"}));
  for (const auto& entry : models::all_models()) {
    CAPTURE(entry.name);
    const Json keys = json_of(run_keel({"list", "keys", entry.name, "--json"}));
    std::vector<std::string> names, expected;
    const train::Config config(entry.make());
    const std::vector<OptionFact> facts = config.facts();
    for (const Json& row : keys) {
      const std::string name = row.at("key");
      CAPTURE(name);
      names.push_back(name);
      const auto fact = std::ranges::find(facts, name, &OptionFact::name);
      REQUIRE(fact != facts.end());
      CHECK(row.at("default") == fact->value);
      CHECK(row.at("values") == fact->range);
      CHECK(row.at("meaning") == fact->about);
      CHECK(row.at("model") == (name.starts_with("model.") ? entry.name : ""));
      CHECK(std::ranges::find(all, row) != all.end());
    }
    // As its resolved recipe has them, which every run's config.toml is.
    for (const auto& [key, value] : train::read_settings(config.to_toml(), "recipe")) {
      if (!key.starts_with("run.")) expected.push_back(key);
    }
    std::ranges::sort(names);
    std::ranges::sort(expected);
    CHECK(names == expected);
  }
  const std::string text = run_keel({"list", "keys", "mnist_mlp"}).out;
  CHECK(holds(text, "  train.batch = 128\n    meaning   rows of a micro-batch"));
  CHECK(holds(text, "values    integer, 1 to 2147483647\n"));
  CHECK(holds(text, "  model.hidden = 1000\n"));
  CHECK_FALSE(holds(text, "model.beam"));
  CHECK(holds(run_keel({"list", "keys", "skip_thoughts"}).out, "\n  model.vectors = ''\n"));
  check_refusal(run_keel({"list", "keys", "mnist_mpl"}), 2, "nearest: 'mnist_mlp'");
  check_refusal(run_keel({"list", "norms", "--markdown"}), 2, "--markdown applies only to keys");
}

TEST_CASE("list: backends say whether they are ready, and what they refuse" *
          doctest::test_suite("slow")) {
  const Json rows = listed("backends");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string missing = program_backends()[i].missing;
    const std::string state = rows[i].at("state");
    // A build with CUDA on a machine without a GPU.
    const bool has_no_gpu = state.starts_with("missing: backend cuda: no GPU can be used: ");
    if (!has_no_gpu) CHECK(state == (missing.empty() ? "ready" : "missing: " + missing));
    CHECK(rows[i].at("refuses").get<std::string>().empty() == (state != "ready"));
  }
}

TEST_CASE("list: recipes are told about by their first line") {
  for (const Json& row : listed("recipes")) {
    const std::string about = row.at("about");
    CHECK(about.size() > 10);
    CHECK_FALSE(about.starts_with("#"));
  }
}

}  // namespace
}  // namespace keel::cli
