#include "frontend/nn/norm.h"

#include "frontend/nn/norm_table.h"

namespace keel::nn {
namespace {

// "a=1,b=2" as pairs.
OptionText split_options(std::string_view text, std::string_view norm) {
  OptionText options;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    check(equals != std::string_view::npos && equals > 0, ErrorKind::kUsage,
          "norm {}: expected key=value, got '{}'", norm, item);
    options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return options;
}

const std::vector<NormRow>& table() {
  static const std::vector<NormRow> rows = [] {
    std::vector<NormRow> all;
    for (const auto family :
         {row_norms(), group_norms(), column_norms(), quadratic_norms(), weight_norms()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rows;
}

// What stands between the braces of "name{...}", or nothing.
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

Norm Norm::parse(std::string_view text, std::string_view defaults) {
  const std::string name(text.substr(0, text.find('{')));
  std::vector<std::string> names;
  for (const NormRow& row : table()) {
    names.push_back(row.facts.name);
    if (row.facts.name != name) continue;
    OptionText options;
    for (std::string_view source : {std::string_view(row.preset), defaults, braced(text)}) {
      for (auto& option : split_options(source, name)) options.push_back(std::move(option));
    }
    return row.make(name, options);
  }
  fail(ErrorKind::kUsage, "norm: {}", unknown_name(name, names));
}

Value Norm::operator()(Net& net, const std::string& name, Value x, Value mask) const {
  check(weight_form().is_plain(), ErrorKind::kUsage,
        "[{}] it acts on a layer's weight: expected a layer before {}{}", name_, net.graph.prefix(),
        name);
  return of_output(net, name, x, mask);
}

FormedWeight Norm::of_weight(Net& net, const std::string& name, Value v, int unit_axis) const {
  const auto scope = net.graph.scope(name);
  return form_weight(net, v, unit_axis, weight_form());
}

Value Norm::of_output(Net& net, const std::string& name, Value x, Value mask) const {
  const auto scope = net.graph.scope(name);
  return apply_(net, x, mask);
}

Value Norm::alone(Net& net, const std::string& name, Value x, Value mask) const {
  return weight_form().normalize ? of_weight(net, name, x, 0).weight : (*this)(net, name, x, mask);
}

std::span<const NormFacts> norm_facts() {
  static const std::vector<NormFacts> facts = [] {
    std::vector<NormFacts> list;
    for (const NormRow& row : table()) list.push_back(row.facts);
    return list;
  }();
  return facts;
}

}  // namespace keel::nn
