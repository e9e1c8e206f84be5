// A data set in three parts from any source, before its words have numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/data_loader.h"

namespace keel::data {

// Keeps the first `count` rows, all for 0, and reports how many were left out.
template <class Row>
void keep_first(std::vector<Row>& rows, std::int64_t count, std::vector<Skipped>& skipped) {
  const std::int64_t beyond = std::ssize(rows) - count;
  if (count == 0 || beyond <= 0) return;
  rows.resize(std::size_t(count));
  skipped.push_back({beyond, fmt::format("beyond the first {}", count)});
}

template <class Part>
struct Corpus {
  std::string name;    // "shapes"
  std::string origin;  // where it is stored and in which form, or how it was made
  Part train = {}, valid = {};
  // Reads the test part; a file that holds only that part is opened here, not before.
  std::function<Part()> test = {};
  std::vector<Skipped> skipped = {};         // of the training rows, or of the only part
  std::optional<Split> only = std::nullopt;  // the one part that there is; absent: all

  // Hands over a part, which can be done once, to be numbered.
  Part take(Split split) {
    if (split == Split::kTest) return test();
    return std::move(split == Split::kTrain ? train : valid);
  }
  // Makes this part the only one of the corpus.
  void put(Split split, Part part) {
    only = split;
    if (split == Split::kTrain) train = std::move(part);
    if (split == Split::kValid) valid = std::move(part);
    if (split == Split::kTest) {
      test = [kept = std::make_shared<Part>(std::move(part))] { return std::move(*kept); };
    }
  }
  // "NAME train, ORIGIN", and what is left out.
  SplitNotes notes(Split split) const {
    const bool counts = split == only.value_or(Split::kTrain);
    return {fmt::format("{} {}, {}", name, name_of(split), origin),
            counts ? skipped : std::vector<Skipped>{}};
  }
};

// The splits of a corpus. `number` makes the rows of a part: (split, part, its notes) -> shared_ptr
// to a Dataset. It is called once for each split that is asked for.
template <class C, class Number>
std::unique_ptr<Splits> splits_of(C corpus, Number number) {
  auto kept = std::make_shared<C>(std::move(corpus));
  return std::make_unique<DatasetSplits>([kept, number = std::move(number)](Split split) {
    return std::shared_ptr<const Dataset>(number(split, kept->take(split), kept->notes(split)));
  });
}

}  // namespace keel::data
