// The bytes of a character model's three parts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "frontend/data/lane_rows.h"
#include "frontend/task/task.h"
#include "models/char_lm/alphabet.h"

namespace keel::models {

// The splits of a file are parts of it, or all of it.
enum class TextParts {
  kByPlace,  // 90 % for training, then 5 % and 5 %, by bytes
  kWhole,    // each of them is the whole file: a model scores a file
};
constexpr auto choice_words(TextParts) {
  return std::to_array<std::string_view>({"90-5-5", "whole"});
}

// A text in three parts, before its bytes have numbers.
class ByteCorpus {
 public:
  // "builtin" is "markov2+title"; otherwise request.source is a file, or a folder with a file of
  // this name or in its folder lm, plain, .gz or .xz. Throws Error{kIo} where there is none, and as
  // io::read_file. request.train_rows are bytes of the training part.
  ByteCorpus(const task::DataRequest& request, const std::string& name, TextParts parts);

  // The bytes of a part; of the training part only the first `train_rows`.
  std::string_view bytes(task::Split split) const;
  std::string_view whole_part(task::Split split) const;
  // The part for people, "train of data/enwik8".
  std::string place(task::Split split) const;
  // A part in numbers; its source tells the size of the alphabet, too. Throws as
  // ByteAlphabet::numbers, and Error{kBadInput} for a part of fewer than `least` symbols.
  data::TokenText numbered(task::Split split, const ByteAlphabet& alphabet,
                           std::int64_t least) const;

 private:
  struct Part {
    std::size_t first = 0, count = 0;
  };
  Part part(task::Split split) const;

  std::string origin_, text_, others_[2];  // others: of built-in validation and test
  TextParts parts_;
  std::int64_t train_bytes_;  // 0: all
  bool is_builtin_;
};

}  // namespace keel::models
