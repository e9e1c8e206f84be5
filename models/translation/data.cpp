#include "models/translation/data.h"

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
    if (rows > 0) corpus.skipped.push_back({rows, std::move(why)});
  };
  note(counts.too_short, fmt::format("a side of fewer than {} {}", clean.min_tokens, unit));
  note(counts.too_long, fmt::format("a side of more than {} {}", clean.max_tokens, unit));
  note(counts.bad_ratio,
       fmt::format("one side longer than {} times the other, in {}", clean.max_ratio, unit));
  check(!corpus.train.source.empty(), ErrorKind::kBadInput,
        "[translation] {}: expected training pairs, got none of {} that is fit", corpus.origin,
        counts.pairs);
}

// Keeps the training pairs whose lengths (source, target) -> PairFault allow it.
template <class Judge>
text::CleanCounts choose_pairs(ParallelCorpus& corpus, const Judge& judge) {
  SentencePairs kept;
  text::CleanCounts counts;
  for (std::size_t i = 0; i < corpus.train.source.size(); ++i) {
    std::string &source = corpus.train.source[i], &target = corpus.train.target[i];
    const text::PairFault fault = judge(source, target);
    counts.add(fault);
    if (fault != text::PairFault::kNone) continue;
    kept.source.push_back(std::move(source));
    kept.target.push_back(std::move(target));
  }
  corpus.train = std::move(kept);
  return counts;
}

void choose_by_words(ParallelCorpus& corpus, const TranslationOptions& options) {
  const text::CleanCounts counts =
      choose_pairs(corpus, [&](const std::string& source, const std::string& target) {
        return text::judge_pair(words_in(source), words_in(target), options.clean);
      });
  note_unfit(corpus, counts, options.clean, "words");
}

void choose_by_subwords(ParallelCorpus& corpus, const TranslationSubwords& subwords,
                        const text::CleanOptions& clean) {
  const auto length = [&](const Subwords& side, const std::string& sentence) {
    return std::ssize(side.encode(sentence, corpus.name)) - 1;  // without its end
  };
  const text::CleanCounts counts =
      choose_pairs(corpus, [&](const std::string& source, const std::string& target) {
        return text::judge_pair(length(*subwords.source, source), length(*subwords.target, target),
                                clean);
      });
  note_unfit(corpus, counts, clean, "sub-words");
}

void keep_first_pairs(ParallelCorpus& corpus, std::int64_t rows) {
  std::vector<task::Skipped> same;  // both sides have as many
  data::keep_first(corpus.train.source, rows, corpus.skipped);
  data::keep_first(corpus.train.target, rows, same);
}

TranslationSubwords learn_subwords(const SentencePairs& train, const TranslationOptions& options) {
  const auto learn = [&](std::vector<const std::vector<std::string>*> sides, std::int64_t most) {
    SubwordOptions of_sides = options.subwords;
    of_sides.most_symbols = most;
    return std::make_shared<const Subwords>(Subwords::learn(sides, of_sides));
  };
  if (!options.joint) {
    return {learn({&train.source}, options.source_symbols),
            learn({&train.target}, options.target_symbols)};
  }
  const auto both = learn({&train.source, &train.target}, options.source_symbols);
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
  if (corpus.only) return {std::move(corpus), std::move(subwords)};  // nothing is trained
  if (options.source != "builtin") choose_by_words(corpus, options);
  keep_first_pairs(corpus, options.train_rows);
  if (!subwords.source) subwords = learn_subwords(corpus.train, options);
  if (options.clean_subwords) choose_by_subwords(corpus, subwords, *options.clean_subwords);
  return {std::move(corpus), std::move(subwords)};
}

NumberedPairs numbered_pairs(const SentencePairs& sentences, const TranslationSubwords& subwords,
                             const std::string& where) {
  NumberedPairs pairs;
  for (std::size_t i = 0; i < sentences.source.size(); ++i) {
    const std::string place = fmt::format("{}: sentence {}", where, i + 1);
    pairs.push_back({subwords.source->encode(sentences.source[i], place),
                     subwords.target->encode(sentences.target[i], place)});
  }
  return pairs;
}

}  // namespace keel::models
