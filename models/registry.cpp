#include "models/registry.h"

#include <algorithm>

#include "src/core/registry.h"
#include "task_includes.inc"

namespace keel::models {
namespace {

template <class M>
std::unique_ptr<task::Task> make() {
  return std::make_unique<M>();
}

// Each recipe is models/<model>/<recipe>.toml, put into the program when it is built.
std::vector<Recipe> recipes_of(std::string_view model) {
  static const struct {
    const char *model, *name, *toml;
  } kRecipes[] = {
#include "recipes.inc"
  };
  std::vector<Recipe> result;
  for (const auto& recipe : kRecipes) {
    if (recipe.model == model) result.push_back({recipe.name, recipe.toml});
  }
  return result;
}

std::vector<ModelEntry>& entries() {
  static std::vector<ModelEntry> list{
#define X(folder, Class) {#folder, make<Class>, recipes_of(#folder)},
#include "task_list.inc"
#undef X
  };
  return list;
}

}  // namespace

std::span<const ModelEntry> all_models() { return entries(); }

void add_model(ModelEntry entry) {
  expect_not_frozen("model", entry.name);
  const bool is_taken = std::ranges::count(entries(), entry.name, &ModelEntry::name) > 0;
  check(!entry.name.empty() && !is_taken, ErrorKind::kUsage, "task: expected a new name, got '{}'",
        entry.name);
  check(!entry.recipes.empty(), ErrorKind::kUsage, "task {}: expected a recipe, got none",
        entry.name);
  entries().push_back(std::move(entry));
}

const ModelEntry& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelEntry& entry : all_models()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail(ErrorKind::kUsage, "task: {}", unknown_name(name, names));
}

const std::string& find_recipe(const ModelEntry& entry, std::string_view name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : entry.recipes) {
    if (recipe.name == (name == "made_up" ? "synthetic" : name)) return recipe.toml;  // former name
    names.push_back(recipe.name);
  }
  fail(ErrorKind::kUsage, "recipe of {}: {}", entry.name, unknown_name(name, names));
}

}  // namespace keel::models
