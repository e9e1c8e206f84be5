// keel inspect
#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "models/registry.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

TEST_CASE("inspect: graphs before and after the passes, and the memory plan") {
  for (const char* model : {"mnist_mlp", "mnist_cnn"}) {
    for (const char* mode : {"step", "evaluate"}) {
      const auto shown = [&](const char* stage) {
        const ProcessResult result =
            run_keel({"inspect", "graph", model, "--mode", mode, "--stage", stage});
        CHECK(result.code == 0);
        CHECK(result.err.empty());
        return result.out;
      };
      const std::string before = shown("before"), after = shown("after"), plan = shown("plan");
      CHECK(std::ranges::count(before, '\n') >= std::ranges::count(after, '\n'));
      if (mode == std::string("step")) CHECK((before != after));
      CHECK(holds(after, "output loss = %"));
      CHECK(holds(after, "update ") == (mode == std::string("step")));
      CHECK(plan.starts_with("arena "));
    }
  }
}

TEST_CASE("inspect: the graph after the passes is the one that the backend runs") {
  const auto shown = [](const std::string& backend) {
    return run_keel({"inspect", "graph", "mnist_cnn", "--backend", backend}).out;
  };
  CHECK_FALSE(holds(shown("reference"), "channels_last=true"));
  const std::string backend = default_backend();
  const bool prefers = make_backend(backend)->prefers_channels_last();
  CHECK(holds(shown(backend), "channels_last=true") == prefers);
}

TEST_CASE("inspect: a graph as JSON refers to nodes that are there") {
  const Json graph = json_of(run_keel({"inspect", "graph", "mnist_mlp", "--json"}));
  const Json& nodes = graph.at("nodes");
  REQUIRE(nodes.size() > 20);
  CHECK(graph.at("arena_bytes") >= graph.at("live_bytes"));
  CHECK(graph.at("outputs").contains("grad_norm"));
  CHECK(graph.at("updates").contains("fc1/weight.m"));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CHECK(nodes[i].at("places").size() == nodes[i].at("types").size());
    for (const Json& input : nodes[i].at("inputs")) {
      if (!input.is_null()) CHECK(input[0] < i);
    }
  }
  const Json before =
      json_of(run_keel({"inspect", "graph", "mnist_mlp", "--stage", "before", "--json"}));
  CHECK(before.at("nodes").size() > nodes.size());
}

TEST_CASE("inspect memory: a program for each shape, and what all take together" *
          doctest::test_suite("slow")) {
  const std::string pairs = test::small_pairs().string();
  std::vector<std::string> common{"inspect",  "memory", "translation", "--recipe",
                                  "multi30k", "--data", pairs};
  for (const char* setting : {"train.batch=128", "model.layers=1", "model.width=32",
                              "model.heads=2", "model.feed_forward=32"}) {
    common.insert(common.end(), {"--set", setting});
  }
  for (const char* mode : {"step", "evaluate"}) {
    std::vector<std::string> words = common;
    words.insert(words.end(), {"--mode", mode});
    const std::string text = run_keel(words).out;
    words.push_back("--json");
    const Json json = json_of(run_keel(words));
    const Json &shapes = json.at("shapes"), &sum = json.at("sum");
    REQUIRE(shapes.size() >= (mode == std::string("step") ? 2 : 1));
    std::int64_t own = 0, arena = 0;
    for (const Json& shape : shapes) {
      CHECK(shape.at("sizes").size() == 3);
      CHECK(shape.at("kernels") < shape.at("nodes"));
      for (const char* part : {"graph_bytes", "plan_bytes", "kernels_bytes", "constants_bytes"}) {
        own += shape.at(part).get<std::int64_t>();
      }
      arena = std::max(arena, shape.at("arena_bytes").get<std::int64_t>());
    }
    CHECK(sum.at("programs_bytes") == own);
    CHECK(sum.at("arena_bytes") >= arena);
    CHECK(sum.at("variables_bytes") > 0);
    CHECK(std::ranges::count(text, '\n') == std::int64_t(shapes.size()) + 2);
    CHECK(text.starts_with("sizes"));
    CHECK(holds(text, fmt::format("\n{} shapes: programs ", shapes.size())));
  }
}

