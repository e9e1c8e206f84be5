#include "frontend/report/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace keel::report {
namespace {

const std::string kTrainSeed = "train.seed", kDataSeed = "data.seed", kNorm = "model.norm";

// An observer decides no result either.
Settings without_seeds(Settings settings) {
  settings.erase("train.observe");
  settings.erase(kTrainSeed);
  settings.erase(kDataSeed);
  return settings;
}

std::string value_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "-" : found->second;
}

const Settings& settings_of(const Group& group) { return group.runs[0]->settings; }

// The settings that groups differ in, the norm first: most comparisons are about it.
std::vector<std::string> differing_keys(const Section& section) {
  std::set<std::string> known;
  for (const Group& group : section.groups) {
    for (const auto& [key, value] : without_seeds(settings_of(group))) known.insert(key);
  }
  std::vector<std::string> keys;
  for (const std::string& key : known) {
    const std::string first = value_of(settings_of(section.groups[0]), key);
    const bool same = std::ranges::all_of(
        section.groups, [&](const Group& g) { return value_of(settings_of(g), key) == first; });
    if (!same) keys.insert(key == kNorm ? keys.begin() : keys.end(), key);
  }
  return keys;
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// "lr=0.01", or with its section where two settings end alike. A norm's name speaks for itself.
std::string part_of_label(const std::string& key, const std::string& value,
                          const std::vector<std::string>& keys) {
  if (key == kNorm) return value;
  const std::string end = last_part(key);
  const auto alike =
      std::ranges::count_if(keys, [&](const std::string& k) { return last_part(k) == end; });
  return fmt::format("{}={}", alike > 1 ? key : end, value);
}

void label_groups(Section& section) {
  section.differing = differing_keys(section);
  for (Group& group : section.groups) {
    std::vector<std::string> parts;
    for (const std::string& key : section.differing) {
      group.settings.push_back(value_of(settings_of(group), key));
      parts.push_back(part_of_label(key, group.settings.back(), section.differing));
    }
    group.label = parts.empty() ? section.model : fmt::format("{}", fmt::join(parts, ", "));
  }
}

// The element of which `is_it` holds; a new one, if there is none.
template <class T, class IsIt>
T& found_or_added(std::vector<T>& list, IsIt is_it) {
  const auto found = std::ranges::find_if(list, is_it);
  return found == list.end() ? list.emplace_back() : *found;
}

}  // namespace

std::vector<Section> sections_of(std::span<const Run> runs) {
  std::vector<Section> sections;
  for (const Run& run : runs) {
    Section& section =
        found_or_added(sections, [&](const Section& s) { return s.model == run.model; });
    section.model = run.model;
    const Settings settings = without_seeds(run.settings);
    Group& group = found_or_added(
        section.groups, [&](const Group& g) { return without_seeds(settings_of(g)) == settings; });
    group.runs.push_back(&run);
  }
  for (Section& section : sections) label_groups(section);
  return sections;
}

std::string seed_of(const Run& run) {
  const auto seed = run.settings.find(kTrainSeed);
  return seed == run.settings.end() ? "" : seed->second;
}

}  // namespace keel::report
