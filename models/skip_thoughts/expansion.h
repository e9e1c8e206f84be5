// Words that training did not have, mapped from vectors that another program learned.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/dictionary.h"
#include "models/skip_thoughts/word_vectors.h"

namespace keel::models {

// Kiros et al. 2015, section 2.2: A and b minimize the sum of |A x + b - e|^2 over the words that
// both the network and a file of vectors know; x is the file's vector and e the network's. The map
// A x + b then gives every other word of the file a vector as the network would have it.
class Expansion {
 public:
  // Reads the file's vectors of the dictionary's words and of `wanted` words. Throws as
  // read_word_vectors, and Error{kBadInput} if they share fewer words than A and b have columns.
  Expansion(const std::filesystem::path& path, const text::Dictionary& dictionary,
            const std::set<std::string, std::less<>>& wanted);

  // The numbers of the words that both know.
  const std::vector<std::int32_t>& shared() const { return shared_; }
  // Fits A and b to the network's vectors (shared, width) of the shared words.
  void fit(std::span<const float> own);
  bool is_fitted() const { return width_ > 0; }

  // After fit(): the mapped vector of a wanted word; empty for a word that the file does not
  // have.
  std::span<const float> find(std::string_view word) const;

 private:
  std::vector<std::int32_t> shared_;
  std::vector<std::string> shared_words_;
  WordVectors vectors_;  // of the file, and once fitted the network's
  std::int64_t width_ = 0;
};

}  // namespace keel::models
