// keel predict, and what keel eval --output writes.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>

#include "frontend/io/safetensors.h"
#include "models/dependency_parser/data.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using test::read_bytes;
using test::write_bytes;

// A run of a task in miniature.
struct SmallRun {
  test::TempDir temp;
  std::string folder = temp / "run";

  explicit SmallRun(const char* model, const test::Settings& more = {}) {
    using test::operator+;
    const test::Settings settings{"train.max_steps=30", "train.lr=1e-2"};
    test::train_in(folder, test::small_job(settings + more, model));
  }
  ProcessResult predict(const std::string& text, std::vector<std::string> more = {}) const {
    write_bytes(temp / "in", text);
    more.insert(more.begin(), {"predict", folder});
    return run_keel(more, {.in = temp / "in"});
  }
};

TEST_CASE("predict: a class for each line, an empty one too" * doctest::test_suite("slow")) {
  const SmallRun run("text_classifier");
  const ProcessResult result = run.predict("good5 word1\n\nbad6\r\nword9 word2");
  CHECK(result.code == 0);
  CHECK(result.out.size() == 8);
  CHECK(std::ranges::count(result.out, '\n') == 4);
  CHECK(result.out.find_first_not_of("01\n") == std::string::npos);
  const Json json = json_of(run.predict("good5 word1\n\nbad6\nword9 word2", {"--json"}));
  CHECK(fmt::format("{}\n", fmt::join(json.get<std::vector<std::string>>(), "\n")) == result.out);
  const ProcessResult nothing = run.predict("");
  CHECK(nothing.code == 0);
  CHECK(nothing.out.empty());
  const SmallRun other("order_embeddings");
  check_refusal(run_keel({"eval", other.folder, "--output", run.temp / "out"}), 2,
                "eval --output: order_embeddings has nothing to write");
}

TEST_CASE("predict: lines are numbered through, over those that are answered together") {
  const test::TempDir data;
  for (const char* file : {"train.de", "train.en", "valid.de", "valid.en", "test.de", "test.en"}) {
    write_bytes(data / file, "a b c\nab bc\nabc a\n");
  }
  const SmallRun run("translation", {"data.source=" + data.path().string(), "model.corpus=files",
                                     "model.languages=de-en", "model.tokenized=true",
                                     "model.merges=2", "train.max_steps=1"});
  std::string lines;
  for (int i = 0; i < 600; ++i) lines += i == 587 ? "word@@\n" : "\n";
  const ProcessResult result = run.predict(lines);
  CHECK(result.code == 3);
  CHECK(result.out == std::string(512, '\n'));
  CHECK(holds(result.err, "standard input: line 588: "));
}

TEST_CASE("predict: a task that has no answer says so") {
  const SmallRun run("deep_linear");
  check_refusal(run.predict("1 2 3\n"), 2, "predict: deep_linear has no answer to lines");
}

TEST_CASE("predict: handwriting of lines and of --text, with a bias, into a file" *
          doctest::test_suite("slow")) {
  const SmallRun run("handwriting");
  const ProcessResult two = run.predict("cilnou\n\n", {"--set", "model.sample_points=20"});
  CHECK(two.code == 0);
  CHECK(std::ranges::count(two.out, '\n') == 2);
  CHECK(two.out.starts_with("<svg xmlns"));
  const auto one = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--text", "cilnou", "--set", "model.sample_points=20"});
    return run.predict("not read\n", more);
  };
  const std::string plain = one({}).out;
  CHECK(two.out.starts_with(plain));
  CHECK(one({"--bias", "0.5"}).out != plain);
  CHECK(one({"--bias", "0.5"}).out == one({"--set", "model.bias=0.5"}).out);
  CHECK(one({"--set", "model.sample_seed=2"}).out != plain);
  const std::string file = run.temp / "hand.svg";
  CHECK(one({"--output", file}).out.empty());
  CHECK(read_bytes(file) + "\n" == plain);
  check_refusal(run.predict("cx\n"), 3,
                "standard input: line 1: expected characters of 'cilnouvz', got 'x'");
  check_refusal(one({"--bias", "much"}), 2, "model.bias");
  check_refusal(one({"--bias", "1", "--set", "model.bias=2"}), 2,
                "--bias and --set model.bias: expected one of them, got both");
  check_refusal(one({"--vectors", "a", "--set", "model.vectors=b"}), 2,
                "--vectors and --set model.vectors: expected one of them, got both");
  check_refusal(one({"--set", "train.lr=1"}), 2, "predict --set: expected model.NAME=VALUE");
  check_refusal(one({"--output", run.temp / "no/where"}), 4, "where");
}

