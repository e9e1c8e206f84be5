#include "frontend/nn/norm.h"

#include <algorithm>

#include "frontend/nn/norm_layer.h"
#include "frontend/nn/norm_table.h"
#include "src/core/registry.h"

namespace keel::nn {
namespace {

using Items = std::vector<std::string_view>;

// The items of "a=1,b=2", which stand between its commas; an empty text has none.
Items items_of(std::string_view text, char separator = ',') {
  Items items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    items.push_back(text.substr(0, end));
    if (end + 1 == text.size()) items.push_back("");  // after the last separator
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

// Reads the "key=value" of one source as pairs. Each key may be there once.
OptionText read_items(std::string_view norm, const Items& items) {
  OptionText options;
  for (const std::string_view item : items) {
    const std::size_t equals = item.find('=');
    const bool is_pair =
        equals != item.npos && equals > 0 && item.find_first_of("{},") == item.npos;
    check(is_pair, ErrorKind::kUsage, "norm {}: expected key=value, got '{}'", norm, item);
    const std::string key(item.substr(0, equals)), value(item.substr(equals + 1));
    const auto before = std::ranges::find(options, key, &OptionText::value_type::first);
    check(before == options.end(), ErrorKind::kUsage,
          "norm {}: option {}: expected one value, got '{}' and '{}'", norm, key,
          before == options.end() ? "" : before->second, value);
    options.emplace_back(key, value);
  }
  return options;
}

std::vector<NormRow>& table() {
  static std::vector<NormRow> rows = [] {
    std::vector<NormRow> all;
    for (const auto family : {row_norms(), curve_norms(), group_norms(), column_norms(),
                              quadratic_norms(), weight_norms()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rows;
}

std::vector<NormFacts>& all_facts() {
  static std::vector<NormFacts> facts = [] {
    std::vector<NormFacts> list;
    for (const NormRow& row : table()) list.push_back(row.facts);
    return list;
  }();
  return facts;
}

// The text between the braces of "name{...}"; empty without braces.
std::string_view braced(std::string_view text) {
  const std::size_t brace = text.find('{');
  if (brace == std::string_view::npos) return {};
  check(text.back() == '}', ErrorKind::kUsage, "norm '{}': expected a closing brace", text);
  return text.substr(brace + 1, text.size() - brace - 2);
}

}  // namespace

Norm::Norm(std::string name, std::string options, Apply apply, const Traits& traits)
    : name_(std::move(name)),
      options_(std::move(options)),
      apply_(std::move(apply)),
      traits_(traits) {}

Norm Norm::parse(std::string_view text, std::string_view defaults,
                 std::span<const std::string> more) {
  const std::string name(text.substr(0, text.find('{')));
  std::vector<std::string> names;
  for (const NormRow& row : table()) {
    names.push_back(row.facts.name);
    if (row.facts.name != name) continue;
    NormRequest request{
        name, read_items(name, items_of(row.fixed)), read_items(name, items_of(row.defaults)), {}};
    for (const Items& source :
         {items_of(defaults), items_of(braced(text)), Items(more.begin(), more.end())}) {
      std::ranges::move(read_items(name, source), std::back_inserter(request.given));
    }
    return row.make(request);
  }
  fail(ErrorKind::kUsage, "norm: {}", unknown_name(name, names));
}

std::string Norm::option(std::string_view name) const {
  const std::string key = fmt::format("{}=", name);
  for (const std::string_view item : items_of(options_, ' ')) {
    if (item.starts_with(key)) return std::string(item.substr(key.size()));
  }
  return "";
}

Value Norm::operator()(Net& net, const std::string& name, Value x, Value mask) const {
  return NormLayer(net, name, *this)(x, {.mask = mask});
}

WeightParametrization Norm::parametrized(Net& net, const std::string& name, Value v,
                                         int unit_axis) const {
  const auto scope = net.graph.scope(name);
  return parametrize_weight(net, v, unit_axis, weight_form());
}

Value Norm::alone(Net& net, const std::string& name, Value x, Value mask) const {
  return weight_form().normalize ? parametrized(net, name, x, 0).weight
                                 : (*this)(net, name, x, mask);
}

std::string NormFacts::any_width(std::string_view more) const {
  const char* comma = every_width.empty() || more.empty() ? "" : ",";
  const std::string options = fmt::format("{}{}{}", every_width, comma, more);
  return options.empty() ? name : fmt::format("{}{{{}}}", name, options);
}

std::span<const NormFacts> norm_facts() { return all_facts(); }

int norm_style(std::string_view name) {
  const auto row = std::ranges::find(
      table(), name, [](const NormRow& r) -> std::string_view { return r.facts.name; });
  return row == table().end() ? -1 : row->style;
}

int norm_styles() { return std::ranges::max(table(), {}, &NormRow::style).style + 1; }

void add_norm(NormRow row) {
  expect_not_frozen("norm", row.facts.name);
  const bool is_taken = std::ranges::count(all_facts(), row.facts.name, &NormFacts::name) > 0;
  check(!row.facts.name.empty() && !is_taken, ErrorKind::kUsage,
        "norm: expected a new name, got '{}'", row.facts.name);
  all_facts().push_back(row.facts);
  table().push_back(std::move(row));
}

}  // namespace keel::nn
