#include "program/search_grid.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "program/common.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

constexpr std::size_t kMostPoints = 1000;
constexpr std::string_view kNormKey = "model.norm", kNormOption = "norm.";

bool is_norm_option(const std::string& key) { return key.starts_with(kNormOption); }

// Splits at the commas that stand outside of braces and brackets.
std::vector<std::string> listed_values(const std::string& text, const std::string& key) {
  std::vector<std::string> values(1);
  std::string open;  // the brackets that wait for their ends
  for (const char c : text) {
    if (c == ',' && open.empty()) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
    if (c == '{') open += '}';
    if (c == '[') open += ']';
    if (c != '}' && c != ']') continue;
    check(open.ends_with(c), ErrorKind::kUsage, "--search {}: '{}' closes nothing in '{}'", key, c,
          text);
    open.pop_back();
  }
  check(open.empty(), ErrorKind::kUsage, "--search {}: expected a closing '{}' in '{}'", key,
        open.empty() ? ' ' : open.back(), text);
  return values;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number ? std::optional(value) : std::nullopt;
}

// Whether two values are the same text or the same number.
bool is_same_value(const std::string& a, const std::string& b) {
  const std::optional<double> first = number_in(a);
  return a == b || (first && first == number_in(b));
}

void expect_distinct(const SearchKey& search) {
  for (std::size_t i = 0; i < search.values.size(); ++i) {
    const std::string& value = search.values[i];
    check(!value.empty(), ErrorKind::kUsage, "--search {}: expected a value, got '' as value {}",
          search.key, i + 1);
    for (std::size_t j = 0; j < i; ++j) {
      check(!is_same_value(search.values[j], value), ErrorKind::kUsage,
            "--search {}: expected each value once, got {} and {}", search.key, search.values[j],
            value);
    }
  }
}

SearchKey read_search(const std::string& text) {
  const std::size_t equals = text.find('=');
  const bool is_list = equals != std::string::npos && equals > 0;
  check(is_list, ErrorKind::kUsage, "--search: expected KEY=VALUE,VALUE,..., got '{}'", text);
  const std::string key = text.substr(0, equals);
  const SearchKey search{key, listed_values(text.substr(equals + 1), key)};
  expect_distinct(search);
  return search;
}

// Validation values are compared, which only settings that leave the validation rows as they are
// allow; and the best of several seeds is the luckiest one.
void expect_setting(const std::string& key) {
  check(key != "train.seed", ErrorKind::kUsage,
        "--search {}: expected a setting: the best of several seeds is chance; give --seed", key);
  check(key != "data.seed" && key != "data.source", ErrorKind::kUsage,
        "--search {}: expected a setting that leaves the validation rows as they are; give --set",
        key);
}

// The option of the same key, where it is given.
void expect_not_given(const RunArgs& run, const std::string& key) {
  const std::string option = "--search " + key;
  expect_one(option, "searched", key, run.sets);
  const auto expect_no = [&](const char* other, std::string_view its_key,
                             const std::string& value) {
    check(key != its_key || value.empty(), ErrorKind::kUsage, "{} and {}: expected one of them",
          option, other);
  };
  expect_no("--norm", kNormKey, run.norm);
  expect_no("--compute", "train.compute", run.compute);
}

