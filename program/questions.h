// The questions of `keel predict`: lines, or pictures in files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/task/network.h"
#include "frontend/text/line_reader.h"

namespace keel::cli {

// The files of pictures among `paths`: a path that is a folder stands for all pictures in it and in
// its folders, without hidden ones, in the order of their names. Throws Error{kIo} for a folder
// without pictures.
std::vector<std::string> picture_files(const std::vector<std::string>& paths);
// Throws Error{kIo} for a name of no file, such as a line of text that `task` cannot classify.
void expect_files(const std::vector<std::string>& names, std::string_view task);

// Portions of the lines that a user gave, or else of those of standard input. The lines have to
// outlive it.
class Questions {
 public:
  explicit Questions(const std::vector<std::string>& given) : given_(given) {}

  bool are_given() const { return !given_.empty(); }
  // Up to `most` more lines; stops early once they hold `most_bytes`, the longest line's if nothing
  // else is said.
  std::vector<std::string> take(std::size_t most, std::size_t most_bytes = text::kMaxLineBytes);
  std::vector<std::string> take_rest(std::size_t most) { return take(most, SIZE_MAX); }

 private:
  std::optional<std::string> next();

  const std::vector<std::string>& given_;
  std::size_t taken_ = 0;
  text::LineReader input_{stdin, "standard input"};
};

// The decoder of a portion, whose first line is number `first` from 1 on. For a network that needs
// all lines at once the portion becomes all of them.
std::unique_ptr<task::Decoder> decoder_of(const task::Network& network, Questions& questions,
                                          std::vector<std::string>& portion, std::int64_t first);

}  // namespace keel::cli
