#include "frontend/text/iwslt14.h"

#include <array>
#include <optional>
#include <utility>

#include "frontend/io/packed_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/tagged_text.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::int64_t kMaxIwsltBytes = std::int64_t{1} << 30;
constexpr std::size_t kValidEvery = 23;
constexpr std::array<std::string_view, 5> kTestParts = {
    "TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"};

// The names of files say the languages in the order of the release, whatever is translated.
std::filesystem::path find_part(const std::filesystem::path& folder, const std::string& name) {
  const std::optional<std::filesystem::path> found = io::find_packed(folder / name);
  check(found.has_value(), ErrorKind::kIo,
        "[iwslt14] {}: expected {}, plain, .gz or .xz, got none of them", folder.string(), name);
  return *found;
}

std::vector<std::string> read_train(const std::filesystem::path& folder,
                                    const std::string& language) {
  const auto path = find_part(folder, "train.tags.de-en." + language);
  return lines_of_tags(read_text(path, kMaxIwsltBytes));
}

std::vector<std::string> read_test(const std::filesystem::path& folder,
                                   const std::string& language) {
  std::vector<std::string> all;
  for (std::string_view part : kTestParts) {
    const auto path = find_part(folder, fmt::format("IWSLT14.{}.de-en.{}.xml", part, language));
    for (std::string& line : sentences_of_xml(read_text(path, kMaxIwsltBytes), path.string())) {
      all.push_back(std::move(line));
    }
  }
  return all;
}

void tokenize_all(std::vector<std::string>& lines, const std::string& language) {
  const MosesTokenizer tokenize({.language = language});
  for (std::string& line : lines) line = tokenize(line);
}

void make_lower(std::vector<std::string>& lines) {
  for (std::string& line : lines) line = lower_case_unicode(line);
}

std::int64_t count_tokens(std::string_view line) { return std::ssize(words_of(line)); }

SentencePairs kept_pairs(SentencePairs&& all, CleanCounts& counts) {
  SentencePairs kept;
  for (std::size_t i = 0; i < all.source.size(); ++i) {
    const PairFault fault =
        judge_pair(count_tokens(all.source[i]), count_tokens(all.target[i]), CleanOptions{});
    counts.add(fault);
    if (fault != PairFault::kNone) continue;
    kept.source.push_back(std::move(all.source[i]));
    kept.target.push_back(std::move(all.target[i]));
  }
  return kept;
}

SentencePairs prepared(SentencePairs pairs, const std::string& source, const std::string& target) {
  tokenize_all(pairs.source, source);
  tokenize_all(pairs.target, target);
  return pairs;
}

}  // namespace

void expect_pairs(const SentencePairs& pairs, const std::string& source,
                  const std::string& target) {
  const std::size_t n = pairs.source.size(), m = pairs.target.size();
  check(n == m, ErrorKind::kBadInput, "[pairs] {}: expected {} lines, as {} has, got {}", source, m,
        target, n);
}

Iwslt14 prepare_iwslt14(const std::filesystem::path& folder, const std::string& source,
                        const std::string& target) {
  Iwslt14 result;
  SentencePairs train{read_train(folder, source), read_train(folder, target)};
  expect_pairs(train, "train.tags.de-en." + source, "train.tags.de-en." + target);
  result.test = {read_test(folder, source), read_test(folder, target)};
  expect_pairs(result.test, "test." + source, "test." + target);
  result.test = prepared(std::move(result.test), source, target);
  train = kept_pairs(prepared(std::move(train), source, target), result.cleaned);
  for (std::size_t i = 0; i < train.source.size(); ++i) {
    SentencePairs& part = (i + 1) % kValidEvery == 0 ? result.valid : result.train;
    part.source.push_back(std::move(train.source[i]));
    part.target.push_back(std::move(train.target[i]));
  }
  for (SentencePairs* part : {&result.train, &result.valid, &result.test}) {
    make_lower(part->source);
    make_lower(part->target);
  }
  return result;
}

}  // namespace keel::text