TEST_CASE("inspect memory: each part is the sum of all shapes', and the arena is one") {
  const Json json =
      json_of(run_keel({"inspect", "memory", "mnist_mlp", "--mode", "evaluate", "--json"}));
  const Json& sum = json.at("sum");
  REQUIRE(json.at("shapes").size() == 2);
  const auto of_shapes = [&](const char* part) {
    return json.at("shapes")[0].at(part).get<std::int64_t>() +
           json.at("shapes")[1].at(part).get<std::int64_t>();
  };
  for (const char* part : {"graph_bytes", "plan_bytes", "kernels_bytes", "constants_bytes"}) {
    CHECK(sum.at(part) == of_shapes(part));
  }
  CHECK(sum.at("arena_bytes") > 0);
  CHECK(sum.at("arena_bytes") < of_shapes("arena_bytes"));
}

TEST_CASE("inspect: a checkpoint") {
  const test::TempDir temp;
  test::train_in(temp.path(), test::small_job({"train.max_steps=1"}));
  const std::string path = test::step_file(temp.path(), 1);
  const Json json = json_of(run_keel({"inspect", "checkpoint", path, "--json"}));
  CHECK(json.at("checksums") == true);
  CHECK(json.at("metadata").at("model") == "mnist_mlp");
  CHECK(json.at("metadata").at("step") == "1");
  CHECK(json.at("tensors").size() == 24);  // 8 parameters with 2 moments each
  const ProcessResult text = run_keel({"inspect", "checkpoint", path});
  CHECK(text.code == 0);
  CHECK(holds(text.out, "fc1/weight.m"));
  CHECK(holds(text.out, "checksums: yes, and right"));
  CHECK(run_keel({"inspect", "checkpoint", temp.path()}).out ==
        run_keel({"inspect", "checkpoint", temp / "checkpoints/best.safetensors"}).out);
}

TEST_CASE(
    "inspect: metadata are shown without what a terminal obeys, and cut; as JSON all of them") {
  const test::TempDir temp;
  const std::string path = temp / "odd.safetensors", value(100000, 'y'),
                    key = "key\x1b[2J" + std::string(100000, 'x');
  io::TensorFile file;
  file.tensors.emplace("name\x1b[2J" + std::string(100000, 'z'), Tensor(DType::kF32, {2}));
  file.metadata = {{key, "a\x1b[31m\u202eb\nc"}, {"long", value}};
  io::write_safetensors(path, file);
  const std::string text = run_keel({"inspect", "checkpoint", path}).out;
  CHECK(holds(text, "\nkey?[2Jxxx"));
  CHECK(holds(text, ": a?[31m?b?c\n"));
  CHECK(holds(text, "\nname?[2Jzzz"));
  CHECK(text.find('\x1b') == text.npos);
  CHECK(text.size() < 20000);
  const Json metadata = json_of(run_keel({"inspect", "checkpoint", path, "--json"})).at("metadata");
  CHECK(metadata.at(key) == "a\x1b[31m\u202eb\nc");
  CHECK(metadata.at("long") == value);
}

TEST_CASE("inspect: names of data are shown without what a terminal obeys") {
  const test::TempDir temp;
  const std::filesystem::path folder = temp / "a\x1b[2Jb";
  std::filesystem::copy(test::small_digits(), folder);
  const std::string all = run_keel({"inspect", "data", folder}).out,
                    one = run_keel({"inspect", "data", folder / "t10k-labels-idx1-ubyte"}).out;
  CHECK(holds(all, "a?[2Jb/train-images-idx3-ubyte: "));
  CHECK(holds(one, "a?[2Jb/t10k-labels-idx1-ubyte: labels i32(60)"));
  CHECK((all + one).find('\x1b') == std::string::npos);
}

// Tasks that make their own data are not listed.
std::ptrdiff_t tasks_with_files() {
  return std::ranges::count_if(models::all_models(), [](const auto& entry) {
    return !entry.make()->data_forms("builtin").empty();
  });
}

