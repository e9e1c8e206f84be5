#include "backends/cuda/dependencies.h"

#include <algorithm>
#include <functional>
#include <map>

namespace keel::cuda {
namespace {

// The uses of the bytes of a range so far: who wrote them last, and who has read them since.
struct Use {
  const std::byte* end;
  int writer = -1;
  std::vector<int> readers = {};
};

// The uses of all memory, in ranges that do not overlap.
class Uses {
 public:
  // Adds the kernels that kernel i has to wait for because of this access to `after`.
  void take(int i, const Access& access, std::vector<int>& after) {
    if (access.bytes <= 0) return;
    const std::byte *at = access.begin, *const end = access.begin + access.bytes;
    cut(at);
    cut(end);
    auto use = uses_.lower_bound(at);
    while (use != uses_.end() && use->first < end) {
      if (use->second.writer >= 0) after.push_back(use->second.writer);
      if (access.is_written) {
        after.insert(after.end(), use->second.readers.begin(), use->second.readers.end());
        use = uses_.erase(use);
        continue;
      }
      fill(use->first, at, i);
      use->second.readers.push_back(i);
      at = use->second.end;
      ++use;
    }
    if (access.is_written) {
      uses_[access.begin] = {end, i};
    } else {
      fill(end, at, i);
    }
  }

 private:
  // Makes a range begin at an address that lies within one.
  void cut(const std::byte* at) {
    const auto next = uses_.lower_bound(at);
    if (next == uses_.begin()) return;
    const auto own = std::prev(next);
    if (own->second.end <= at) return;
    Use rest = own->second;
    own->second.end = at;
    uses_.emplace(at, std::move(rest));
  }
  // Kernel i reads [at, end), which nobody has used.
  void fill(const std::byte* end, const std::byte* at, int i) {
    if (at < end) uses_[at] = {end, -1, {i}};
  }

  std::map<const std::byte*, Use, std::less<>> uses_;
};

// The kernels that end before kernel i can begin, a bit each.
using Earlier = std::vector<std::uint64_t>;

bool has(const Earlier& bits, int i) {
  const auto word = std::size_t(i) / 64;
  return word < bits.size() && (bits[word] >> (i % 64) & 1) != 0;
}

void add(Earlier& bits, const Earlier& more, int i) {
  bits.resize(std::max({bits.size(), more.size(), std::size_t(i) / 64 + 1}));
  for (std::size_t w = 0; w < more.size(); ++w) bits[w] |= more[w];
  bits[std::size_t(i) / 64] |= std::uint64_t{1} << (i % 64);
}

}  // namespace

bool interfere(std::span<const Access> a, std::span<const Access> b) {
  const auto meet = [](const Access& x, const Access& y) {
    return (x.is_written || y.is_written) && x.begin < y.begin + y.bytes &&
           y.begin < x.begin + x.bytes;
  };
  return std::ranges::any_of(a, [&](const Access& x) {
    return std::ranges::any_of(b, [&](const Access& y) { return meet(x, y); });
  });
}

std::vector<Access> accesses_of(const Binding& binding, std::int64_t workspace) {
  std::vector<Access> all;
  const auto take = [&](const TensorRef& t, bool is_written) {
    if (t) all.push_back({t.as<const std::byte>(), t.type.bytes(), is_written});
  };
  for (const TensorRef& input : binding.inputs) take(input, false);
  for (const TensorRef& output : binding.outputs) take(output, true);
  if (workspace > 0) {
    all.push_back({static_cast<const std::byte*>(binding.workspace), workspace, true, true});
  }
  return all;
}

Dependencies dependencies_of(std::span<const std::vector<Access>> kernels) {
  Dependencies result(kernels.size());
  std::vector<Earlier> earlier(kernels.size());
  Uses uses;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::vector<int> after;
    for (const Access& access : kernels[k]) uses.take(int(k), access, after);
    std::ranges::sort(after, std::greater<>());
    for (const int j : after) {
      // A kernel may meet itself: its output may lie over its input.
      if (j == int(k) || has(earlier[k], j)) continue;
      result[k].push_back(j);
      add(earlier[k], earlier[std::size_t(j)], j);
    }
  }
  return result;
}

Dependencies in_a_row(std::size_t kernels) {
  Dependencies result(kernels);
  for (std::size_t k = 1; k < kernels; ++k) result[k] = {int(k) - 1};
  return result;
}

Dependencies dependencies_of(std::span<const Kernel> kernels) {
  std::vector<std::vector<Access>> accesses;
  for (const Kernel& kernel : kernels) {
    const auto* placed = kernel.target<PlacedKernel>();
    if (placed == nullptr) return in_a_row(kernels.size());
    accesses.push_back(placed->accesses);
  }
  return dependencies_of(accesses);
}

}  // namespace keel::cuda
