#include "bench/norm_cases.h"

#include <algorithm>
#include <array>

#include "frontend/compare/cases/op_case.h"

namespace keel::bench {
namespace {

constexpr std::array<std::string_view, 6> kLayouts{"rows",      "columns",   "images",
                                                   "instances", "sequences", "thumbnails"};

std::int64_t least_divisor(std::int64_t n) {
  for (std::int64_t a = 2; a * a <= n; ++a) {
    if (n % a == 0) return a;
  }
  return std::max<std::int64_t>(n, 1);
}

std::int64_t greatest_divisor(std::int64_t n, std::int64_t most) {
  std::int64_t a = std::min(n, most);
  while (n % a != 0) --a;
  return a;
}

// How many elements of a group of images lie together.
std::int64_t span_length(const NormCase& c) {
  return c.layout == NormLayout::kThumbnails ? greatest_divisor(c.n, 64) : c.n / least_divisor(c.n);
}

// Element e of a stream of standard normal numbers; sampled once and used again after 2^18.
double normal(std::uint32_t stream, std::size_t e) {
  static const Tensor pool = compare::random_normal(Shape{(1 << 18) - 5}, 7);
  return pool.as<double>()[(e + 7919 * stream) % pool.as<double>().size()];
}

// Each number is rounded to float.
Tensor float_normal(const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  Tensor result(DType::kF64, shape);
  std::size_t e = 0;
  for (double& v : result.as<double>()) v = double(float(mean + deviation * normal(stream, e++)));
  return result;
}

// All of eps, gain and bias that a moment of a size is combined with.
void add_options(NormCase c, int every, int& number, std::vector<NormCase>& cases) {
  constexpr double kEps[] = {1e-5, 1e-1, 1e-12};
  const int moment = number / 12;  // moves the choice on from one moment to the next
  for (int i = 0; i < 12; ++i) {
    if ((number++ + moment) % every != 0) continue;
    c.eps = kEps[i % 3];
    c.gain = i / 3 % 2 == 0;
    c.bias = i / 6 == 0;
    cases.push_back(c);
  }
}

}  // namespace

std::string NormCase::text() const {
  std::string text = fmt::format("{} {}", kLayouts[std::size_t(layout)], fields_text(*this));
  std::ranges::replace(text, ' ', ',');
  return text;
}

NormCase NormCase::parse(std::string_view text) {
  NormCase c;
  const std::string_view name = text.substr(0, text.find(','));
  const auto found = std::ranges::find(kLayouts, name);
  check(found != kLayouts.end(), ErrorKind::kUsage, "case: expected {} first, got '{}'",
        fmt::join(kLayouts, ", "), name);
  c.layout = NormLayout(found - kLayouts.begin());
  while (text.find(',') != text.npos) {
    text.remove_prefix(text.find(',') + 1);
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view value = item.substr(std::min(equals + 1, item.size()));
    check(set_field(c, item.substr(0, equals), value), ErrorKind::kUsage,
          "case: expected some of {}, got '{}'", fields_text(c), item);
  }
  check(c.groups >= 1 && c.n >= 1 && c.split >= 1 && c.groups % c.split == 0, ErrorKind::kUsage,
        "case: expected groups and n of at least 1, split a divisor of groups, got '{}'", c.text());
  return c;
}

std::int64_t NormCase::at(std::int64_t k, std::int64_t e) const {
  if (layout == NormLayout::kColumns) return e * groups + k;
  if (layout == NormLayout::kSequences) {
    const std::int64_t channels = groups / least_divisor(groups);
    return (k / channels * n + e) * channels + k % channels;
  }
  if (layout != NormLayout::kImages && layout != NormLayout::kThumbnails) return k * n + e;
  const std::int64_t inner = span_length(*this);
  return (e / inner * groups + k) * inner + e % inner;
}

Shape NormCase::shape() const {
  switch (layout) {
    case NormLayout::kRows:
      return {groups / split, split * n};
    case NormLayout::kColumns:
      return {n, groups};
    case NormLayout::kImages:
    case NormLayout::kThumbnails:
      return {n / span_length(*this), groups, 1, span_length(*this)};
    case NormLayout::kInstances:
      return {groups / split, split, 1, n};
    case NormLayout::kSequences:
      return {least_divisor(groups), n, groups / least_divisor(groups)};
  }
  return {};
}

Shape NormCase::parameter_shape() const {
  if (layout == NormLayout::kRows) return {split * n};
  if (layout == NormLayout::kSequences) return {groups / least_divisor(groups)};
  return {layout == NormLayout::kInstances ? split : groups};
}

std::int64_t NormCase::parameter(std::int64_t k, std::int64_t e) const {
  if (layout == NormLayout::kRows) return k % split * n + e;
  if (layout == NormLayout::kSequences) return k % (groups / least_divisor(groups));
  return layout == NormLayout::kInstances ? k % split : k;
}

NormData make_data(const NormCase& c) {
  NormData data{float_normal(c.shape(), 1, c.mean, c.deviation),
                float_normal(c.shape(), 2, 0, 1),
                {},
                {},
                {},
                c.eps};
  if (c.gain) data.gain = float_normal(c.parameter_shape(), 3, 1, 0.2);
  if (c.bias) data.bias = float_normal(c.parameter_shape(), 4, 0, 0.2);
  for (int i = 0; i < c.states; ++i) {
    data.state.push_back(float_normal(c.parameter_shape(), 5, i == 0 ? 0 : 1, 0));
  }
  return data;
}

void set_group(NormData& data, const NormCase& c, std::int64_t k,
               const std::function<double(std::int64_t)>& value) {
  for (std::int64_t e = 0; e < c.n; ++e) {
    data.x.as<double>()[std::size_t(c.at(k, e))] = double(float(value(e)));
  }
}

std::vector<NormCase> generated_cases(NormLayout layout, int every) {
  constexpr std::int64_t kSizes[] = {1,    2,    3,    4,    7,    8,     15,    16,   17,  31,
                                     32,   33,   63,   64,   65,   127,   255,   256,  257, 769,
                                     1000, 1025, 4095, 4096, 4097, 16383, 16384, 16385};
  constexpr double kRatios[] = {0, 1, 1e3, 1e6}, kDeviations[] = {1, 1e-3, 1e3};
  std::vector<std::pair<double, double>> moments{{-3e4, 0.5}, {0, 1e-4}};
  for (double ratio : kRatios) {
    for (double deviation : kDeviations) moments.emplace_back(ratio * deviation, deviation);
  }
  std::vector<NormCase> cases;
  int number = 0;
  for (std::int64_t n : kSizes) {
    for (const auto& [mean, deviation] : moments) {
      const NormCase c{layout, every == 1 ? 7 : 3, n, mean, deviation};
      add_options(c, n < 4000 ? every : 4 * every, number, cases);
    }
  }
  number = 0;
  for (std::int64_t groups : {0, 1, 2, 7, 8, 15, 16, 17, 65, 257, 1000, 16385, 65535, 65536}) {
    for (std::int64_t n : {1, 3, 8}) {
      if (number++ % ((every + 10) / 11) == 0) cases.push_back({layout, groups, n, 1, 2});
    }
  }
  return cases;
}

std::vector<NormCase> large_cases(NormLayout layout) {
  std::vector<NormCase> cases{{layout, 700, 257},    {layout, 65, 4099, 100, 0.01},
                              {layout, 300, 1000},   {layout, 130, 1030, 1e6, 1},
                              {layout, 3, 65536, 3}, {layout, 5, 20000, 1e6, 1},
                              {layout, 1100, 400}};
  if (layout == NormLayout::kRows) cases.push_back({layout, 20000, 40});
  return cases;
}

std::vector<NormCase> hashed_cases(NormLayout layout) {
  std::vector<NormCase> cases;
  for (const std::int64_t n : {1, 2, 7, 16, 31, 40, 64, 100, 257, 400, 513, 1000, 2049, 4099}) {
    cases.push_back({layout, 7, n});
    cases.push_back({layout, 65, n, 1e3, 2});
  }
  cases.push_back({layout, 300, 700, 0, 1e-4, 1e-12});
  cases.push_back({layout, 3, 20000, 1e6, 1});
  cases.push_back({layout, 5, 900, 0, 1e25});  // squares that no float32 holds
  return cases;
}

}  // namespace keel::bench
