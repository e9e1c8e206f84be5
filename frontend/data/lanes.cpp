#include "frontend/data/lanes.h"

#include <algorithm>
#include <numeric>

#include "src/core/error.h"

namespace keel::data {

LaneCut::LaneCut(std::int64_t tokens, const LaneOptions& options) : options_(options) {
  const auto expect = [](std::string_view name, std::int64_t value) {
    check(value >= 1, ErrorKind::kUsage, "[lanes] {}: expected 1 or more, got {}", name, value);
  };
  expect("lanes", options.lanes);
  expect("length", options.length);
  check(options.together == 0 || options.lanes == 1, ErrorKind::kInternal,
        "[lanes] together: expected one lane, got {}", options.lanes);
  const std::int64_t least = options.lanes * (drops() ? options.length : 1) + 1;
  check(tokens >= least, ErrorKind::kUsage,
        "[lanes] expected a text of at least {} tokens for {} lanes, got {}", least, options.lanes,
        tokens);
  size_ = (tokens - 1) / options.lanes;
  more_ = (tokens - 1) % options.lanes;
  const std::int64_t longest = lane_size(0);
  segments_ = longest / options.length;
  if (longest % options.length != 0 && !drops()) ++segments_;
}

LaneCut::Piece LaneCut::piece(std::int64_t row) const {
  const std::int64_t lane = row / segments_, begin = row % segments_ * options_.length;
  const std::int64_t earlier = options_.equal ? 0 : std::min(lane, more_);
  return {lane * size_ + earlier + begin,
          std::clamp<std::int64_t>(lane_size(lane) - begin, 0, options_.length)};
}

std::int64_t LaneCut::length(std::int64_t segment) const {
  return std::min(options_.length, lane_size(0) - segment * options_.length);
}

std::int64_t LaneCut::dropped() const {
  return drops() ? options_.lanes * (size_ % options_.length) : 0;
}

std::vector<Sizes> LanePlan::shapes() const {
  std::vector<Sizes> shapes{{cut_.lanes(), cut_.length(0)}};
  const std::int64_t last = cut_.length(cut_.segments() - 1);
  if (last != cut_.length(0)) shapes.push_back({cut_.lanes(), last});
  return shapes;
}

void LanePlan::plan(std::uint32_t, Epoch& planned) const {
  planned.order.clear();
  planned.cuts.clear();
  for (std::int64_t segment = 0; segment < cut_.segments(); ++segment) {
    planned.cuts.push_back({planned.order.size(), std::size_t(cut_.lanes())});
    for (std::int64_t lane = 0; lane < cut_.lanes(); ++lane) {
      planned.order.push_back(lane * cut_.segments() + segment);
    }
  }
}

Sizes LanePlan::lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) {
    longest = std::max(longest, cut_.length(row % cut_.segments()));
  }
  return {longest};
}

std::int64_t SegmentPlan::whole_segments() const {
  const bool is_last_short = cut_.length(cut_.segments() - 1) != cut_.length(0);
  return cut_.segments() - (is_last_short ? 1 : 0);
}

std::vector<Sizes> SegmentPlan::shapes() const {
  const std::int64_t whole = whole_segments(), more = whole % cut_.together();
  std::vector<Sizes> shapes;
  if (whole >= cut_.together()) shapes.push_back({cut_.together(), cut_.length(0)});
  if (more > 0) shapes.push_back({more, cut_.length(0)});
  if (whole < cut_.segments()) shapes.push_back({1, cut_.length(whole)});
  return shapes;
}

void SegmentPlan::plan(std::uint32_t, Epoch& planned) const {
  planned.order.resize(std::size_t(cut_.segments()));
  std::iota(planned.order.begin(), planned.order.end(), 0);
  planned.cuts.clear();
  const std::int64_t whole = whole_segments();
  for (std::int64_t first = 0; first < whole; first += cut_.together()) {
    planned.cuts.push_back(
        {std::size_t(first), std::size_t(std::min(cut_.together(), whole - first))});
  }
  if (whole < cut_.segments()) planned.cuts.push_back({std::size_t(whole), 1});
}

Sizes SegmentPlan::lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) longest = std::max(longest, cut_.length(row));
  return {longest};
}

}  // namespace keel::data
