// keel inspect
#include "backends/backends.h"
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

TEST_CASE("inspect: a checkpoint") {
  const test::TempDir temp;
  test::train_in(temp.path(), test::small_config({"train.max_steps=1"}));
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
}

TEST_CASE("inspect: data files and folders") {
  const std::string folder = test::small_digits();
  const Json parts = json_of(run_keel({"inspect", "data", folder, "--json"}));
  const std::string all = parts.dump();
  CHECK(holds(all, "mnist_mlp: 275 rows, MNIST train"));
  CHECK(holds(all, "mnist_cnn: 60 rows, MNIST test"));
  CHECK_FALSE(holds(all, "text_classifier"));
  const auto shown = [&](const char* file) {
    return run_keel({"inspect", "data", folder + "/" + file}).out;
  };
  CHECK(holds(shown("t10k-images-idx3-ubyte"), "images u8(60, 28, 28)"));
  CHECK(holds(shown("t10k-labels-idx1-ubyte"), "labels i32(60)"));
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
  check_refusal(nothing, 3, "expected data of a task, got none (mnist_mlp: ");
  CHECK(holds(nothing.err, "train-images-idx3-ubyte"));
  CHECK(holds(nothing.err, "rt-polarity"));
  check_refusal(run_keel({"inspect", "graph", "mnist_mpl"}), 2, "nearest: 'mnist_mlp'");
}

}  // namespace
}  // namespace keel::cli
