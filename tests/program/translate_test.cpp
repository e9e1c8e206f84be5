// keel predict, eval and text on translations: scores, n-best lists, and files and lines that are
// not as they should be.
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "frontend/io/safetensors.h"
#include "frontend/text/lines.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::write_bytes;

// A translation that has been trained a little.
struct TranslationRun {
  test::TempDir temp;
  std::string folder = temp / "run";

  explicit TranslationRun(test::Settings settings = {}) {
    settings.insert(settings.begin(), {"train.max_steps=30", "train.lr=1e-2", "model.longest=20",
                                       "model.beam=3", "train.eval_every=9e"});
    test::train_in(folder, test::small_job(settings, "translation"));
  }
  ProcessResult predict(const std::string& text, std::vector<std::string> more = {}) const {
    write_bytes(temp / "in", text);
    more.insert(more.begin(), {"predict", folder});
    return run_keel(more, {.in = temp / "in"});
  }
};

std::vector<std::string> fields_of(std::string line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; (at = line.find(" ||| ")) != std::string::npos; line.erase(0, at + 5)) {
    fields.push_back(line.substr(0, at));
  }
  fields.push_back(line);
  return fields;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST_CASE("predict: translations with scores, and the n best in the form of Moses" *
          doctest::test_suite("slow")) {
  const TranslationRun run;
  const std::string in = "s1 s2 s3\n\nnever-seen s5\n";
  const ProcessResult plain = run.predict(in), scored = run.predict(in, {"--scores"}),
                      best = run.predict(in, {"--n-best", "2"});
  const std::vector<std::string> answers = lines_of(plain.out), with_scores = lines_of(scored.out),
                                 ranked = lines_of(best.out);
  REQUIRE(answers.size() == 3);
  REQUIRE(with_scores.size() == 3);
  REQUIRE(ranked.size() == 2 + 1 + 2);  // of an empty line there is one
  CHECK(answers[1].empty());
  const Json json = json_of(run.predict(in, {"--n-best", "2", "--json"}));
  const std::vector<std::size_t> first{0, 2, 3};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const std::vector<std::string> fields = fields_of(ranked[first[i]]);
    REQUIRE(fields.size() == 4);
    CHECK(fields[0] == std::to_string(i));
    CHECK(fields[1] == answers[i]);
    CHECK(with_scores[i] == fields[3] + "\t" + answers[i]);
    CHECK(fields[2].starts_with("logp= "));
    CHECK(json[i][0].at("answer") == answers[i]);
    CHECK(json[i][0].at("score").get<double>() == doctest::Approx(std::stod(fields[3])));
    CHECK(json[i][0].at("log_probability").get<double>() ==
          doctest::Approx(std::stod(fields[2].substr(6))));
  }
  CHECK(std::stod(fields_of(ranked[0])[3]) >= std::stod(fields_of(ranked[1])[3]));
  check_refusal(run.predict(in, {"--n-best", "0"}), 2, "--n-best");
  check_refusal(run.predict(in, {"--n-best", "2", "--scores"}), 2, "--scores");
}

// Pairs as people write them, learned by heart.
struct RawRun {
  test::TempDir temp;
  std::string folder = temp / "run";
  const std::string german =
                        "Guten Tag, Herr M\u00FCller!\nDas ist's: 50 % \"gut\".\n"
                        "Er kam (leider) nicht.\nWer bist Du?\n",
                    english =
                        "Good day, Mr. Miller!\nIt's \"good\", isn't it?\n"
                        "He (sadly) didn't come.\nWho are You?\n";

  explicit RawRun(const test::Settings& settings = {}) {
    for (const char* split : {"train", "valid", "test"}) {
      write_bytes(temp / fmt::format("{}.de", split), german);
      write_bytes(temp / fmt::format("{}.en", split), english);
    }
    const test::Settings all{"data.source=" + temp.path().string(),
                             "model.corpus=files",
                             "model.lower_case=false",
                             "model.most_ratio=9",
                             "model.dropout=0",
                             "model.attention_dropout=0",
                             "model.relu_dropout=0",
                             "model.longest=20",
                             "train.lr=1e-2",
                             "train.epochs=1000",
                             "train.max_steps=200",
                             "train.eval_every=200u"};
    test::train_in(folder, test::small_job(test::operator+(all, settings), "translation"));
  }
  ProcessResult predict(const std::string& text, std::vector<std::string> more = {},
                        const std::string& path = "") const {
    write_bytes(temp / "in", text);
    more.insert(more.begin(), {"predict", path.empty() ? folder : path});
    return run_keel(more, {.in = temp / "in"});
  }
  std::string tokenized(const std::string& text, const char* language) const {
    write_bytes(temp / "in", text);
    return run_keel({"text", "tokenize", "--language", language}, {.in = temp / "in"}).out;
  }
  // The best checkpoint with another "form", or without one where that is empty.
  std::string with_form(const std::string& form) const {
    const std::string to = temp / "other.safetensors";
    io::TensorFile file = io::read_safetensors(fs::path(folder) / "checkpoints/best.safetensors",
                                               {.require_checksums = true});
    CHECK(file.metadata.erase("asset.form") == 1);
    if (!form.empty()) file.metadata["asset.form"] = form;
    io::write_safetensors(to, file);
    return to;
  }
};