TEST_CASE("predict: several pictures for one --output are a file each" *
          doctest::test_suite("slow")) {
  const SmallRun hand("handwriting"), draw("draw");
  const auto write = [&](const std::string& lines, const std::string& file) {
    return hand.predict(lines, {"--set", "model.sample_points=20", "--output", file});
  };
  const std::string one = hand.temp / "one.svg", many = hand.temp / "many.svg";
  CHECK(write("cilnou\n", one).code == 0);
  const ProcessResult three = write("cilnou\n\nlinc\n", many);
  CHECK(three.code == 0);
  CHECK(three.out.empty());
  CHECK_FALSE(std::filesystem::exists(many));
  CHECK(read_bytes(hand.temp / "many-1.svg") == read_bytes(one));
  CHECK(read_bytes(hand.temp / "many-2.svg").ends_with("</svg>"));  // of an empty line
  const std::string third = read_bytes(hand.temp / "many-3.svg");
  CHECK(third.starts_with("<svg xmlns"));
  CHECK(third.ends_with("</svg>"));
  CHECK(third.find("<svg", 1) == third.npos);
  std::string twelve;
  for (int i = 0; i < 12; ++i) twelve += "c\n";
  CHECK(write(twelve, hand.temp / "more").code == 0);
  CHECK(std::filesystem::exists(hand.temp / "more-01"));
  CHECK(std::filesystem::exists(hand.temp / "more-12"));
  CHECK(draw.predict("2\n1\n", {"--output", draw.temp / "six.png"}).code == 0);
  for (const char* name : {"six-1.png", "six-2.png"}) {
    const std::string png = read_bytes(draw.temp / name);
    CHECK(png.starts_with("\x89PNG\r\n"));
    CHECK(png.ends_with("IEND\xAE\x42\x60\x82"));
    CHECK(png.find("IEND") == png.rfind("IEND"));
  }
}

TEST_CASE("predict: samples of DRAW are a PNG") {
  const SmallRun run("draw");
  const std::string file = run.temp / "samples.png";
  CHECK(run.predict("", {"--text", "2", "--output", file}).code == 0);
  const std::string png = read_bytes(file);
  CHECK(png.starts_with("\x89PNG\r\n"));
  CHECK(png.ends_with("IEND\xAE\x42\x60\x82"));
  check_refusal(run.predict("many\n"), 3,
                "standard input: line 1: expected a number of samples, 1 to 1000");
}

TEST_CASE(
    "eval --output: the treebank with other heads and labels, and scores that follow from it") {
  const SmallRun run("dependency_parser");
  const std::string out = run.temp / "out.conllu";
  const Json json = json_of(run_keel({"eval", run.folder, "--json", "--output", out}));
  CHECK(json.at("answers") == 21);
  CHECK(json.at("answers_per_second") > 0);
  const task::DataRequest gold_request{.source = test::small_treebank()};
  const models::Treebank gold = models::load_treebank(gold_request, task::Split::kTest),
                         said = models::read_conll(read_bytes(out), "out", {.is_conllu = true});
  REQUIRE(said.sentences.size() == gold.sentences.size());
  double heads = 0, both = 0, tokens = 0;
  std::string restored;
  for (std::size_t i = 0; i < gold.sentences.size(); ++i) {
    const models::Sentence &g = gold.sentences[i], &s = said.sentences[i];
    REQUIRE(s.size() == g.size());
    for (std::size_t token = 0; token < g.forms.size(); ++token) {
      tokens += 1;
      heads += s.heads[token] == g.heads[token];
      both += s.heads[token] == g.heads[token] && s.labels[token] == g.labels[token];
    }
    restored += models::with_arcs(s, g.heads, g.labels) + "\n";
  }
  CHECK((restored == *gold.text));
  CHECK(json.at("uas_punct").get<double>() == doctest::Approx(100 * heads / tokens));
  CHECK(json.at("las_punct").get<double>() == doctest::Approx(100 * both / tokens));
  const ProcessResult text = run_keel({"eval", run.folder, "--output", out});
  CHECK(text.out.starts_with("test: uas "));
  CHECK(holds(text.out, "\n21 answers in "));
  check_refusal(run_keel({"eval", run.folder, "--output", run.temp / "no/where"}), 4, "where");
}

