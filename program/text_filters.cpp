// keel text tokenize, detokenize, lower, normalize, bpe apply and bpe undo
#include <functional>

#include "frontend/io/message.h"
#include "frontend/text/bpe.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/punctuation.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "program/common.h"
#include "program/outputs.h"
#include "program/text.h"

namespace keel::cli {
namespace {

constexpr std::size_t kOutputBytes = 1 << 20;  // written at once

// Every line of standard input through `change`, which is told the line's place for messages.
int filter(const std::function<std::string(std::string_view, const text::Line&)>& change) {
  expect_streams_apart();
  text::LineReader reader(stdin, "standard input");
  std::string out;
  while (const std::optional<text::Line> line = reader.next()) {
    out += change(reader.name(), *line);
    out += '\n';
    if (out.size() < kOutputBytes) continue;
    print(out);
    out.clear();
  }
  print(out);
  return 0;
}

}  // namespace

int run_tokenize(TokenizeArgs args) {
  const std::string& language = args.options.language;
  args.options.escape = !args.no_escape;
  if (!args.prefixes.empty()) {
    args.options.prefixes = text::NonbreakingPrefixes::load(args.prefixes);
  } else if (text::NonbreakingPrefixes::lacks(language)) {
    io::warn(
        fmt::format("keel has no abbreviations of '{0}' and takes those of English, so that full "
                    "stops after abbreviations differ from Moses; --prefixes takes Moses' own "
                    "list, nonbreaking_prefix.{0}",
                    language));
  }
  const text::MosesTokenizer tokenize(args.options);
  return filter([&](std::string_view, const text::Line& line) { return tokenize(line.text); });
}

int run_detokenize(DetokenizeArgs args) {
  args.options.unescape = !args.no_unescape;
  return filter([&](std::string_view, const text::Line& line) {
    // Moses leaves a line that is a tag as it is.
    const bool tag = line.text.size() > 2 && line.text.starts_with('<') && line.text.ends_with('>');
    return tag ? std::string(line.text) : text::moses_detokenized(line.text, args.options);
  });
}

int run_lower() {
  return filter(
      [](std::string_view, const text::Line& line) { return text::lower_case_unicode(line.text); });
}

int run_normalize(const NormalizeArgs& args) {
  const auto form = args.form == "nfkc" ? text::Normalization::kNfkc : text::Normalization::kNfc;
  return filter([&](std::string_view, const text::Line& line) {
    const std::string composed = text::normalized(line.text, form);
    if (args.punctuation.empty()) return composed;
    return text::with_printable_characters(
        text::normalized_punctuation(composed, args.punctuation));
  });
}

int run_bpe_apply(const CodesArgs& args) {
  text::Bpe bpe(text::BpeCodes::load(args.codes));
  return filter([&](std::string_view file, const text::Line& line) {
    return bpe.apply(line.text, text::place(file, line.number));
  });
}

int run_bpe_undo() {
  return filter(
      [](std::string_view, const text::Line& line) { return text::bpe_undone(line.text); });
}

}  // namespace keel::cli