TEST_CASE("predict: lines as people write them, and translations too" *
          doctest::test_suite("slow")) {
  const RawRun run;
  const ProcessResult raw = run.predict(run.german);
  CHECK(raw.out == run.english);
  CHECK(raw.err.empty());
  const std::string said = run.tokenized(run.english, "en");
  CHECK(holds(said, "isn &apos;t it ?"));
  CHECK(run.predict(run.tokenized(run.german, "de"), {"--tokenized"}).out == said);
  CHECK(run.predict(run.german, {"--tokenized"}).out != run.english);
  CHECK(run.predict(run.german, {"--set", "model.tokenized=true"}).out ==
        run.predict(run.german, {"--tokenized"}).out);
  // A letter and its accent apart are the letter with it.
  CHECK(run.predict("Guten Tag, Herr Mu\u0308ller!\n").out == "Good day, Mr. Miller!\n");
  const Json json = json_of(run.predict("Wer bist Du?\n", {"--json", "--n-best", "2"}));
  CHECK(json[0][0].at("answer") == "Who are You?");
  CHECK(run.predict("Wer bist Du?\n", {"--scores"}).out.ends_with("\tWho are You?\n"));
}

TEST_CASE("predict: a checkpoint that does not say how its text was prepared" *
          doctest::test_suite("slow")) {
  const RawRun run;
  const std::string old = run.with_form("");
  const ProcessResult raw = run.predict(run.german, {}, old);
  CHECK(raw.code == 0);
  CHECK(raw.out == run.predict(run.german, {"--tokenized"}).out);
  CHECK(raw.err ==
        "note: the checkpoint does not say how its training text was prepared: lines are taken as "
        "tokens, and translations are tokens (--tokenized)\n");
  CHECK(run.predict(run.german, {"--tokenized"}, old).err.empty());
  check_refusal(run.predict("a\n", {}, run.with_form("raw de")), 3, "form: expected 'tokens'");
}

TEST_CASE("predict: of a model trained on tokens lines are tokens" * doctest::test_suite("slow")) {
  const RawRun run({"model.tokenized=true", "train.max_steps=20"});
  const ProcessResult plain = run.predict(run.german);
  CHECK(plain.code == 0);
  CHECK(plain.err.empty());
  CHECK(plain.out == run.predict(run.german, {"--tokenized"}).out);
  const io::TensorFile file = io::read_safetensors(
      fs::path(run.folder) / "checkpoints/best.safetensors", {.require_checksums = true});
  CHECK(file.metadata.at("asset.form") == "tokens");
}

TEST_CASE("predict: a task without a search has no scores") {
  const test::TempDir temp;
  test::train_in(temp / "run", test::small_job({"train.max_steps=2"}, "dependency_parser"));
  write_bytes(temp / "in", "det1_DT noun3_NN\n");
  check_refusal(run_keel({"predict", temp / "run", "--scores"}, {.in = temp / "in"}), 2,
                "predict: dependency_parser does not rank answers");
  check_refusal(run_keel({"predict", temp / "run", "--tokenized"}, {.in = temp / "in"}), 2,
                "predict --tokenized: expected a run of translation, got dependency_parser");
}

TEST_CASE("predict: lines that no training has seen" * doctest::test_suite("slow")) {
  const TranslationRun run({"model.merges=30", "model.longest=5"});
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += fmt::format("s{} ", i % 50);
  const ProcessResult result = run.predict(thousand + "\n\u00fc\u4f60 x\n\ts1\n" + thousand + "\n");
  CHECK(result.code == 0);
  const std::vector<std::string> answers = lines_of(result.out);
  REQUIRE(answers.size() == 4);
  CHECK(answers[0] == answers[3]);
  CHECK(run.predict(thousand + "\n").out == answers[0] + "\n");
  check_refusal(run.predict("s1\ns2 \xFF\n"), 3,
                "standard input: line 2: expected UTF-8, got ff at byte 4");
  check_refusal(run.predict("s1 s2@@\n", {"--tokenized"}), 3,
                "standard input: line 1: expected words that do not end in @@");
  CHECK(run.predict("\xEF\xBB\xBFs1 s2\n").out == run.predict("s1 s2\n").out);
}

