#include "program/suggestions.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "frontend/train/config.h"
#include "models/registry.h"
#include "program/common.h"

namespace keel::cli {
namespace {

// "bench step: ", before what is said of that subcommand; of the program itself nothing.
std::string place_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* at = &app; at->get_parent() != nullptr; at = at->get_parent()) {
    words = at->get_name() + (words.empty() ? ": " : " ") + words;
  }
  return words;
}

std::vector<std::string> subcommands_of(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The keys of --set that end in the option's name: those of all models, or of one that is named.
std::vector<std::string> keys_called(std::string name, const std::vector<std::string>& words) {
  std::ranges::replace(name, '-', '_');
  if (const std::string_view here = train::usual_name(name); !here.empty()) name = here;
  std::vector<std::string> found;
  for (const models::ModelEntry& entry : models::all_models()) {
    const bool is_meant = std::ranges::find(words, entry.name) != words.end();
    for (const OptionFact& fact : train::Config(entry.make()).facts()) {
      if (!is_meant && fact.name.starts_with("model.")) continue;
      const bool ends_so = fact.name.substr(fact.name.find('.') + 1) == name;
      if (ends_so && std::ranges::find(found, fact.name) == found.end()) found.push_back(fact.name);
    }
  }
  return found;
}

std::string unknown_option(CLI::App& app, const std::string& option,
                           const std::vector<std::string>& words) {
  const std::string where = fmt::format("{}no option is called '{}'", place_of(app), option);
  if (app.get_option_no_throw("--set") != nullptr) {
    const std::vector<std::string> keys = keys_called(option.substr(2), words);
    if (!keys.empty()) return fmt::format("{}; it is a key: --set {}=...", where, keys[0]);
  }
  return fmt::format("{}; nearest: '{}'", where, nearest(option, options_of(app)));
}

}  // namespace

std::string unknown_word(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  CLI::App* at = &app;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      if (at->get_option_no_throw(name) == nullptr) return unknown_option(*at, name, words);
      continue;
    }
    const std::vector<std::string> names = subcommands_of(*at);
    if (names.empty() || word.starts_with("-")) continue;
    if (std::ranges::find(names, word) == names.end()) {
      return fmt::format("{}no subcommand is called '{}'; nearest: '{}'", place_of(*at), word,
                         nearest(word, names));
    }
    at = at->get_subcommand(word);
  }
  return "";
}

}  // namespace keel::cli