// The program's path in commands becomes "keel".
std::string called_keel(std::string text) {
  for (std::size_t at = 0; (at = text.find("/keel train", at)) != text.npos;) {
    const std::size_t begin = text.find_last_of(" (\n", at) + 1;
    text.replace(begin, at + 1 - begin, "");
    at = begin;
  }
  return text;
}

TEST_CASE("inspect: data files and folders" * doctest::test_suite("slow")) {
  const std::string folder = test::small_digits();
  const Json parts = json_of(run_keel({"inspect", "data", folder, "--json"}));
  REQUIRE(std::ssize(parts) == tasks_with_files());
  CHECK(parts[0].at("task") == "mnist_mlp");
  CHECK(parts[0].at("state") == "found");
  CHECK(called_keel(parts[0].at("command")) == "keel train mnist_mlp --data " + folder);
  CHECK(parts[0].at("train").at("rows") == 275);
  CHECK(parts[0].at("train").at("source") == folder + "/train-images-idx3-ubyte");
  CHECK(parts[1].at("valid").at("rows") == 25);
  CHECK(parts[1].at("test").at("rows") == 60);
  CHECK(parts[1].at("test").at("source") == folder + "/t10k-images-idx3-ubyte");
  CHECK(parts[2].at("task") == "text_classifier");
  CHECK(parts[2].at("state") == "missing");
  CHECK_FALSE(parts[2].contains("command"));
  const std::string text = called_keel(run_keel({"inspect", "data", folder}).out);
  CHECK(std::ranges::count(text, '\n') == tasks_with_files());
  CHECK(holds(text, "\ncifar_resnet20: not there: expected folders of pictures"));
  CHECK_FALSE(holds(text, "deep_linear"));
  CHECK(holds(text, "mnist_cnn: 275 rows to train on, 25 for validation, 60 for testing, from " +
                        folder + "/train-images-idx3-ubyte: keel train mnist_cnn --data " + folder +
                        "\n"));
  CHECK(holds(text, "\ndraw: 275 rows to train on"));
  CHECK(holds(text, "\nhandwriting: not there: expected iamondb-lines.tsv"));
  const auto shown = [&](const char* file) {
    return run_keel({"inspect", "data", folder + "/" + file}).out;
  };
  CHECK(holds(shown("t10k-images-idx3-ubyte"), "images u8(60, 28, 28)"));
  CHECK(holds(shown("t10k-labels-idx1-ubyte"), "labels i32(60)"));
}

