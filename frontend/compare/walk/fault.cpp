#include "frontend/compare/walk/fault.h"

#include <algorithm>
#include <cmath>

#include "src/core/bf16.h"
#include "src/core/nearest.h"
#include "src/graph/attrs.h"

namespace keel::compare {
namespace {

void set(Tensor& t, std::int64_t i, double value) {
  const auto place = std::size_t(i);
  if (t.dtype() == DType::kF32) t.as<float>()[place] = float(value);
  if (t.dtype() == DType::kBF16) t.as<BF16>()[place] = BF16(value);
  if (t.dtype() == DType::kF64) t.as<double>()[place] = value;
  if (t.dtype() == DType::kI32) t.as<std::int32_t>()[place] = std::int32_t(std::lround(value));
  if (t.dtype() == DType::kU8) t.as<std::uint8_t>()[place] = std::uint8_t(std::lround(value));
}

template <class Change>
void change_all(Tensor& t, const Change& change) {
  for (std::int64_t i = 0; i < t.elements(); ++i) set(t, i, change(t.at(i)));
}

double root_mean_square(const Tensor& t) {
  double squares = 0;
  for (std::int64_t i = 0; i < t.elements(); ++i) squares += t.at(i) * t.at(i);
  return std::sqrt(squares / double(std::max<std::int64_t>(t.elements(), 1)));
}

void swap_extremes(Tensor& t) {
  std::int64_t least = 0, most = 0;
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    if (t.at(i) < t.at(least)) least = i;
    if (t.at(i) > t.at(most)) most = i;
  }
  const double low = t.at(least), high = t.at(most);
  set(t, least, high);
  set(t, most, low);
}

// The last eighth.
void drop_tail(Tensor& t, const Tensor& former) {
  const std::int64_t first = std::min(t.elements() - 1, t.elements() * 7 / 8);
  for (std::int64_t i = std::max<std::int64_t>(first, 0); i < t.elements(); ++i) {
    set(t, i, former.at(i));
  }
}

void spoil(const Fault& fault, Tensor& output, const Tensor& former) {
  switch (fault.kind) {
    case FaultKind::kSign:
      return change_all(output, [](double v) { return -v; });
    case FaultKind::kScale:
      return change_all(output, [&](double v) { return v * (fault.by == 0 ? 1.1 : fault.by); });
    case FaultKind::kSwap:
      return swap_extremes(output);
    case FaultKind::kStale:
      output = former.to(output.dtype());
      return;
    case FaultKind::kDrop:
      return drop_tail(output, former);
    case FaultKind::kOffset: {
      const double offset = (fault.by == 0 ? 0.1 : fault.by) * root_mean_square(output);
      return change_all(output, [&](double v) { return v + offset; });
    }
  }
}

const std::vector<std::string> kItems{"node", "kind", "backend", "port", "by", "step"};

void set_item(Fault& fault, std::string_view name, std::string_view value) {
  const auto number = [&](double least) {
    double result = 0;
    attr_parse(value, result);
    check(result >= least, ErrorKind::kUsage, "--inject: {}: expected at least {}, got '{}'", name,
          least, value);
    return result;
  };
  if (name == "node") {
    fault.node = value;
  } else if (name == "backend") {
    fault.backend = value;
  } else if (name == "kind") {
    attr_parse(value, fault.kind);
  } else if (name == "port") {
    fault.port = int(number(0));
  } else if (name == "step") {
    fault.step = int(number(0));
  } else if (name == "by") {
    fault.by = number(-1e300);
  } else {
    fail(ErrorKind::kUsage, "--inject: {}", unknown_name(name, kItems));
  }
}

}  // namespace

Fault Fault::parse(std::string_view text) {
  Fault fault;
  bool has_kind = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    check(equals != item.npos, ErrorKind::kUsage, "--inject: expected NAME=VALUE, got '{}'", item);
    set_item(fault, item.substr(0, equals), item.substr(equals + 1));
    has_kind = has_kind || item.starts_with("kind=");
  }
  check(!fault.node.empty() && has_kind, ErrorKind::kUsage,
        "--inject: expected node=PATH,kind=KIND, got '{}'", text);
  return fault;
}

std::string Fault::text() const {
  std::string text = fmt::format("node={},kind={}", node, choice_text(kind));
  if (!backend.empty()) text += ",backend=" + backend;
  if (port != 0) text += fmt::format(",port={}", port);
  if (by != 0) text += fmt::format(",by={}", by);
  if (step >= 0) text += fmt::format(",step={}", step);
  return text;
}

void plant(const Fault& fault, Tensor& output, const Tensor& former) {
  const Tensor before = output.clone();
  if (output.elements() > 0) spoil(fault, output, former);
  bool changes = false;
  for (std::int64_t i = 0; i < output.elements(); ++i) changes |= before.at(i) != output.at(i);
  check(changes, ErrorKind::kUsage, "--inject: {} of {} changes nothing there",
        choice_text(fault.kind), fault.node);
}

}  // namespace keel::compare
