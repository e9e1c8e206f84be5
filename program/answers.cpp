#include "program/answers.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "frontend/io/atomic_file.h"
#include "program/common.h"

namespace keel::cli {
namespace {

using Ranked = std::vector<std::vector<task::RankedAnswer>>;

nlohmann::ordered_json json_of(const std::vector<task::RankedAnswer>& of_line) {
  auto answers = nlohmann::ordered_json::array();
  for (const task::RankedAnswer& a : of_line) {
    answers.push_back(
        {{"answer", a.text}, {"score", a.score}, {"log_probability", a.log_probability}});
  }
  return answers;
}

std::vector<task::RankedAnswer> ranked_of(const nlohmann::json& of_line) {
  std::vector<task::RankedAnswer> answers;
  for (const nlohmann::json& a : of_line) {
    answers.push_back({a.at("answer"), a.at("score"), a.at("log_probability")});
  }
  return answers;
}

std::vector<std::string> with_scores(const Ranked& ranked) {
  std::vector<std::string> lines;
  for (const auto& of_line : ranked) {
    lines.push_back(fmt::format("{:.6f}\t{}", of_line.front().score, of_line.front().text));
  }
  return lines;
}

// Lines are counted from 0 on, the first of these being `first`.
std::string in_moses_form(const Ranked& ranked, std::int64_t first) {
  std::string text;
  for (std::size_t line = 0; line < ranked.size(); ++line) {
    for (const task::RankedAnswer& a : ranked[line]) {
      text += fmt::format("{} ||| {} ||| logp= {:.6f} ||| {:.6f}\n", first + line, a.text,
                          a.log_probability, a.score);
    }
  }
  return text;
}

// hand.svg becomes hand-3.svg, and hand-03.svg where the last of them is hand-12.svg.
std::filesystem::path numbered(const std::filesystem::path& file, std::size_t number,
                               std::size_t last) {
  const std::size_t digits = fmt::formatted_size("{}", last);
  return file.parent_path() / fmt::format("{}-{:0{}}{}", file.stem().string(), number, digits,
                                          file.extension().string());
}

}  // namespace

Found Found::of(const task::Decoder& decoder, const PredictArgs& args, std::string_view model) {
  Found found{.are_files = decoder.answers_are_files(), .size = decoder.size()};
  if (args.scores || args.n_best > 0) {
    found.ranked = decoder.ranked(std::max(args.n_best, 1));
    check(!found.ranked.empty(), ErrorKind::kUsage,
          "predict: {} does not rank answers (--scores, --n-best)", model);
  } else {
    found.answers = decoder.answers();
  }
  return found;
}

// CBOR, unlike JSON, takes texts of any bytes, such as those of a picture.
std::string Found::bytes() const {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const auto& of_line : ranked) ranks.push_back(json_of(of_line));
  const nlohmann::ordered_json all{
      {"answers", answers}, {"ranked", ranks}, {"are_files", are_files}, {"size", size}};
  std::string bytes;
  nlohmann::ordered_json::to_cbor(all, bytes);
  return bytes;
}

Found Found::of_bytes(std::string_view bytes) {
  const nlohmann::json all = nlohmann::json::from_cbor(bytes);
  Found found{
      .answers = all.at("answers"), .are_files = all.at("are_files"), .size = all.at("size")};
  for (const nlohmann::json& of_line : all.at("ranked")) {
    found.ranked.push_back(ranked_of(of_line));
  }
  return found;
}

void Answers::take(Found found, std::span<const std::string> names) {
  if (args_.scores || args_.n_best > 0) {
    take_ranked(found.ranked, names);
  } else if (args_.run.json) {
    take_json(found.answers, names, "answer");
  } else if (!args_.output.empty() && found.are_files) {
    std::ranges::move(found.answers, std::back_inserter(files_));
  } else {
    give_lines(found.answers, names);
  }
  size_ += found.size;
}

void Answers::finish() {
  if (args_.run.json) give(json_text(json_));
  if (args_.output.empty()) return;
  if (files_.empty()) return io::write_file_atomically(args_.output, text_);
  if (files_.size() == 1) return io::write_file_atomically(args_.output, files_[0]);
  write_files();
}

void Answers::write_files() const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    io::write_file_atomically(numbered(args_.output, i + 1, files_.size()), files_[i]);
  }
}

void Answers::take_ranked(const Ranked& ranked, std::span<const std::string> names) {
  if (args_.run.json) {
    std::vector<nlohmann::ordered_json> answers;
    for (const auto& of_line : ranked) answers.push_back(json_of(of_line));
    take_json(answers, names, "answers");
  } else if (args_.scores) {
    give_lines(with_scores(ranked), names);
  } else {
    give(in_moses_form(ranked, size_));
  }
}

template <class Answer>
void Answers::take_json(const std::vector<Answer>& answers, std::span<const std::string> names,
                        const char* key) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (names.empty()) {
      json_.push_back(answers[i]);
    } else {
      nlohmann::ordered_json of_file{{"file", names[i]}};
      of_file[key] = answers[i];
      json_.push_back(std::move(of_file));
    }
  }
}

void Answers::give_lines(const std::vector<std::string>& lines,
                         std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += (names.empty() ? "" : names[i] + "\t") + lines[i] + "\n";
  }
  give(text);
}

void Answers::give(std::string text) {
  if (args_.output.empty()) return print(text);
  text_ += text;
}

}  // namespace keel::cli