TEST_CASE("predict: rows of a treebank, as eval --output writes them") {
  const SmallRun run("dependency_parser");
  const std::string out = run.temp / "out.conllu";
  REQUIRE(run_keel({"eval", run.folder, "--output", out}).code == 0);
  const std::string rows = read_bytes(test::small_treebank() / "test.conllu");
  CHECK((run.predict(rows).out == read_bytes(out)));
  CHECK((run.predict(rows, {"--threads", "1"}).out == read_bytes(out)));
}

TEST_CASE("predict: words with tags, and lines that are neither") {
  const SmallRun run("dependency_parser");
  const ProcessResult result = run.predict("det1_DT noun3_NN verb2_VB ._.\n\nstrange_ODD\n");
  CHECK(result.code == 0);
  const models::Treebank said = models::read_conll(result.out, "out", {.is_conllu = true});
  REQUIRE(said.sentences.size() == 2);
  CHECK(said.sentences[0].forms == std::vector<std::string_view>{"det1", "noun3", "verb2", "."});
  CHECK(said.sentences[1].labels == std::vector<std::string_view>{"root"});
  CHECK(json_of(run.predict("det1_DT noun3_NN\n", {"--json"})).size() == 1);
  CHECK(run.predict("").out.empty());
  check_refusal(run.predict("det1\n"), 3, "standard input: line 1: expected word_TAG, got 'det1'");
  const ProcessResult asked = run.predict("", {"--text", "a_DT", "--text", "det1"});
  check_refusal(asked, 3, "--text: line 2: expected word_TAG, got 'det1'");
  CHECK_FALSE(holds(asked.err, "standard input"));
  check_refusal(run.predict("1\ta\n"), 3, "standard input: line 1: expected 10 columns");
  check_refusal(run.predict("a_\xFF\n"), 3, "standard input: line 1: expected UTF-8");
}

TEST_CASE("predict: the embedding of each caption, of length 1" * doctest::test_suite("slow")) {
  const SmallRun run("order_embeddings");
  const Json json =
      json_of(run.predict("a small red ball\n\na cup of words unheard of\n", {"--json"}));
  REQUIRE(json.size() == 3);
  for (const std::string answer : json) {
    std::istringstream numbers(answer);
    double squares = 0;
    int count = 0;
    for (double x = 0; numbers >> x; ++count) squares += x * x;
    CHECK(count == 16);
    CHECK(squares == doctest::Approx(1).epsilon(1e-4));
  }
  CHECK(run.predict("").out.empty());
  check_refusal(run.predict("a\n\xFF\n"), 3, "standard input: line 2: expected UTF-8");
  std::string many;
  for (int i = 0; i < 201; ++i) many += "a ";
  check_refusal(run.predict(many), 3,
                "standard input: line 1: expected at most 200 words, got 201");
}

