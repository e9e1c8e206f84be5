#include "models/char_lm/memory.h"

#include "frontend/nn/carry.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"

namespace keel::models {

// Fewer positions than the memory has room for are filled in the first segments of a lane.
SegmentMemory::SegmentMemory(const nn::Net& net, Value begins, std::int64_t length,
                             std::int64_t size)
    : net_(net), begins_(begins), lanes_(net.graph.shape(begins)[0]), length_(length), size_(size) {
  if (size == 0) return;
  Graph& g = net.graph;
  const nn::Carry filled(net, "filled", {lanes_}, begins);
  filled_ = filled.value();
  const Value more = ops::scale(g, filled_, 1, double(length));
  filled.leave(ops::minimum(g, more, g.constant(double(size), net.dtype)));
}

Value SegmentMemory::remembered(const std::string& name, Value x) const {
  if (size_ == 0) return x;
  Graph& g = net_.graph;
  const nn::Carry carry(net_, name, {lanes_, size_, g.shape(x).back()}, begins_);
  const Value all = ops::concat(g, {carry.value(), x}, 1);
  carry.leave(ops::slice_axis(g, all, 1, length_, size_));
  return all;
}

Value SegmentMemory::seen() const {
  if (size_ == 0) return {};
  Graph& g = net_.graph;
  // The memory fills from its end: place j is filled if filled + j >= size.
  Tensor places(DType::kF64, {1, size_ + length_});
  const auto values = places.as<double>();
  for (std::int64_t j = 0; j < std::ssize(values); ++j) values[std::size_t(j)] = double(j - size_);
  const Value filled = ops::reshape(g, filled_, {lanes_, 1});
  const Value sums = ops::add(g, filled, g.constant(places.to(net_.dtype)));
  return ops::less(g, g.constant(-0.5, net_.dtype), sums);
}

}  // namespace keel::models