// The line of a task, without its end.
std::string line_of(const std::string& text, const std::string& task) {
  const std::size_t begin = ("\n" + text).find("\n" + task + ": ");
  return begin == text.npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST_CASE("inspect data: near misses of every task are said" * doctest::test_suite("slow")) {
  struct Miss {
    const char *task, *file, *said;
  };
  const Miss misses[] = {
      {"mnist_mlp", "train-images.idx3-ubyte", "the names have to be the published ones"},
      {"mnist_cnn", "train-images.idx3-ubyte", "the names have to be the published ones"},
      {"text_classifier", "training.csv", "no file named train.* with one of these extensions"},
      {"dependency_parser", "x.conllu", "none ends in train"},
      {"translation", "train.en", "model.corpus and model.languages say which"},
      {"translation", "tst2012.en.xz", "there is no training without its file"},
      {"order_embeddings", "captions.json", "none is called train_caps.txt"},
      {"attentive_reader", "all.question", ""},
      {"skip_thoughts", "book.zip", ""},
      {"handwriting", "lines.tsv", ""},
      {"draw", "train.amat", ""}};
  for (const Miss& miss : misses) {
    CAPTURE(std::string(miss.task));
    const test::TempDir temp;
    test::write_bytes(temp / miss.file, "a");
    const std::string line = line_of(run_keel({"inspect", "data", temp.path()}).out, miss.task);
    CHECK(line.starts_with(fmt::format("{}: not there: expected ", miss.task)));
    CHECK(holds(line, fmt::format("(found {}", miss.file)));
    CHECK(holds(line, miss.said));
  }
}

TEST_CASE("inspect data: the command that takes what is there, and what is wrong with it" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const auto shown = [&](const char* task) {
    return called_keel(line_of(run_keel({"inspect", "data", temp.path()}).out, task));
  };
  test::write_bytes(temp / "train.csv", "label,text\na,one\nb,two\n");
  test::write_bytes(temp / "dev.txt", "a one\n");
  test::write_bytes(temp / "test.txt", "a one\nb two\n");
  CHECK(shown("text_classifier") ==
        fmt::format("text_classifier: 2 rows to train on, 1 for validation, 2 for testing, from "
                    "{0}/train.csv: keel train text_classifier --set model.task=files --data {0}",
                    temp.path().string()));
  test::write_bytes(temp / "test.txt", "a one\nc two\n");
  CHECK(shown("text_classifier") ==
        fmt::format("text_classifier: there, but wrong (keel train text_classifier --set "
                    "model.task=files --data {0}): {0}/test.txt: line 2: expected one of the "
                    "labels a, b, got 'c'",
                    temp.path().string()));
  for (const char* part : {"train", "dev", "test"}) {
    std::filesystem::remove(temp / "train.csv");
    test::write_bytes(temp / (part + std::string(".txt")), "(3 (2 a) (1 b))\n");
  }
  CHECK(holds(shown("text_classifier"),
              " (trees, plain): keel train text_classifier --recipe paper_sst5 --data " +
                  temp.path().string()));
}

TEST_CASE("inspect data: a parallel corpus of two languages is found by its files' names") {
  const test::TempDir temp;
  for (const char* part : {"train", "dev", "test"}) {
    for (const char* language : {"fr", "pt"}) {
      test::write_bytes(temp / fmt::format("{}.{}", part, language), "un deux\ntrois\n");
    }
  }
  CHECK(called_keel(line_of(run_keel({"inspect", "data", temp.path()}).out, "translation")) ==
        fmt::format("translation: 2 rows to train on, 2 for validation, 2 for testing, from fr-pt "
                    "train, {0}: keel train translation --set model.corpus=files --set "
                    "model.languages=fr-pt --data {0}",
                    temp.path().string()));
}

TEST_CASE("inspect: a path that is not UTF-8 does not break the JSON") {
  const test::TempDir temp;
  std::filesystem::copy(std::filesystem::path(test::small_digits()) / "t10k-labels-idx1-ubyte",
                        temp / "labels\xff");
  const Json parts = json_of(run_keel({"inspect", "data", temp / "labels\xff", "--json"}));
  REQUIRE(parts.size() == 1);
  CHECK(holds(parts[0], "labels\uFFFD: labels i32(60)"));
}

TEST_CASE("inspect: refusals") {
  const test::TempDir temp;
  test::write_bytes(temp / "text", "not a tensor file");
  check_refusal(run_keel({"inspect", "checkpoint", temp / "text"}), 3, "text");
  check_refusal(run_keel({"inspect", "checkpoint", temp / "none"}), 4, "none");
  check_refusal(run_keel({"inspect", "checkpoint", temp / "two\nlines\x1b[2J"}), 4,
                "two?lines?[2J");
  check_refusal(run_keel({"inspect", "data", temp / "text"}), 3, "expected magic");
  const auto nothing = run_keel({"inspect", "data", temp.path()});
  CHECK(nothing.code == 3);
  CHECK(nothing.err ==
        fmt::format("keel: error: {}: expected data of a task, got none\n", temp.path().string()));
  CHECK(holds(nothing.out, "mnist_mlp: not there: expected train-images-idx3-ubyte or"));
  CHECK(holds(nothing.out, "text_classifier: not there: expected train.txt, train.tsv"));
  CHECK(std::ranges::count(nothing.out, '\n') == tasks_with_files());
  check_refusal(run_keel({"inspect", "graph", "mnist_mpl"}), 2, "nearest: 'mnist_mlp'");
}

}  // namespace
}  // namespace keel::cli