TEST_CASE("predict: ten different images of a file for each caption, or why not" *
          doctest::test_suite("slow")) {
  const SmallRun run("order_embeddings");
  const std::string captions = "a small red ball\na cup\n\n",
                    images = (test::small_captions() / "test_ims.safetensors").string(),
                    setting = "model.images=" + images;
  const Json ranked = json_of(run.predict(captions, {"--json", "--set", setting}));
  REQUIRE(ranked.size() == 3);
  for (const std::string answer : ranked) {
    std::istringstream numbers(answer);
    std::set<int> seen;
    for (int image = 0; numbers >> image;) {
      CHECK(image >= 0);
      CHECK(image < 12);
      seen.insert(image);
    }
    CHECK(seen.size() == 10);  // of twelve
  }
  check_refusal(run.predict("a\n", {"--set", "model.images=none.npy"}), 4, "none.npy");
  const test::TempDir folder;
  const auto refuse = [&](const Shape& shape, const char* why) {
    io::TensorFile file;
    file.tensors.emplace("features", Tensor(DType::kF32, shape));
    io::write_safetensors(folder / "images.safetensors", file);
    const std::string other = "model.images=" + (folder / "images.safetensors").string();
    check_refusal(run.predict("a\n", {"--set", other}), 3, why);
  };
  refuse({3, 7}, "expected features of width");
  refuse({0, 7}, "expected f32(images, width)");
  const std::string of_others = (test::small_digits() / "t10k-images-idx3-ubyte").string();
  check_refusal(run.predict("a\n", {"--set", "model.images=" + of_others}), 3, "ubyte");
}

TEST_CASE("predict: answers to records and to lines of passage and question" *
          doctest::test_suite("slow")) {
  const SmallRun run("attentive_reader");
  const std::string passage = "@entity3 met @entity5 . @entity1 paid @entity2 .",
                    asked = "@placeholder met @entity5 .";
  const ProcessResult records =
      run.predict("u\n\n" + passage + "\n\n" + asked + "\n\n?\n\n@entity3:Ann\n");
  CHECK(records.code == 0);
  CHECK(std::ranges::count(records.out, '\n') == 1);
  const ProcessResult lines = run.predict(passage + "\t" + asked + "\n");
  CHECK(lines.code == 0);
  CHECK((records.out.starts_with(lines.out.substr(0, lines.out.size() - 1))));
  CHECK(run.predict("").out.empty());
  check_refusal(run.predict("u\n\na b\n\nc\n\nd\n"), 3,
                "standard input: line 5: expected a question with one @placeholder");
  check_refusal(run.predict("a b\tc\n"), 3, "standard input: line 1: expected a passage, a tab");
}

TEST_CASE("eval: a treebank that is broken, or is not there") {
  const SmallRun run("dependency_parser");
  write_bytes(run.temp / "test.conllu", "1\ta\t_\tX\tX\t_\t7\tdep\t_\t_\n");
  check_refusal(run_keel({"eval", run.folder, "--data", run.temp.path()}), 3,
                "test.conllu: line 1: expected a head of 0 to 1, got 7");
  check_refusal(run_keel({"eval", run.folder, "--data", run.temp / "none"}), 4,
                "none: no such folder of data");
  std::filesystem::create_directory(run.temp / "empty");
  check_refusal(run_keel({"eval", run.folder, "--data", run.temp / "empty"}), 4,
                "expected a file *test.conllu");
  // Words, tags and labels that training has not seen, in a tree that is not projective.
  write_bytes(run.temp / "test.conllu",
              "1\ta\t_\tX\tX\t_\t3\tx\t_\t_\n2\tb\t_\tX\tX\t_\t4\ty\t_\t_\n"
              "3\tc\t_\tX\tX\t_\t0\tz\t_\t_\n4\td\t_\tX\tX\t_\t3\tw\t_\t_\n");
  const Json json = json_of(run_keel({"eval", run.folder, "--data", run.temp.path(), "--json"}));
  CHECK(json.at("las") == 0);
  CHECK(json.at("uas") >= 0);
  CHECK(json.at("loss").is_null());  // there is no transition to measure
}

