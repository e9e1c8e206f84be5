#include "models/skip_thoughts/expansion.h"

#include <Eigen/QR>

#include "src/core/error.h"

namespace keel::models {
namespace {

using Eigen::Index;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// x with a 1 after it, by which b is a column more of A.
Eigen::RowVectorXd with_one(const std::vector<float>& x) {
  Eigen::RowVectorXd row(std::ssize(x) + 1);
  for (std::size_t i = 0; i < x.size(); ++i) row[Index(i)] = x[i];
  row[std::ssize(x)] = 1;
  return row;
}

}  // namespace

Expansion::Expansion(const std::filesystem::path& path, const text::Dictionary& dictionary,
                     const std::set<std::string, std::less<>>& wanted)
    : vectors_(read_word_vectors(path, [&](std::string_view word) {
        return dictionary.id(word) != text::Dictionary::kUnk || wanted.contains(word);
      })) {
  for (std::int32_t id = text::Dictionary::kSpecials; id < dictionary.first_filler(); ++id) {
    const std::string& word = dictionary.symbol(id);
    if (!vectors_.of.contains(word)) continue;
    shared_.push_back(id);
    shared_words_.push_back(word);
  }
  check(std::ssize(shared_) > vectors_.width, ErrorKind::kBadInput,
        "[vectors] {}: expected more than {} of the words that training had, got {}", path.string(),
        vectors_.width, shared_.size());
}

void Expansion::fit(std::span<const float> own) {
  const std::int64_t count = std::ssize(shared_), width = std::ssize(own) / count;
  Rows x(count, vectors_.width + 1);
  for (Index i = 0; i < count; ++i) {
    x.row(i) = with_one(vectors_.of.at(shared_words_[std::size_t(i)]));
  }
  using Given = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Rows e = Eigen::Map<const Given>(own.data(), count, width).cast<double>();
  const Rows map = x.completeOrthogonalDecomposition().solve(e);
  for (auto& [word, vector] : vectors_.of) {
    const Eigen::RowVectorXd y = with_one(vector) * map;
    vector.assign(y.data(), y.data() + y.size());
  }
  width_ = width;
}

std::span<const float> Expansion::find(std::string_view word) const {
  const auto found = vectors_.of.find(word);
  return found == vectors_.of.end() ? std::span<const float>{} : std::span(found->second);
}

}  // namespace keel::models
