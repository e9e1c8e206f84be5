#include "models/char_lm/data.h"

#include <algorithm>
#include <filesystem>

#include "frontend/io/packed_file.h"
#include "models/char_lm/builtin.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - 1;  // enwik9 has 10^9

fs::path file_of(const std::string& source, const std::string& name) {
  if (!fs::is_directory(source)) return source;
  if (const auto below = io::find_packed(fs::path(source) / "lm" / name)) return *below;
  return io::require_packed("char_lm", source, name,
                            "; --data takes a file, too, and model.file another name");
}

}  // namespace

ByteCorpus::ByteCorpus(const task::DataRequest& request, const std::string& name, TextParts parts)
    : parts_(parts), train_bytes_(request.train_rows), is_builtin_(request.source == "builtin") {
  if (is_builtin_) {
    origin_ = "markov2+title";
    text_ = make_titled_text(task::Split::kTrain, request.seed);
    others_[0] = make_titled_text(task::Split::kValid, request.seed);
    others_[1] = make_titled_text(task::Split::kTest, request.seed);
    return;
  }
  const fs::path path = file_of(request.source, name);
  origin_ = path.string();
  text_ = io::read_file(path, kMostBytes);
}

ByteCorpus::Part ByteCorpus::part(task::Split split) const {
  const std::size_t all = text_.size();
  if (is_builtin_ || parts_ == TextParts::kWhole) return {0, all};
  const std::size_t valid = all * 90 / 100, test = all * 95 / 100;
  if (split == task::Split::kTrain) return {0, valid};
  return split == task::Split::kValid ? Part{valid, test - valid} : Part{test, all - test};
}

std::string_view ByteCorpus::whole_part(task::Split split) const {
  if (is_builtin_ && split != task::Split::kTrain) return others_[std::size_t(split) - 1];
  const Part part = this->part(split);
  return std::string_view(text_).substr(part.first, part.count);
}

std::string_view ByteCorpus::bytes(task::Split split) const {
  const bool is_cut = split == task::Split::kTrain && train_bytes_ > 0;
  return whole_part(split).substr(0, is_cut ? std::size_t(train_bytes_) : std::string_view::npos);
}

std::string ByteCorpus::place(task::Split split) const {
  if (!is_builtin_ && parts_ == TextParts::kWhole) return origin_;
  return fmt::format("{} of {}", data::name_of(split), origin_);
}

data::TokenText ByteCorpus::numbered(task::Split split, const ByteAlphabet& alphabet,
                                     std::int64_t least) const {
  const std::string_view bytes = this->bytes(split);
  // Bits per character depend on the alphabet, so its size is told with the data.
  data::TokenText text{fmt::format("{}, {} symbols", place(split), alphabet.size()),
                       alphabet.numbers(bytes, "[char_lm] " + place(split))};
  check(std::ssize(text.tokens) >= least, ErrorKind::kBadInput,
        "[char_lm] {}: expected at least {} symbols{}, got {}", place(split), least,
        split == task::Split::kTrain ? ", a segment and one more" : "", text.tokens.size());
  const std::int64_t dropped = std::ssize(bytes) - std::ssize(text.tokens);
  if (dropped > 0) text.skipped.push_back({dropped, "line feeds", "bytes"});
  const std::int64_t beyond = std::ssize(whole_part(split)) - std::ssize(bytes);
  if (split == task::Split::kTrain && beyond > 0) {
    text.skipped.push_back({beyond, fmt::format("beyond the first {}", bytes.size()), "bytes"});
  }
  return text;
}

}  // namespace keel::models
