// Pairs as numbers and batches: what a network is fed with, sub-words, and what is left out.
#include <algorithm>
#include <map>
#include <numeric>

#include "models/translation/data.h"
#include "models/translation/model.h"
#include "tests/support/input_checks.h"
#include "tests/support/small_run.h"

namespace keel::models {
namespace {

using task::Split;
using test::refuses;
using Numbers = std::vector<std::int32_t>;
using text::Dictionary;

template <class T>
std::vector<T> values_of(const task::Batch& batch, PairInput value) {
  const std::span<const T> values = batch.values[value].as<T>();
  return {values.begin(), values.end()};
}

// Its targets come to a longer bucket than its sources.
data::DataLoader small_stream(const task::StreamOptions& options) {
  const Numbers nine{4, 5, 6, 7, 8, 9, 10, 11, 2};
  return {
      std::make_shared<PairRows>(data::SplitNotes{"small"},
                                 NumberedPairs{{{7, 8, 2}, {9, 2}}, {{2}, nine}, {{4, 2}, {2}}}),
      options};
}

// The rows of a split as training numbers them.
data::DataLoader pair_stream(const TranslationData& of, Split split,
                             const task::StreamOptions& options) {
  ParallelCorpus corpus = of.corpus;
  data::SplitNotes notes = corpus.notes(split);
  const std::string where = fmt::format("{}, {}", corpus.origin, data::name_of(split));
  return {std::make_shared<PairRows>(std::move(notes),
                                     numbered_pairs(corpus.take(split), of.subwords, where)),
          options};
}

TEST_CASE("pair rows: source, mask, what goes in and what comes out") {
  data::DataLoader stream = small_stream({.batch = 80});
  REQUIRE(stream.steps(0) == 1);
  const task::Batch& batch = stream.at(0, 0);
  CHECK(batch.sizes == task::Sizes{5, 8, 16});
  CHECK(batch.rows == std::vector<std::int64_t>{1, 2, 0, -1, -1});
  CHECK(batch.items == 12);
  CHECK(stream.items(0, 0) == 12);
  constexpr std::int32_t kPad = Dictionary::kPad;
  Numbers source(40, kPad), in(80, kPad), out(80, kNoToken);
  source[0] = 2;
  std::ranges::copy(Numbers{4, 2}, source.begin() + 8);
  std::ranges::copy(Numbers{7, 8, 2}, source.begin() + 16);
  CHECK(values_of<std::int32_t>(batch, kSource) == source);
  std::ranges::copy(Numbers{2, 4, 5, 6, 7, 8, 9, 10, 11}, in.begin());
  std::ranges::copy(Numbers{4, 5, 6, 7, 8, 9, 10, 11, 2}, out.begin());
  std::ranges::copy(Numbers{2}, in.begin() + 16);
  std::ranges::copy(Numbers{2}, out.begin() + 16);
  std::ranges::copy(Numbers{2, 9}, in.begin() + 32);
  std::ranges::copy(Numbers{9, 2}, out.begin() + 32);
  CHECK(values_of<std::int32_t>(batch, kTargetIn) == in);
  CHECK(values_of<std::int32_t>(batch, kTargetOut) == out);
  const auto source_mask = values_of<std::uint8_t>(batch, kSourceMask);
  const auto target_mask = values_of<std::uint8_t>(batch, kTargetMask);
  CHECK(std::accumulate(source_mask.begin(), source_mask.end(), 0) == 6);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK((target_mask[i] == 1) == (out[i] != kNoToken));
  CHECK(stream.shapes() == std::vector<task::Sizes>{{5, 8, 16}});
}

TEST_CASE("pair rows: the types that a network declares") {
  data::DataLoader stream = small_stream({});
  const task::Batch& batch = stream.at(0, 0);
  const std::vector<task::Input> inputs = pair_inputs(batch.sizes);
  REQUIRE(inputs.size() == batch.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CHECK(inputs[i].type.dtype == batch.values[i].dtype());
    CHECK(inputs[i].type.shape == batch.values[i].shape());
  }
}

TEST_CASE("pair rows: single rows") {
  data::DataLoader stream = small_stream({});
  const task::Batch& batch = stream.pick(std::vector<std::int64_t>{0, 1});
  CHECK(batch.sizes == task::Sizes{2, 8, 16});
  CHECK(batch.rows == std::vector<std::int64_t>{0, 1});
  CHECK(values_of<std::int32_t>(batch, kSource) ==
        Numbers{7, 8, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(refuses(ErrorKind::kUsage, "row: expected 0 to 2, got 3",
                [&] { stream.pick(std::vector<std::int64_t>{3}); }));
}

TEST_CASE("translation data: lex200 as words, every pair once, all tokens counted") {
  const TranslationData data = TranslationData::load({});
  const Dictionary& dictionary = data.subwords.source->dictionary();
  CHECK(data.subwords.source == data.subwords.target);
  CHECK(dictionary.size() == 408);  // 4 + 200 + 200 + 3 words, and a filler
  CHECK(dictionary.first_filler() == 407);
  for (const Split split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const bool train = split == Split::kTrain;
    task::StreamOptions options{.batch = 1024};
    if (train) options.shuffle = 3;
    data::DataLoader stream = pair_stream(data, split, options);
    ParallelCorpus corpus = data.corpus;
    const SentencePairs sentences = corpus.take(split);
    CHECK(stream.rows() == std::ssize(sentences.source));
    double tokens = 0, expected = 0;
    std::vector<int> times(sentences.source.size());
    for (std::int64_t step = 0; step < stream.steps(1); ++step) {
      const task::Batch& batch = stream.at(1, step);
      tokens += batch.items;
      CHECK(batch.items == stream.items(1, step));
      for (std::int64_t row : batch.rows) {
        if (row >= 0) ++times[static_cast<std::size_t>(row)];
      }
    }
    for (const std::string& line : sentences.target) {
      expected += static_cast<double>(dictionary.encode(line).size());
    }
    CHECK(tokens == expected);
    CHECK(std::ranges::all_of(times, [](int n) { return n == 1; }));
    CHECK(stream.skipped().empty());
  }
}

TEST_CASE("translation data: a batch is a function of seed, epoch and step") {
  const TranslationData data = TranslationData::load({.train_rows = 2000});
  data::DataLoader first = pair_stream(data, Split::kTrain, {.batch = 512, .shuffle = 1});
  data::DataLoader second = pair_stream(data, Split::kTrain, {.batch = 512, .shuffle = 1});
  for (std::int64_t step = 0; step < first.steps(0); ++step) second.at(0, step);
  const task::Batch& here = first.at(3, 5);
  const task::Batch& there = second.at(3, 5);
  CHECK(here.rows == there.rows);
  CHECK(values_of<std::int32_t>(here, kTargetOut) == values_of<std::int32_t>(there, kTargetOut));
  CHECK(first.at(2, 5).rows !=
        pair_stream(data, Split::kTrain, {.batch = 512, .shuffle = 2}).at(1, 5).rows);
  CHECK(first.shapes().size() <= 16);
}

TEST_CASE("translation data: pairs may be left out by their lengths in sub-words") {
  const test::TempDir folder;
  std::string source, target;
  for (int i = 0; i < 10; ++i) {
    source += "ab\nabcdef\nabc\n";
    target += "ab\nabcdef\nab\n";
  }
  for (const std::string part : {"train", "valid", "test"}) {
    test::write_bytes(folder / (part + ".de"), source);
    test::write_bytes(folder / (part + ".en"), target);
  }
  // The one merge is a b: of ab, abcdef and abc it makes 1, 5 and 2 symbols.
  const TranslationOptions options{
      .source = folder.path(),
      .corpus = {.corpus = "iwslt14"},
      .clean_subwords = text::CleanOptions{.max_tokens = 4, .max_ratio = 1.2},
      .subwords = {.merges = 1}};
  const TranslationData data = TranslationData::load(options);
  const data::DataLoader stream = pair_stream(data, Split::kTrain, {.shuffle = 1});
  CHECK(stream.rows() == 10);
  CHECK(data.corpus.train.source == std::vector<std::string>(10, "ab"));
  REQUIRE(stream.skipped().size() == 2);
  CHECK(stream.skipped()[0].why == "a side of more than 4 sub-words");
  CHECK(stream.skipped()[1].why == "one side longer than 1.2 times the other, in sub-words");
  CHECK(pair_stream(data, Split::kValid, {.shuffle = 1}).rows() == 30);
}

TEST_CASE("translation data: model.most_subwords holds for folders") {
  const auto skipped = [](const test::Settings& settings) {
    const train::Job job = test::small_job(settings, "translation");
    std::string said;
    for (const task::Skipped& left :
         job.splits().stream(Split::kTrain, {.batch = 512, .shuffle = 1})->skipped()) {
      said += left.why + "; ";
    }
    return said;
  };
  CHECK(skipped({"model.most_subwords=8"}).find("more than 8 sub-words") != std::string::npos);
  CHECK(skipped({}).find("sub-words") == std::string::npos);
  CHECK(skipped({"model.most_subwords=8", "data.source=builtin"}) == "");
}

TEST_CASE("translation data: what is left out of training is said") {
  const test::TempDir folder;
  std::string source, target;
  for (int i = 0; i < 10; ++i) {
    source += "a\nb c d e f g\nh i j\nk l m\n";
    target += "a\nb c d e f\nh i\nk l m\n";
  }
  for (const std::string part : {"train", "valid", "test"}) {
    test::write_bytes(folder / (part + ".de"), source);
    test::write_bytes(folder / (part + ".en"), target);
  }
  TranslationOptions options{.source = folder.path(),
                             .corpus = {.corpus = "iwslt14"},
                             .clean = {.min_tokens = 2, .max_tokens = 5, .max_ratio = 1.2},
                             .train_rows = 4};
  const TranslationData data = TranslationData::load(options);
  const data::DataLoader stream = pair_stream(data, Split::kTrain, {.shuffle = 1});
  CHECK(stream.rows() == 4);
  std::string said;
  for (const task::Skipped& left : stream.skipped()) {
    said += fmt::format("{} {}; ", left.rows, left.why);
  }
  CHECK(said ==
        "10 a side of fewer than 2 words; 10 a side of more than 5 words; 10 one side "
        "longer than 1.2 times the other, in words; 6 beyond the first 4; ");
  CHECK(pair_stream(data, Split::kValid, {.shuffle = 1}).rows() == 40);
  CHECK(pair_stream(data, Split::kValid, {.shuffle = 1}).skipped().empty());
  options.clean = {.min_tokens = 90};
  CHECK(refuses(ErrorKind::kBadInput, "expected training pairs, got none of 40 that is fit",
                [&] { TranslationData::load(options); }));
  CHECK(refuses(ErrorKind::kUsage, "train_rows: expected 0 or more, got -1",
                [] { TranslationData::load({.train_rows = -1}); }));
}

// A little data set in which the same words stand on both sides.
void write_corpus(const test::TempDir& folder) {
  for (const std::string part : {"train", "valid", "test"}) {
    test::write_bytes(folder / (part + ".de"), "low lower slow\nlow low\n");
    test::write_bytes(folder / (part + ".en"), "high higher high\nhigh x\n");
  }
}

TEST_CASE("translation data: sub-words of both sides, jointly or apart") {
  const test::TempDir folder;
  write_corpus(folder);
  TranslationOptions options{.source = folder.path(), .corpus = {.corpus = "iwslt14"}};
  options.subwords.merges = 4;
  const TranslationData joint = TranslationData::load(options);
  CHECK(joint.subwords.source == joint.subwords.target);
  options.joint = false;
  const TranslationData apart = TranslationData::load(options);
  CHECK(apart.subwords.source != apart.subwords.target);
  CHECK(apart.subwords.source->dictionary().id("high") == Dictionary::kUnk);
  for (const TranslationData* data : {&joint, &apart}) {
    for (const bool source : {true, false}) {
      const Subwords& side = source ? *data->subwords.source : *data->subwords.target;
      const std::string line = source ? "low lower slow" : "high higher high";
      const Numbers ids = side.encode(line, "here");
      CHECK(ids.back() == Dictionary::kEnd);
      CHECK(std::ranges::count(ids, Dictionary::kUnk) == 0);
      CHECK(side.decode(ids) == line);
    }
  }
}

TEST_CASE("translation data: dictionaries of the most frequent symbols, of each side or of both") {
  const test::TempDir folder;
  write_corpus(folder);
  TranslationOptions options{.source = folder.path(), .corpus = {.corpus = "iwslt14"}};
  options.joint = false;
  options.source_symbols = 1;
  options.target_symbols = 2;
  const auto words = [](const Subwords& side) {
    return side.dictionary().first_filler() - Dictionary::kSpecials;
  };
  const TranslationSubwords apart = TranslationData::load(options).subwords;
  CHECK(words(*apart.source) == 1);
  CHECK(words(*apart.target) == 2);
  CHECK(apart.source->dictionary().id("low") == Dictionary::kSpecials);
  CHECK(apart.target->dictionary().id("high") == Dictionary::kSpecials);
  CHECK(apart.target->dictionary().id("x") == Dictionary::kUnk);
  options.joint = true;
  options.source_symbols = 2;
  const TranslationSubwords joint = TranslationData::load(options).subwords;
  CHECK(words(*joint.source) == 2);
  CHECK(joint.source->dictionary().id("low") != Dictionary::kUnk);
  CHECK(joint.source->dictionary().id("high") != Dictionary::kUnk);
}

TEST_CASE("translation data: as many merges as make the symbols that are asked for") {
  const std::vector<std::string> side{"ab ac bd ad", "ab ac bd bc cb"};
  const auto learned = [&](std::int64_t symbols) {
    return Subwords::learn(std::vector{&side}, {.fit_merges = true, .most_symbols = symbols});
  };
  // a@@, b@@, c@@, b, c and d are the characters; three words come twice.
  for (const std::int64_t wanted : {6, 7, 8, 9, 1000}) {
    CAPTURE(wanted);
    const Subwords subwords = learned(wanted);
    CHECK(subwords.dictionary().first_filler() - Dictionary::kSpecials ==
          std::min<std::int64_t>(wanted, 9));
    const Numbers ids = subwords.encode("ab cd", "here");
    CHECK(std::ranges::count(ids, Dictionary::kUnk) == 0);
  }
  CHECK(learned(1000).encode("ab", "here").size() == 2);
  CHECK(refuses(ErrorKind::kUsage, "expected room for the 6 characters", [&] { learned(5); }));
}

TEST_CASE("translation data: a sub-word counts as often as its words occur") {
  const std::vector<std::string> side{"ab ab ab ab ab", "yq yr", "ab yq"};
  const Subwords subwords = Subwords::learn(std::vector{&side}, {.merges = 1});
  const Dictionary& dictionary = subwords.dictionary();
  const auto count = [&](const char* symbol) { return dictionary.count(dictionary.id(symbol)); };
  CHECK(count("ab") == 6);
  CHECK(count("y@@") == 3);
  CHECK(count("q") == 2);
  CHECK(count("r") == 1);
}

TEST_CASE("translation data: a limit of 0 leaves no training pair out") {
  const test::TempDir folder;
  std::string source, target;
  for (int i = 0; i < 200; ++i) source += "a ";
  source += "\na a a a a a\na\n";
  target = "b\nb\nb\n";
  for (const std::string part : {"train", "valid", "test"}) {
    test::write_bytes(folder / (part + ".de"), source);
    test::write_bytes(folder / (part + ".en"), target);
  }
  const auto pairs = [&](const test::Settings& limits) {
    Translation translation;
    translation.set_option("corpus", "iwslt14");
    for (const std::string& limit : limits) {
      const std::size_t equals = limit.find('=');
      translation.set_option(limit.substr(0, equals), limit.substr(equals + 1));
    }
    const auto splits = translation.prepare({.source = folder.path()}, nullptr).splits;
    return splits->stream(Split::kTrain, {.batch = 4096})->rows();
  };
  CHECK(pairs({}) == 1);
  CHECK(pairs({"most_ratio=0"}) == 2);
  CHECK(pairs({"most_words=0"}) == 1);
  CHECK(pairs({"most_ratio=0", "most_words=0"}) == 3);
}

TEST_CASE("translation data: sub-words kept as texts give the same numbers") {
  const test::TempDir folder;
  write_corpus(folder);
  TranslationOptions options{.source = folder.path(), .corpus = {.corpus = "iwslt14"}};
  options.subwords.merges = 4;
  for (const bool joint : {true, false}) {
    options.joint = joint;
    const TranslationData data = TranslationData::load(options);
    const TranslationSubwords::Texts texts = data.subwords.texts();
    CHECK(texts.size() == (joint ? 2 : 4));
    const TranslationSubwords kept = TranslationSubwords::parse(texts);
    CHECK((kept.source == kept.target) == joint);
    const TranslationData again = TranslationData::load(options, kept);
    CHECK(again.subwords.source == kept.source);
    CHECK(kept.target->encode("higher low", "") == data.subwords.target->encode("higher low", ""));
  }
  CHECK(refuses(ErrorKind::kBadInput, "expected source.merges, got none",
                [] { TranslationSubwords::parse({}); }));
  CHECK(refuses(ErrorKind::kBadInput,
                "dictionary: line 1: expected a symbol, a space and its count", [] {
                  TranslationSubwords::parse({{"source.merges", ""}, {"source.dictionary", "a\n"}});
                }));
}

TEST_CASE("translation data: words that end as continued sub-words do are refused") {
  const test::TempDir folder;
  write_corpus(folder);
  test::write_bytes(folder / "valid.en", "high\nhi@@ high\n");
  Translation translation;
  translation.set_option("corpus", "iwslt14");
  translation.set_option("merges", "4");
  const auto splits = translation.prepare({.source = folder.path()}, nullptr).splits;
  CHECK(refuses(ErrorKind::kBadInput,
                ", valid: sentence 2: expected words that do not end in @@, got 'hi@@'",
                [&] { splits->stream(Split::kValid, {}); }));
}

}  // namespace
}  // namespace keel::models
