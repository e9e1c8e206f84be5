// The answers of `keel predict`, and how they are given to the user.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/decoder.h"
#include "program/commands.h"

namespace keel::cli {

// The answers of one search, which may have run in another process.
struct Found {
  std::vector<std::string> answers = {};
  std::vector<std::vector<task::RankedAnswer>> ranked = {};  // in place of answers, if asked for
  bool are_files = false;                                    // answers_are_files()
  std::int64_t size = 0;                                     // of all answers

  // The answers of a decoder that has ended. Throws Error{kUsage} if it should have ranked answers
  // and has not.
  static Found of(const task::Decoder& decoder, const PredictArgs& args, std::string_view model);
  // As bytes, for another process.
  static Found of_bytes(std::string_view bytes);
  std::string bytes() const;
};

// Takes the answers of one search after the other: to standard output they go as they come, into a
// file or as JSON when all are there. Answers that are files by themselves get one each. `names`,
// where there are any, are the files that were asked about, one before each answer.
class Answers {
 public:
  explicit Answers(const PredictArgs& args) : args_(args) {}

  std::int64_t size() const { return size_; }
  void take(Found found, std::span<const std::string> names = {});
  void finish();

 private:
  using Ranked = std::vector<std::vector<task::RankedAnswer>>;

  void take_ranked(const Ranked& ranked, std::span<const std::string> names);
  template <class Answer>
  void take_json(const std::vector<Answer>& answers, std::span<const std::string> names,
                 const char* key);
  void give_lines(const std::vector<std::string>& lines, std::span<const std::string> names);
  void give(std::string text);
  void write_files() const;

  const PredictArgs& args_;
  std::string text_;
  std::vector<std::string> files_;  // the contents of files, in the order of their lines
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
  std::int64_t size_ = 0;
};

}  // namespace keel::cli