// The text between the braces of a norm, by option.
std::vector<std::string> norm_items(const std::string& norm) {
  std::vector<std::string> items;
  const std::size_t brace = norm.find('{');
  if (brace == std::string::npos) return items;
  const std::size_t length = norm.size() - brace - (norm.ends_with('}') ? 2 : 1);
  const std::string inside = norm.substr(brace + 1, length);
  for (std::size_t at = 0; at < inside.size();) {
    const std::size_t end = std::min(inside.find(',', at), inside.size());
    items.push_back(inside.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

bool sets_option(const std::string& item, const std::string& name) {
  return item.starts_with(name + "=");
}

// The norm with an option set, in place of the value that it may have.
std::string norm_with(const std::string& norm, const std::string& name, const std::string& value) {
  std::vector<std::string> items = norm_items(norm);
  std::erase_if(items, [&](const std::string& item) { return sets_option(item, name); });
  items.push_back(name + "=" + value);
  return fmt::format("{}{{{}}}", norm.substr(0, norm.find('{')), fmt::join(items, ","));
}

// The norm that the user names, if it is one for all points.
std::string given_norm(const RunArgs& run) {
  std::string norm = run.norm;
  for (const std::string& set : run.sets) {
    const auto [key, value] = setting_of(set);
    if (key == kNormKey) norm = value;
  }
  return norm;
}

// An option of the norm is searched, or it stands in a norm that the user wrote.
void expect_option_once(const RunArgs& run, const std::vector<SearchKey>& keys) {
  std::vector<std::string> norms{given_norm(run)};
  for (const SearchKey& search : keys) {
    if (search.key == kNormKey)
      norms.insert(norms.end(), search.values.begin(), search.values.end());
  }
  for (const SearchKey& search : keys) {
    if (!is_norm_option(search.key)) continue;
    const std::string name = search.key.substr(kNormOption.size());
    for (const std::string& norm : norms) {
      const bool has = std::ranges::any_of(
          norm_items(norm), [&](const std::string& item) { return sets_option(item, name); });
      check(!has, ErrorKind::kUsage, "--search {}: expected it here or in the norm, got also {}",
            search.key, norm);
    }
  }
}

void expect_grid(const std::vector<SearchKey>& keys) {
  std::size_t points = 1;
  for (const SearchKey& search : keys) {
    points *= search.values.size();
    check(points <= kMostPoints, ErrorKind::kUsage,
          "--search: expected at most {} settings, got {} or more", kMostPoints, points);
  }
  check(points > 1, ErrorKind::kUsage,
        "--search {0}: expected several settings, got one; train it by --set {0}={1}",
        keys.front().key, keys.front().values.front());
}

// A value as a part of a file's name: what a path or a terminal would take otherwise is written as
// in addresses of pages.
std::string file_text(const std::string& value) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte > ' ' && byte < 127 && c != '/' && c != '%';
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

std::string point_name(const std::vector<SearchKey>& keys, const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < keys.size(); ++i) parts.push_back(keys[i].key + "=" + values[i]);
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string point_folder(const std::vector<SearchKey>& keys,
                         const std::vector<std::string>& values) {
  constexpr std::size_t kMostBytes = 200;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    parts.push_back(keys[i].key + "=" + file_text(values[i]));
  }
  std::string name = fmt::format("{}", fmt::join(parts, ","));
  check(name.size() <= kMostBytes, ErrorKind::kUsage,
        "expected a setting of at most {} bytes, for it names a folder, got {}", kMostBytes,
        name.size());
  return name;
}

// The norm of a recipe. A task without one has no option of that either.
std::string norm_of(const train::Config& config) {
  const std::vector<OptionFact> facts = config.facts();
  const auto found = std::ranges::find(facts, kNormKey, &OptionFact::name);
  return found == facts.end() ? "none" : found->value;
}

// Puts the values of a point into the arguments. An option of the norm comes after the norm itself.
RunArgs at_point(RunArgs run, const std::vector<SearchKey>& keys,
                 const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].key == kNormKey) run.norm = values[i];
    if (keys[i].key != kNormKey && !is_norm_option(keys[i].key)) {
      run.sets.push_back(keys[i].key + "=" + values[i]);
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!is_norm_option(keys[i].key)) continue;
    if (run.norm.empty()) run.norm = norm_of(draft_config(run));
    std::erase_if(run.sets, [](const std::string& set) { return set.starts_with("model.norm="); });
    run.norm = norm_with(run.norm, keys[i].key.substr(kNormOption.size()), values[i]);
  }
  return run;
}

GridPoint point_at(const RunArgs& run, const std::vector<SearchKey>& keys,
                   const std::vector<std::string>& values) {
  const std::string name = point_name(keys, values);
  try {
    RunArgs here = at_point(run, keys, values);
    train::Config config = make_config(here);
    return {values, name, point_folder(keys, values), std::move(here), std::move(config)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    fail(ErrorKind::kUsage, "--search {}: {}", name, error.what());
  }
}

// The next point in the grid's order; false after the last one.
bool advance(std::vector<std::size_t>& places, const std::vector<SearchKey>& keys) {
  for (std::size_t i = keys.size(); i-- > 0;) {
    if (++places[i] < keys[i].values.size()) return true;
    places[i] = 0;
  }
  return false;
}

}  // namespace

std::vector<SearchKey> read_searches(const TrainArgs& args) {
  std::vector<SearchKey> keys;
  for (const std::string& text : args.searches) {
    SearchKey search = read_search(text);
    const bool is_new = std::ranges::find(keys, search.key, &SearchKey::key) == keys.end();
    check(is_new, ErrorKind::kUsage, "--search {}: expected each key once, got it twice",
          search.key);
    expect_setting(search.key);
    expect_not_given(args.run, search.key);
    keys.push_back(std::move(search));
  }
  expect_option_once(args.run, keys);
  expect_grid(keys);
  return keys;
}

std::vector<GridPoint> grid_of(const RunArgs& run, const std::vector<SearchKey>& keys) {
  std::vector<GridPoint> points;
  std::map<std::string, std::string> names;  // of the points, by recipe
  std::vector<std::size_t> places(keys.size(), 0);
  do {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(keys[i].values[places[i]]);
    points.push_back(point_at(run, keys, values));
    const GridPoint& point = points.back();
    const auto [other, is_new] = names.emplace(point.config.to_toml(), point.name);
    check(is_new, ErrorKind::kUsage, "--search: {} and {} are the same recipe", other->second,
          point.name);
  } while (advance(places, keys));
  return points;
}

}  // namespace keel::cli
