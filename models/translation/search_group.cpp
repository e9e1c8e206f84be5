#include "models/translation/search_group.h"

#include <algorithm>

#include "frontend/data/dataset.h"
#include "frontend/data/token_batches.h"
#include "frontend/text/dictionary.h"
#include "models/translation/pair_batch.h"
#include "models/translation/search_network.h"

namespace keel::models {
namespace {

using text::Dictionary;

// Calls visit(row, slot, hypothesis) for everything that is open.
template <class Visit>
void for_open(const SearchGroup& group, const Visit& visit) {
  for (std::size_t i = 0; i < group.slots.size(); ++i) {
    const std::vector<BeamSearch::Hypothesis>& open = group.slots[i].search.open();
    for (std::size_t k = 0; k < open.size(); ++k) visit(group.row(i, k), i, open[k]);
  }
}

class WholeBatches final : public SearchBatches {
 public:
  const task::Batch& step(const SearchGroup& group) override {
    // Lengths are rounded up to a multiple of it, so that few programs serve all steps.
    constexpr std::int64_t kMultiple = 8;
    const std::int64_t length = data::bucket_of(group.symbols() + 1, kMultiple);
    const task::Sizes sizes{group.rows(), group.source_length, length};
    data::clear_batch(batch_, sizes, pair_inputs(sizes));
    batch_.items = 1;
    for_open(group, [&](std::size_t row, std::size_t slot, const BeamSearch::Hypothesis& open) {
      const std::span<const std::int32_t> source = group.slots[slot].source;
      NumberedPair pair{{source.begin(), source.end()}, open.symbols};
      pair.target.push_back(Dictionary::kEnd);
      put_pair(batch_, row, pair);
      batch_.values[kAsked].as<std::int32_t>()[row] =
          static_cast<std::int32_t>(std::int64_t(row) * length + group.symbols());
    });
    return batch_;
  }

 private:
  task::Batch batch_;
};

class StepBatches final : public SearchBatches {
 public:
  const task::Batch* begin(const SearchGroup& group) override {
    clear(encode_, kEncodeNetwork, {group.sentences, group.source_length});
    const std::span<std::int32_t> source = encode_.values[kEncodeSource].as<std::int32_t>();
    const std::span<std::uint8_t> mask = encode_.values[kEncodeMask].as<std::uint8_t>();
    for (std::size_t i = 0; i < group.slots.size(); ++i) {
      const std::size_t first = i * static_cast<std::size_t>(group.source_length);
      const std::span<const std::int32_t> symbols = group.slots[i].source;
      std::ranges::copy(symbols, source.begin() + std::ptrdiff_t(first));
      std::ranges::fill(mask.subspan(first, symbols.size()), std::uint8_t{1});
    }
    return &encode_;
  }

  const task::Batch& step(const SearchGroup& group) override {
    const std::int64_t position = group.symbols(), room = room_for(position);
    clear(step_, kStepNetwork, {group.rows(), group.sentences, group.source_length, room});
    step_.values[kPosition].as<std::int32_t>()[0] = static_cast<std::int32_t>(position);
    step_.values[kPlace].as<std::int32_t>()[0] =
        static_cast<std::int32_t>(position - chunk_begin(chunk_of(position)));
    std::ranges::copy(encode_.values[kEncodeMask].as<std::uint8_t>(),
                      step_.values[kStepMask].as<std::uint8_t>().begin());
    for_open(group, [&](std::size_t row, std::size_t slot, const BeamSearch::Hypothesis& open) {
      const bool is_first = open.symbols.empty();
      step_.values[kLast].as<std::int32_t>()[row] =
          is_first ? Dictionary::kEnd : open.symbols.back();
      step_.values[kOrigin].as<std::int32_t>()[row] =
          static_cast<std::int32_t>(group.row(slot, open.parent));
      const auto seen = step_.values[kSeen].as<std::uint8_t>();
      std::ranges::fill(seen.subspan(row * std::size_t(room), std::size_t(position) + 1),
                        std::uint8_t{1});
    });
    return step_;
  }

 private:
  static void clear(task::Batch& batch, std::string_view network, const task::Sizes& sizes) {
    data::clear_batch(batch, sizes, search_inputs(network, sizes));
    batch.items = 1;
    batch.network = network;
  }

  task::Batch encode_, step_;
};

}  // namespace

bool SearchGroup::is_done() const {
  return std::ranges::all_of(slots, [](const SearchSlot& slot) { return slot.search.is_done(); });
}

std::int64_t SearchGroup::symbols() const {
  for (const SearchSlot& slot : slots) {
    if (!slot.search.is_done()) return std::ssize(slot.search.open().front().symbols);
  }
  return 0;
}

std::unique_ptr<SearchBatches> whole_batches() { return std::make_unique<WholeBatches>(); }
std::unique_ptr<SearchBatches> step_batches() { return std::make_unique<StepBatches>(); }

}  // namespace keel::models