TEST_CASE("predict: more lines than are looked at together" * doctest::test_suite("slow")) {
  const TranslationRun run({"model.longest=3", "model.beam=2", "model.merges=30"});
  std::string many;
  for (int i = 0; i < 2100; ++i) many += fmt::format("s{} s{}\n", i % 40, i % 7);
  const std::vector<std::string> answers = lines_of(run.predict(many).out),
                                 best = lines_of(run.predict(many, {"--n-best", "1"}).out);
  REQUIRE(answers.size() == 2100);
  REQUIRE(best.size() == 2100);
  for (const std::size_t i : {0, 511, 512, 2047, 2048, 2099}) {
    CAPTURE(i);
    CHECK(answers[i] + "\n" == run.predict(fmt::format("s{} s{}\n", i % 40, i % 7)).out);
    CHECK(fields_of(best[i])[0] == std::to_string(i));
    CHECK(fields_of(best[i])[1] == answers[i]);
  }
  const std::string out = run.temp / "said";
  CHECK(run.predict(many, {"--output", out}).out.empty());
  CHECK(lines_of(read_bytes(out)) == answers);
  CHECK(json_of(run.predict(many, {"--json"})).size() == 2100);
  // As JSON, several answers to a line or one, a file is JSON as a whole.
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{}, {"--scores"}, {"--n-best", "2"}}) {
    std::vector<std::string> more{"--json", "--output", out};
    more.insert(more.end(), how.begin(), how.end());
    CHECK(run.predict("s1 s2\n\ns3\n", more).out.empty());
    CHECK(Json::parse(read_bytes(out), nullptr, false).size() == 3);
  }
  // The answers before a line that cannot be read are there.
  const ProcessResult broken = run.predict(many + "s1 \xFF\n");
  CHECK(broken.code == 3);
  CHECK(holds(broken.err, "standard input: line 2101: expected UTF-8, got ff at byte 4"));
  CHECK(lines_of(broken.out).size() == 2048);
  CHECK(holds(run.predict(many + "s1@@\n", {"--tokenized"}).err,
              "standard input: line 2101: expected words that do not end in @@"));
}

TEST_CASE("eval: BLEU with its parts, and the translations in a file") {
  const TranslationRun run;
  const std::string out = run.temp / "said";
  const Json json = json_of(run_keel({"eval", run.folder, "--json", "--output", out}));
  CHECK(json.at("answers") == 12);
  const std::vector<std::string> said = lines_of(read_bytes(out));
  CHECK(said.size() == 12);
  for (const char* name : {"bleu", "bleu_compound", "bleu_13a"}) {
    CHECK(json.at("details").contains(name));
  }
  // The output of keel text for the same lines.
  write_bytes(run.temp / "reference", read_bytes(test::small_pairs() / "test_2016_flickr.en"));
  const ProcessResult text =
      run_keel({"text", "bleu", out, run.temp / "reference", "--tokenize", "13a"});
  const std::string parts = json.at("details").at("bleu_13a").get<std::string>();
  CHECK(holds(text.out, parts.substr(0, parts.find(" nrefs"))));
  CHECK(holds(parts, "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp"));
  const ProcessResult as_text = run_keel({"eval", run.folder});
  CHECK(holds(as_text.out, "\nbleu: BLEU = "));
  CHECK(holds(as_text.out, "\nbleu_13a: " + parts + "\n"));
}

TEST_CASE("eval: how answers are found, and how many, may be said anew") {
  const TranslationRun run({"model.translated_rows=3"});
  const auto answers = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", run.folder, "--split", "valid", "--json"});
    return json_of(run_keel(more));
  };
  CHECK(answers({}).at("answers") == 3);
  const Json all = answers({"--set", "model.translated_rows=1000", "--set", "model.beam=1"});
  CHECK(all.at("answers") == all.at("rows"));
  check_refusal(run_keel({"eval", run.folder, "--set", "model.beam=0"}), 2, "beam");
}

// Scores of references as people write them, and of whole compounds, which papers' tokens hide.
TEST_CASE("eval: 13a is of text, and compounds of tokens made anew" * doctest::test_suite("slow")) {
  const TranslationRun run({"model.languages=de-en"});
  fs::copy(test::small_pairs(), run.temp / "data");
  write_bytes(run.temp / "data/test_2016_flickr.de", "s1 s2\n");
  write_bytes(run.temp / "data/test_2016_flickr.en", "It's a well-known dog, isn't it?\n");
  for (const std::string split : {"train", "valid", "test"}) {
    write_bytes(run.temp / ("data/" + split + ".de"), "s1 s2 s3 s4 s5\n");
    write_bytes(run.temp / ("data/" + split + ".en"), "it isn't a dog .\n");
  }
  const auto reference_length = [&](const char* name, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"eval", run.folder, "--data", run.temp / "data", "--json"});
    const std::string parts = json_of(run_keel(more)).at("details").at(name).get<std::string>();
    const std::size_t begin = parts.find("ref_len=");
    return parts.substr(begin, parts.find(')') - begin);
  };
  // it &apos;s a well-known dog , isn &apos;t it ?
  CHECK(reference_length("bleu") == "ref_len=10");
  // it 's a well ##AT##-##AT## known dog , isn 't it ?
  CHECK(reference_length("bleu_compound") == "ref_len=12");
  // it's a well-known dog , isn't it ?
  CHECK(reference_length("bleu_13a") == "ref_len=8");
  // The tokens, however they were made, are: it isn 't a dog .
  const std::vector<std::string> tokens{"--set", "model.corpus=files", "--set",
                                        "model.tokenized=true"};
  CHECK(reference_length("bleu", tokens) == "ref_len=5");
  CHECK(reference_length("bleu_compound", tokens) == "ref_len=6");
}