TEST_CASE("predict: a language model goes on with a prompt, the same on any number of threads" *
          doctest::test_suite("slow")) {
  const SmallRun run("char_lm");
  const auto write = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--prompt", "#abc", "--tokens", "40"});
    return run.predict("not read\n", more);
  };
  const ProcessResult one = write({"--threads", "1"});
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("#abc"));
  CHECK(one.out.size() == 4 + 40 + 1);
  CHECK(write({"--threads", "2"}).out == one.out);
  CHECK(write({"--seed", "2"}).out != one.out);
  const ProcessResult likeliest = write({"--temperature", "0"});
  CHECK(write({"--top-k", "1", "--seed", "3"}).out == likeliest.out);
  CHECK(write({"--top-p", "1e-9", "--seed", "4"}).out == likeliest.out);
  const Json json = json_of(write({"--json"}));
  CHECK(json["prompt"].get<std::string>() + json["text"].get<std::string>() + "\n" == one.out);
  CHECK(write({"--output", run.temp / "text"}).out.empty());
  CHECK(read_bytes(run.temp / "text") + "\n" == one.out);
  check_refusal(run.predict("", {"--prompt", "#Z"}), 3,
                "[char_lm] --prompt: expected one of the 33 bytes of the model's alphabet, got 5a "
                "at byte 2");
  check_refusal(run.predict("", {"--prompt", ""}), 2, "--prompt: expected a value, got ''");
  check_refusal(write({"--top-p", "2"}), 2, "top_p: expected above 0 to 1, got 2");
  check_refusal(run.predict("", {"--tokens", "3"}), 2, "--prompt");
  check_refusal(run.predict("a line\n"), 2, "predict: char_lm has no answer to lines of text");
  check_refusal(write({"--set", "model.evaluation_memory=0"}), 2,
                "predict --prompt: expected a model with a memory");
  check_refusal(run_keel({"eval", run.folder, "--set", "model.alphabet=txl"}), 2,
                "model.alphabet: expected bytes, as in training, got txl");
}

TEST_CASE("predict: a language model of words goes on, the same on any number of threads" *
          doctest::test_suite("slow")) {
  const SmallRun run("word_lm");
  const auto write = [&](const std::string& threads, const std::string& seed) {
    return run.predict(
        "", {"--prompt", "w3 w5", "--tokens", "30", "--threads", threads, "--seed", seed});
  };
  const ProcessResult one = write("1", "1");
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("w3 w5"));
  // A word comes after a blank, or after the end of a line, which counts as a token itself.
  CHECK(std::ranges::count_if(one.out, [](char c) { return c == ' ' || c == '\n'; }) >= 15);
  CHECK(write("2", "1").out == one.out);
  CHECK(write("3", "1").out == one.out);
  CHECK(write("1", "2").out != one.out);
}

TEST_CASE("predict: an interrupted text is kept" * doctest::test_suite("slow")) {
  using namespace std::chrono_literals;
  const SmallRun run("char_lm");
  test::Process process({"predict", run.folder, "--prompt", "#abc", "--tokens", "100000000",
                         "--output", run.temp / "text"});
  process.await_handler(SIGTERM);
  std::this_thread::sleep_for(500ms);
  REQUIRE_FALSE(process.has_ended());
  process.signal(SIGTERM);
  const ProcessResult result = process.wait();
  CHECK(result.code == 128 + SIGTERM);
  CHECK(holds(result.err, "interrupted: what had been written so far is kept"));
  CHECK(read_bytes(run.temp / "text").starts_with("#abc"));
}

TEST_CASE("eval: a language model scores any file as a whole, with the run's alphabet" *
          doctest::test_suite("slow")) {
  const SmallRun run("char_lm");
  const auto eval = [&](const std::string& bytes) {
    write_bytes(run.temp / "file", bytes);
    return run_keel({"eval", run.folder, "--data", run.temp / "file", "--json"});
  };
  std::string text;
  for (int i = 0; i < 50; ++i) text += char('a' + i % 26);
  CHECK(json_of(eval(text))["items"] == 49);
  CHECK(json_of(eval(text.substr(0, 8)))["items"] == 7);  // less than a segment
  CHECK(json_of(eval("ab"))["items"] == 1);
  check_refusal(eval(text + "Z"), 3,
                "file: expected one of the 33 bytes of the model's alphabet, got 5a at byte 51");
  check_refusal(run_keel({"predict", SmallRun("mnist_mlp").folder, "--prompt", "a"}), 2,
                "predict --prompt: expected a language model, got mnist_mlp");
}

}  // namespace
}  // namespace keel::cli
