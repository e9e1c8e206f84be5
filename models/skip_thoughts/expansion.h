// Words that training did not have, by vectors that others have learned of them.
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

// Kiros et al. 2015, section 2.2: of the words that both the network and a file of vectors know,
// the A and b with the least sum of |A x + b - e|^2, x being the file's vector and e the network's,
// take every other word of the file to the place where the network would have it.
class Expansion {
 public:
  // Reads the file's vectors of the dictionary's words and of those that are `wanted`. Throws as
  // read_word_vectors, and Error{kBadInput} when fewer words are shared than A and b have columns.
  Expansion(const std::filesystem::path& path, const text::Dictionary& dictionary,
            const std::set<std::string, std::less<>>& wanted);

  // The numbers of the words that both know.
  const std::vector<std::int32_t>& shared() const { return shared_; }
  // Learns A and b from the network's vectors (shared, width) of those.
  void fit(std::span<const float> own);
  bool is_fitted() const { return width_ > 0; }

  // When fitted: where the network would have a word that is wanted; nothing for one that the file
  // has not.
  std::span<const float> find(std::string_view word) const;

 private:
  std::vector<std::int32_t> shared_;
  std::vector<std::string> shared_words_;
  WordVectors vectors_;  // of the file, and once fitted the network's
  std::int64_t width_ = 0;
};

}  // namespace keel::models