TEST_CASE("eval: a test set with words of its own, and one whose sides are of unequal length") {
  const TranslationRun run;
  fs::copy(test::small_pairs(), run.temp / "data");
  write_bytes(run.temp / "data/test_2016_flickr.de", "neu unbekannt\ns1\n");
  write_bytes(run.temp / "data/test_2016_flickr.en", "new unknown\nt10\n");
  const Json json = json_of(run_keel({"eval", run.folder, "--data", run.temp / "data", "--json"}));
  CHECK(json.at("rows") == 2);
  CHECK(json.at("perplexity") > 1);
  write_bytes(run.temp / "data/test_2016_flickr.en", "new unknown\n");
  check_refusal(run_keel({"eval", run.folder, "--data", run.temp / "data"}), 3, "expected");
  write_bytes(run.temp / "data/test_2016_flickr.en", "new unknown\n\xC3\n");
  check_refusal(run_keel({"eval", run.folder, "--data", run.temp / "data"}), 3,
                "test_2016_flickr.en");
}

TEST_CASE("eval: a checkpoint with the dictionary or the merges of another run" *
          doctest::test_suite("slow")) {
  const TranslationRun words, merges({"model.merges=30"}), more({"model.merges=60"});
  const auto with_assets_of = [](const TranslationRun& run, const TranslationRun& other) {
    const fs::path from = fs::path(run.folder) / "checkpoints/best.safetensors",
                   to = run.temp / "mixed.safetensors";
    io::TensorFile file = io::read_safetensors(from, {.require_checksums = true});
    const io::TensorFile foreign = io::read_safetensors(
        fs::path(other.folder) / "checkpoints/best.safetensors", {.require_checksums = true});
    for (auto& [key, value] : file.metadata) {
      if (key.starts_with("asset.")) value = foreign.metadata.at(key);
    }
    io::write_safetensors(to, file);
    return run_keel({"eval", to});
  };
  check_refusal(with_assets_of(words, merges), 3, "mixed.safetensors: tensor target/table");
  check_refusal(with_assets_of(merges, more), 3, "mixed.safetensors: tensor target/table");
}

// Interrupts the program when it has worked for a while, and says how it ended.
ProcessResult interrupted(const std::vector<std::string>& arguments, int signal) {
  using namespace std::chrono_literals;
  test::Process process(arguments);
  std::this_thread::sleep_for(500ms);
  REQUIRE_FALSE(process.has_ended());
  process.signal(signal);
  return process.wait();
}

// The same for a program that handles the signal and reads that file.
ProcessResult interrupted_reader(const std::vector<std::string>& arguments, int signal,
                                 const fs::path& in) {
  using namespace std::chrono_literals;
  test::Process process(arguments, {.in = in});
  process.await_handler(signal);
  std::this_thread::sleep_for(500ms);
  REQUIRE_FALSE(process.has_ended());
  process.signal(signal);
  return process.wait();
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST_CASE("translation: interrupted decoding and learning of merges leave files as they were" *
          doctest::test_suite("slow")) {
  const TranslationRun run({"model.longest=3000"});
  std::string many;
  for (int i = 0; i < 200000; ++i) many += fmt::format("s{} word{} w{}\n", i % 60, i, i * 7919);
  write_bytes(run.temp / "many", many);
  write_bytes(run.temp / "codes", "as it was");
  const std::set<std::string> before = files_in(run.temp.path());
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const ProcessResult decoding =
        interrupted_reader({"predict", run.folder, "--threads", "1"}, signal, run.temp / "many");
    CHECK(decoding.code == 128 + signal);
    CHECK(holds(decoding.err, "interrupted: 0 lines were answered"));
    CHECK(decoding.out.empty());
    CHECK(interrupted({"text", "bpe", "learn", run.temp / "many", "--merges", "1000000", "--output",
                       run.temp / "codes"},
                      signal)
              .code == -signal);
    CHECK(read_bytes(run.temp / "codes") == "as it was");
  }
  CHECK(files_in(run.temp.path()) == before);
}

}  // namespace
}  // namespace keel::cli
