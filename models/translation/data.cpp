#include "models/translation/data.h"

#include <array>
#include <utility>

#include "frontend/text/lines.h"
#include "models/translation/builtin.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

ParallelCorpus load_parallel(const TranslationOptions& options) {
  check(options.train_rows >= 0, ErrorKind::kUsage,
        "[translation] train_rows: expected 0 or more, got {}", options.train_rows);
  options.clean.validate();
  if (options.clean_subwords) options.clean_subwords->validate();
  if (options.source == "builtin") return make_lex200();
  return read_corpus(options.source, options.corpus);
}

std::int64_t words_in(const std::string& sentence) { return std::ssize(text::words_of(sentence)); }

// Says which training pairs were left out by lengths in that unit. One has to stay.
void note_unfit(ParallelCorpus& corpus, const text::CleanCounts& counts,
                const text::CleanOptions& clean, const char* unit) {
  const auto note = [&](std::int64_t rows, std::string why) {
    if (rows > 0) corpus.left_out.push_back({rows, std::move(why)});
  };
  note(counts.too_short, fmt::format("a side of fewer than {} {}", clean.min_tokens, unit));
  note(counts.too_long, fmt::format("a side of more than {} {}", clean.max_tokens, unit));
  note(counts.bad_ratio,
       fmt::format("one side longer than {} times the other, in {}", clean.max_ratio, unit));
  check(!corpus.train.source.empty(), ErrorKind::kBadInput,
        "[translation] {}: expected training pairs, got none of {} that is fit", corpus.origin,
        counts.pairs);
}

// Leaves out training pairs by their lengths in words, and those beyond `train_rows`.
void choose_pairs(ParallelCorpus& corpus, const TranslationOptions& options) {
  SentencePairs kept;
  text::CleanCounts counts;
  std::int64_t beyond = 0;
  const bool made_up = options.source == "builtin";
  for (std::size_t i = 0; i < corpus.train.source.size(); ++i) {
    std::string &source = corpus.train.source[i], &target = corpus.train.target[i];
    const text::PairFault fault =
        made_up ? text::PairFault::kNone
                : text::judge_pair(words_in(source), words_in(target), options.clean);
    counts.add(fault);
    if (fault != text::PairFault::kNone) continue;
    if (options.train_rows > 0 && std::ssize(kept.source) == options.train_rows) {
      ++beyond;
      continue;
    }
    kept.source.push_back(std::move(source));
    kept.target.push_back(std::move(target));
  }
  corpus.train = std::move(kept);
  note_unfit(corpus, counts, options.clean, "words");
  if (beyond > 0) {
    corpus.left_out.push_back({beyond, fmt::format("train_rows is {}", options.train_rows)});
  }
}

// Leaves out training pairs by the lengths of their sides in sub-words.
void choose_by_subwords(ParallelCorpus& corpus, const TranslationSubwords& subwords,
                        const text::CleanOptions& clean) {
  SentencePairs kept;
  text::CleanCounts counts;
  const auto length = [&](const Subwords& side, const std::string& sentence) {
    return std::ssize(side.encode(sentence, corpus.name)) - 1;  // without its end
  };
  for (std::size_t i = 0; i < corpus.train.source.size(); ++i) {
    std::string &source = corpus.train.source[i], &target = corpus.train.target[i];
    const text::PairFault fault =
        text::judge_pair(length(*subwords.source, source), length(*subwords.target, target), clean);
    counts.add(fault);
    if (fault != text::PairFault::kNone) continue;
    kept.source.push_back(std::move(source));
    kept.target.push_back(std::move(target));
  }
  corpus.train = std::move(kept);
  note_unfit(corpus, counts, clean, "sub-words");
}

TranslationSubwords learn_subwords(const SentencePairs& train, const TranslationOptions& options) {
  const auto learn = [&](std::vector<const std::vector<std::string>*> sides) {
    return std::make_shared<const Subwords>(Subwords::learn(sides, options.subwords));
  };
  if (!options.joint) return {learn({&train.source}), learn({&train.target})};
  const auto both = learn({&train.source, &train.target});
  return {both, both};
}

const std::string& find_text(const TranslationSubwords::Texts& texts, const std::string& name) {
  const auto found = texts.find(name);
  check(found != texts.end(), ErrorKind::kBadInput, "[translation] expected {}, got none", name);
  return found->second;
}

}  // namespace

TranslationSubwords::Texts TranslationSubwords::texts() const {
  Texts texts{{"source.merges", source->codes()},
              {"source.dictionary", source->dictionary().text()}};
  if (target != source) {
    texts.emplace("target.merges", target->codes());
    texts.emplace("target.dictionary", target->dictionary().text());
  }
  return texts;
}

TranslationSubwords TranslationSubwords::parse(const Texts& texts) {
  const auto side = [&](const std::string& name) {
    const std::string& merges = find_text(texts, name + ".merges");
    const std::string& dictionary = find_text(texts, name + ".dictionary");
    return std::make_shared<const Subwords>(Subwords::parse(merges, dictionary));
  };
  const auto source = side("source");
  return {source, texts.contains("target.dictionary") ? side("target") : source};
}

TranslationData TranslationData::load(const TranslationOptions& options,
                                      TranslationSubwords subwords) {
  ParallelCorpus corpus = load_parallel(options);
  choose_pairs(corpus, options);
  if (!subwords.source) subwords = learn_subwords(corpus.train, options);
  if (options.clean_subwords) choose_by_subwords(corpus, subwords, *options.clean_subwords);
  return {std::move(corpus), std::move(subwords)};
}

TranslationData::TranslationData(ParallelCorpus corpus, TranslationSubwords subwords)
    : corpus_(std::move(corpus)), subwords_(std::move(subwords)) {}

SentencePairs TranslationData::sentences(task::Split split) const {
  if (split == task::Split::kTrain) return corpus_.train;
  return split == task::Split::kValid ? corpus_.valid : corpus_.test();
}

std::vector<std::string> TranslationData::raw_targets(task::Split split) const {
  return corpus_.raw_targets(split);
}

std::unique_ptr<PairStream> TranslationData::stream(task::Split split,
                                                    const data::PairBatchOptions& options) const {
  constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
  const char* name = kNames[static_cast<std::size_t>(split)];
  const SentencePairs sentences = this->sentences(split);
  auto pairs = std::make_shared<NumberedPairs>();
  for (std::size_t i = 0; i < sentences.source.size(); ++i) {
    const std::string where = fmt::format("{}, {}: sentence {}", corpus_.origin, name, i + 1);
    pairs->push_back({subwords_.source->encode(sentences.source[i], where),
                      subwords_.target->encode(sentences.target[i], where)});
  }
  data::StreamNotes notes{fmt::format("{} {}, {}", corpus_.name, name, corpus_.origin), {}};
  if (split == task::Split::kTrain) notes.left_out = corpus_.left_out;
  return std::make_unique<PairStream>(std::move(notes), std::move(pairs), options);
}

}  // namespace keel::models
