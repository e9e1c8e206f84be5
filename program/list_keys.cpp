// keel list keys
#include <nlohmann/json.hpp>

#include "frontend/train/config.h"
#include "models/registry.h"
#include "program/common.h"

namespace keel::cli {
namespace {

// The keys of a recipe with the values that they have when it does not set them.
struct Section {
  std::string title;  // "Training and data", or a model's name
  std::vector<OptionFact> facts;
};

// "model.", or everything else, of a model's keys.
std::vector<OptionFact> facts_of(const models::ModelEntry& entry, bool of_model) {
  std::vector<OptionFact> facts;
  for (OptionFact& fact : train::Config(entry.make()).facts()) {
    if (fact.name.starts_with("model.") == of_model) facts.push_back(std::move(fact));
  }
  return facts;
}

std::vector<Section> sections(const std::string& model) {
  const bool is_one = !model.empty();
  const models::ModelEntry& first = is_one ? models::find_model(model) : models::all_models()[0];
  std::vector<Section> result{{"training and data", facts_of(first, false)}};
  for (const models::ModelEntry& entry : models::all_models()) {
    if (!is_one || entry.name == first.name) {
      result.push_back({entry.name, facts_of(entry, true)});
    }
  }
  return result;
}

std::string text_of(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", section.title);
    for (const OptionFact& fact : section.facts) {
      text += fmt::format("  {} = {}\n", fact.name, fact.value.empty() ? "''" : fact.value);
      text += labelled("  meaning", fact.about) + labelled("  values", fact.range);
    }
  }
  return text;
}

nlohmann::ordered_json json_of(const std::vector<Section>& sections) {
  auto list = nlohmann::ordered_json::array();
  for (const Section& section : sections) {
    for (const OptionFact& fact : section.facts) {
      const bool of_model = fact.name.starts_with("model.");
      list.push_back({{"key", fact.name},
                      {"model", of_model ? section.title : ""},
                      {"default", fact.value},
                      {"values", fact.range},
                      {"meaning", fact.about}});
    }
  }
  return list;
}

std::string markdown_of(const std::vector<Section>& sections) {
  std::string text =
      "# Every key of a recipe\n\n"
      "The keys that `--set KEY=VALUE` and the file of a recipe may set, with their defaults.\n"
      "`keel list keys TASK` prints those of one task. A norm is written `NAME` or\n"
      "`NAME{KEY=VALUE,...}` ([norms](norms.md)). `keel list keys --markdown > docs/keys.md` "
      "writes\n"
      "this page.\n";
  for (const Section& section : sections) {
    text += fmt::format("\n## {}\n\n| key | default | values | meaning |\n|---|---|---|---|\n",
                        section.title);
    for (const OptionFact& fact : section.facts) {
      const std::string value = fact.value.empty() ? "" : fmt::format("`{}`", fact.value);
      text += fmt::format("| `{}` | {} | {} | {} |\n", fact.name, value, fact.range, fact.about);
    }
  }
  return text;
}

}  // namespace

int run_list_keys(const ListArgs& args) {
  const std::vector<Section> all = sections(args.name);
  if (args.json) {
    print_json(json_of(all));
  } else {
    print(args.markdown ? markdown_of(all) : text_of(all));
  }
  return 0;
}

}  // namespace keel::cli
