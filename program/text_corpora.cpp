// keel text clean, iwslt14, bpe learn, vocab and bleu
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/message.h"
#include "frontend/text/iwslt14.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/text_file.h"
#include "program/common.h"
#include "program/outputs.h"
#include "program/text.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

text::WordCounts count_all(const std::vector<std::string>& files, bool to_learn) {
  text::WordCounts counts;
  const auto count = [&](text::LineReader reader) {
    while (const std::optional<text::Line> line = reader.next()) {
      const bool is_long = line->text.size() > text::kMaxLearnedWord;
      if (to_learn && is_long) {
        text::expect_learnable(line->text, text::place(reader.name(), line->number));
      }
      text::count_words(line->text, counts);
    }
  };
  for (const std::string& file : files) count(text::LineReader(fs::path(file)));
  if (files.empty()) count(text::LineReader(stdin, "standard input"));
  return counts;
}

void write_result(const std::string& output, const std::string& text) {
  if (output.empty()) {
    print(text);
  } else {
    io::write_file_atomically(output, text);
  }
}

// Two files line by line. Neither may be longer than the other.
class PairReader {
 public:
  PairReader(const std::string& source, const std::string& target)
      : source_(fs::path(source)), target_(fs::path(target)) {}

  // False at the end of both.
  bool next() {
    const std::optional<text::Line> source = source_.next(), target = target_.next();
    if (source.has_value() != target.has_value()) {
      const text::LineReader &longer = source ? source_ : target_,
                             &shorter = source ? target_ : source_;
      fail(ErrorKind::kBadInput, "{}: expected a line beside that of {}, got the end",
           text::place(shorter.name(), (source ? *source : *target).number), longer.name());
    }
    if (!source) return false;
    source_text = source->text;
    target_text = target->text;
    return true;
  }

  std::string_view source_text, target_text;  // valid until the next call

 private:
  text::LineReader source_, target_;
};

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) (text += line) += '\n';
  return text;
}

text::BleuTokens bleu_tokens(const std::string& name) {
  if (name == "13a") return text::BleuTokens::k13a;
  return name == "compound" ? text::BleuTokens::kCompound : text::BleuTokens::kNone;
}

nlohmann::ordered_json bleu_json(const text::BleuScore& score, const std::string& signature) {
  return {{"bleu", score.bleu},
          {"precisions", score.precisions},
          {"brevity_penalty", score.brevity},
          {"matches", score.counts.matches},
          {"totals", score.counts.totals},
          {"translation_length", score.counts.translation},
          {"reference_length", score.counts.reference},
          {"signature", signature}};
}

}  // namespace

int run_bpe_learn(const LearnArgs& args) {
  expect_apart({{"--output", args.output}}, args.files);
  write_result(args.output, text::learn_bpe(count_all(args.files, true), args.options).text());
  return 0;
}

int run_vocab(const VocabArgs& args) {
  expect_apart({{"--output", args.output}}, args.files);
  write_result(args.output, text::Dictionary(count_all(args.files, false), args.options).text());
  return 0;
}

int run_clean(const CleanArgs& args) {
  args.options.validate();
  expect_apart({{"out_source", args.out_source}, {"out_target", args.out_target}},
               {args.source, args.target});
  PairReader reader(args.source, args.target);
  io::AtomicFile source(args.out_source), target(args.out_target);
  text::CleanCounts counts;
  const auto tokens = [](std::string_view line) { return std::ssize(text::words_of(line)); };
  while (reader.next()) {
    const text::PairFault fault =
        text::judge_pair(tokens(reader.source_text), tokens(reader.target_text), args.options);
    counts.add(fault);
    if (fault != text::PairFault::kNone) continue;
    source.write(std::string(reader.source_text) + "\n");
    target.write(std::string(reader.target_text) + "\n");
  }
  source.commit();
  target.commit();
  io::say(fmt::format("kept {} of {} pairs; {} too short, {} too long, {} too unlike in length",
                      counts.kept(), counts.pairs, counts.too_short, counts.too_long,
                      counts.bad_ratio));
  return 0;
}

int run_iwslt14(const IwsltArgs& args) {
  const text::Iwslt14 result = text::prepare_iwslt14(args.folder, args.source, args.target);
  fs::create_directories(args.out);
  const auto write = [&](const char* name, const text::SentencePairs& pairs) {
    const fs::path stem = fs::path(args.out) / name;
    io::write_file_atomically(stem.string() + "." + args.source, joined_lines(pairs.source));
    io::write_file_atomically(stem.string() + "." + args.target, joined_lines(pairs.target));
  };
  write("train", result.train);
  write("valid", result.valid);
  write("test", result.test);
  io::say(fmt::format("train {}, valid {}, test {} pairs; {} of {} left out",
                      result.train.source.size(), result.valid.source.size(),
                      result.test.source.size(), result.cleaned.pairs - result.cleaned.kept(),
                      result.cleaned.pairs));
  return 0;
}

int run_bleu(const BleuArgs& args) {
  text::BleuCounter counter({.tokens = bleu_tokens(args.tokens), .lower_case = args.lower_case});
  PairReader reader(args.translation, args.reference);
  while (reader.next()) counter.add(reader.source_text, reader.target_text);
  if (args.tokens == "13a" && counter.looks_tokenized()) {
    io::warn(fmt::format(
        "{} looks tokenized, and 13a is for text as people write it (keel text detokenize)",
        args.translation));
  }
  const text::BleuScore score = counter.score();
  if (args.json) {
    print_json(bleu_json(score, counter.signature()));
  } else {
    print(fmt::format("{}\n{}\n", text::text_of(score), counter.signature()));
  }
  return 0;
}

}  // namespace keel::cli
