#include "program/questions.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "frontend/io/message.h"
#include "frontend/io/picture.h"
#include "frontend/io/visible_files.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

constexpr std::string_view kStandardInput = "standard input";
constexpr std::size_t kMostLines = 1 << 24;
constexpr std::size_t kMostShownName = 100;

// The pictures in a folder and in its folders, without hidden ones.
std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  io::SkippedFiles skipped;
  for (const std::filesystem::path& file : io::visible_files_below(folder, error, &skipped)) {
    if (io::is_picture(file)) {
      files.push_back(file.string());
    } else {
      skipped.add_ending(file);
    }
  }
  check(!error, ErrorKind::kIo, "{}: {}", folder, error.message());
  check(!files.empty(), ErrorKind::kIo, "{}: expected pictures ({}) in this folder, got none{}",
        folder, io::picture_endings(), skipped.note());
  if (const std::string note = skipped.note(); !note.empty()) io::say(folder + note);
  return files;
}

std::unique_ptr<task::Decoder> decoder_of_lines(const task::Network& network, Questions& questions,
                                                std::vector<std::string>& portion,
                                                std::int64_t first) {
  if (network.answers() == task::Answers::kAllLines) {
    for (std::string& line : questions.take_rest(kMostLines)) portion.push_back(std::move(line));
    check(portion.size() < kMostLines, ErrorKind::kBadInput, "{}: expected fewer than {} lines",
          kStandardInput, kMostLines);
  }
  return network.decoder(portion, first);
}

}  // namespace

std::vector<std::string> picture_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      for (std::string& file : pictures_in(path)) files.push_back(std::move(file));
    } else {
      files.push_back(path);
    }
  }
  return files;
}

void expect_files(const std::vector<std::string>& names, std::string_view task) {
  for (const std::string& name : names) {
    std::error_code ignored;
    check(std::filesystem::exists(name, ignored), ErrorKind::kIo,
          "predict: no file is called '{}'; {} classifies pictures and takes the names of their "
          "files ({}), as arguments or as lines of standard input",
          shortened(name, kMostShownName), task, io::picture_endings());
  }
}

std::vector<std::string> Questions::take(std::size_t most, std::size_t most_bytes) {
  std::vector<std::string> lines;
  for (std::size_t bytes = 0; lines.size() < most && bytes < most_bytes;) {
    std::optional<std::string> line = next();
    if (!line) break;
    bytes += line->size();
    lines.push_back(std::move(*line));
  }
  return lines;
}

std::optional<std::string> Questions::next() {
  if (are_given()) {
    return taken_ < given_.size() ? std::optional(given_[taken_++]) : std::nullopt;
  }
  const std::optional<text::Line> line = input_.next();
  return line ? std::optional(std::string(line->text)) : std::nullopt;
}

// Networks call the lines that they are asked standard input, which those of --text are not.
std::unique_ptr<task::Decoder> decoder_of(const task::Network& network, Questions& questions,
                                          std::vector<std::string>& portion, std::int64_t first) {
  try {
    return decoder_of_lines(network, questions, portion, first);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::size_t at = message.find(kStandardInput);
    if (!questions.are_given() || at == message.npos) throw;
    throw Error(error.kind(), message.replace(at, kStandardInput.size(), "--text"));
  }
}

}  // namespace keel::cli
