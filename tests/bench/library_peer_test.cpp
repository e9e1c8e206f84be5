// A library as a peer: what it must answer.
#include "bench/library_peer.h"

#include <doctest/doctest.h>

#include <functional>

#include "backends/backends.h"
#include "bench/norm_bench.h"
#include "bench/step_bench.h"
#include "bench/step_peer.h"
#include "tests/support/fake_python.h"
#include "tests/support/small_run.h"

namespace keel::bench {
namespace {

using test::FakePython;

// The fake's program that says these lines, each to a request without tensors, the first at once.
std::string saying(const std::vector<std::string>& lines) {
  std::string program = "#!/bin/sh\n";
  for (const std::string& line : lines) {
    if (line != lines[0]) program += "read -r request\n";
    program += "printf '%s\\n' '" + line + "'\n";
  }
  return program + "cat > /dev/null\n";
}

std::unique_ptr<LibraryPeer> start(const std::vector<std::string>& modes = {"usual"}) {
  std::string missing;
  auto peer = LibraryPeer::start({.threads = 2, .modes = modes}, missing);
  REQUIRE(missing == "");
  REQUIRE(peer != nullptr);
  return peer;
}

// A small norm whose expected results are 1, 2 and 3.
PeerCase small_case() {
  PeerCase task{.what = {{"norm", {{"name", "detachnorm"}}}}, .given = {}, .expected = {}};
  task.given.push_back({"x", Tensor::of<float>({1}, {1})});
  task.expected.push_back({"y", {1, 2, 3}});
  return task;
}

void check_error(ErrorKind kind, const std::string& part, const std::function<void()>& body) {
  try {
    body();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK(std::string(error.what()).find(part) != std::string::npos);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

TEST_CASE("torch peer: without Python or PyTorch there is none, and a reason") {
  std::string missing;
  {
    const FakePython python(saying({R"({"missing": "no torch here"})"}));
    CHECK(LibraryPeer::start({.threads = 1}, missing) == nullptr);
    CHECK(missing.ends_with("python: no torch here"));
  }
  {
    const FakePython python("#!/nowhere/at/all\n");
    CHECK(LibraryPeer::start({.threads = 1}, missing) == nullptr);
    CHECK(missing.ends_with("No such file or directory"));
  }
  {
    // Our own script, and a torch that cannot be loaded.
    const test::TempDir folder;
    test::write_bytes(folder / "torch.py", "raise ImportError('it is\\nbroken')\n");
    const FakePython python("#!/bin/sh\nPYTHONPATH='" + folder.path().string() +
                            "' exec python3 \"$@\"\n");
    CHECK(LibraryPeer::start({.threads = 1}, missing) == nullptr);
    CHECK(missing.ends_with("python: it is broken"));
  }
}

TEST_CASE("jax peer: it is given a script of its own") {
  std::string missing;
  {
    const FakePython python(
        "#!/bin/sh\ncase \"$2\" in *'import torch'*) exit 1;; *'import jax'*) ;; *) exit 2;; esac\n"
        "echo '{\"jax\": \"7\"}'\ncat > /dev/null\n");
    const auto peer = LibraryPeer::start({.library = "jax", .threads = 1}, missing);
    REQUIRE(peer != nullptr);
    CHECK(peer->text() == "JAX 7");
  }
  {
    const test::TempDir folder;
    test::write_bytes(folder / "jax.py", "raise ImportError('it is\\nbroken')\n");
    const FakePython python("#!/bin/sh\nPYTHONPATH='" + folder.path().string() +
                            "' exec python3 \"$@\"\n");
    CHECK(LibraryPeer::start({.library = "jax", .threads = 1}, missing) == nullptr);
    CHECK(missing.ends_with("python: it is broken"));
  }
  const FakePython python(saying({R"({"torch": "1"})"}));
  check_error(ErrorKind::kBadInput, "expected an answer with 'jax'",
              [&] { LibraryPeer::start({.library = "jax", .threads = 1}, missing); });
}

TEST_CASE("torch peer: one that ends or says what it should not") {
  std::string missing;
  const auto start_it = [&] { LibraryPeer::start({.threads = 1}, missing); };
  const struct {
    std::string program;
    ErrorKind kind;
    const char* part;
  } starts[] = {{"#!/bin/sh\nexit 1\n", ErrorKind::kIo, "expected an answer, but it ended"},
                {saying({"hello"}), ErrorKind::kBadInput, "expected a JSON object, got 'hello'"},
                {saying({"[1]"}), ErrorKind::kBadInput, "expected a JSON object, got '[1]'"},
                {saying({"{}"}), ErrorKind::kBadInput, "expected an answer with 'torch', got {}"},
                {saying({R"({"torch": 2})"}), ErrorKind::kBadInput, "'torch'"}};
  for (const auto& row : starts) {
    const FakePython python(row.program);
    check_error(row.kind, row.part, start_it);
  }
  const auto answers = [](const std::string& answer, const char* part,
                          const std::function<void(LibraryPeer&)>& ask) {
    const FakePython python(saying({R"({"torch": "1"})", answer}));
    const auto peer = start();
    check_error(ErrorKind::kBadInput, part, [&] { ask(*peer); });
  };
  const auto set_up = [](LibraryPeer& peer) { peer.set_up(small_case()); };
  answers("Traceback", "expected a JSON object, got 'Traceback'", set_up);
  answers(R"({"values": {"y": [1]}})", "expected an answer with 'modes'", set_up);
  answers(R"({"modes": {"plain": {}}})", "expected an answer with 'usual'", set_up);
  answers(R"({"modes": {"usual": {"values": {"y": "one"}}}})", "expected an answer with 'values'",
          set_up);
  const auto samples = [](const std::string& answer, const char* part) {
    const std::string values = R"({"modes": {"usual": {"values": {"y": [1, 2, 3]}}}})";
    const FakePython python(saying({R"({"torch": "1"})", values, answer}));
    const auto peer = start();
    CHECK(refusals_of(peer->set_up(small_case())) == "");
    check_error(ErrorKind::kBadInput, part, [&] { peer->sample(2, 2, 1); });
  };
  samples(R"({"error": "no memory"})", "no memory");
  samples(R"({"seconds": [[1, 2]]})", "expected times of 2, got 1");
  samples(R"({"seconds": [[1, 2], [1]]})", "expected 2 times, got 1");
}

TEST_CASE("torch peer: only who computes the same is a peer") {
  const auto set_up = [](const std::string& answer) {
    const FakePython python(saying({R"({"torch": "1"})", answer}));
    return refusals_of(start()->set_up(small_case()));
  };
  const auto values = [&](const std::string& values) {
    return set_up(R"({"modes": {"usual": {"values": {)" + values + "}}}}");
  };
  CHECK(values(R"("y": [1, 2, 3])") == "");
  CHECK(values(R"("y": [1.002, 1.998, 3])") == "");  // within 1e-3 of 3
  CHECK(values(R"("y": [1, 2, 3.01])") == "computes something else: y: expected 3, got 3.01");
  const std::string size = "computes something else: y is not of the same size";
  CHECK(values(R"("y": [1, 2])") == size);
  CHECK(values(R"("z": [1, 2, 3])") == size);
  CHECK(set_up(R"({"modes": {"usual": {"reason": "no such norm"}}})") == "no such norm");
  CHECK(set_up(R"({"error": "no such norm"})") == "no such norm");
}

TEST_CASE("torch peer: a ratio is the quotient of the times beside it") {
  PeerTimes torch{.ours = {.median = 1.4186},
                  .modes = {{.name = "usual", .bodies = {{.median = 1.4}}},
                            {.name = "compiled", .bodies = {{.median = 1.22}}},
                            {.name = "graph", .refusal = "no GPU"}}};
  CHECK(torch.text("PyTorch") == "PyTorch's compiled / ours = 1220.000 ms / 1418.600 ms = 0.86");
  torch.ours.median = 0.61;
  CHECK(torch.text("PyTorch") == "PyTorch's compiled / ours = 1220.000 ms / 610.000 ms = 2.00");
}

// A torch for a GPU that writes down what is done with the memory that fills the cache.
constexpr const char* kNotingTorch = R"(
import os, sys
from unittest.mock import MagicMock
torch = MagicMock(__version__="noting")
torch.empty.return_value.element_size.return_value = 4
x = torch.frombuffer.return_value.reshape.return_value.clone.return_value.to.return_value
x.requires_grad_.return_value, x.shape = x, (1, 1)
torch.cuda.get_device_properties.return_value.L2_cache_size = 4096
def elapsed_time(end):
    calls = torch.empty.return_value.mock_calls + torch.zeros.return_value.mock_calls
    with open(os.environ["PYTHONPATH"] + "/calls", "w") as file:
        file.write(" ".join(call[0] for call in calls))
    return 1.0
torch.cuda.Event.return_value.elapsed_time = elapsed_time
sys.modules.update({"torch": torch, "torch.nn": torch.nn})
)";

TEST_CASE("torch peer: on a GPU the cache is filled by reading, as it is for ours") {
  const test::TempDir folder;
  test::write_bytes(folder / "torch.py", kNotingTorch);
  const FakePython python("#!/bin/sh\nPYTHONPATH='" + folder.path().string() +
                          "' exec python3 \"$@\"\n");
  std::string missing;
  const auto peer = LibraryPeer::start({.device = "cuda", .threads = 1}, missing);
  REQUIRE(missing == "");
  PeerCase task{.what = {{"norm", {{"name", "none"}, {"options", ""}}}, {"steps", 1}},
                .given = {},
                .expected = {}};
  for (const char* name : {"x", "dy"}) task.given.push_back({name, Tensor::of<float>({1}, {1})});
  REQUIRE(refusals_of(peer->set_up(task)) == "");
  CHECK(peer->sample(2, 1, 1)[0][0] == doctest::Approx(1e-3));
  const std::string calls = test::read_bytes(folder / "calls");
  CAPTURE(calls);
  CHECK(calls.find("sum") != std::string::npos);
  for (const char* write : {"zero_", "fill_", "copy_"}) CHECK(calls.find(write) == calls.npos);
}

TEST_CASE("torch peer: a probe is at most 16 elements, evenly spaced") {
  Tensor value(DType::kF32, {5, 10});
  for (std::int64_t i = 0; i < 50; ++i) value.as<float>()[std::size_t(i)] = float(i);
  const std::vector<double> elements = probe(value);
  REQUIRE(elements.size() == 16);
  for (std::size_t i = 0; i < 16; ++i) CHECK(elements[i] == double(i * 50 / 16));
  CHECK(probe(Tensor::of<float>({3}, {7, 8, 9})) == std::vector<double>{7, 8, 9});
}

TEST_CASE("torch peer: a norm beside it has its times, or the reason why not") {
  const FakePython python(test::kDetachNormPeer);
  const auto peer = start();
  CHECK(peer->version() == "fake on cpu 2");
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const NormBench b = bench_norm(*backend, "detachnorm", {128, 512}, 3, {peer.get()});
  CHECK(b.peer_refusal == "");
  REQUIRE(b.peer.has_value());
  // A quarter of a MiB is repeated four times a turn.
  const double repeats = backend->storage(DType::kF32) == DType::kF32 ? 4 : 2;
  REQUIRE(b.peer->modes.size() == 1);
  CHECK(b.peer->modes[0].bodies[0].median == doctest::Approx(repeats * 1e-6));
  CHECK(b.peer->modes[0].bodies[1].median == doctest::Approx(repeats * 3e-6));
  CHECK(b.peer->ours.median > 0);
  CHECK(b.peer->ratio() == doctest::Approx(repeats * 3e-6 / b.peer->ours.median));
  const NormBench other = bench_norm(*backend, "layernorm_simple", {4, 8}, 3, {peer.get()});
  CHECK(other.refusal == "");
  CHECK(other.peer_refusal == "no layernorm_simple");
  CHECK_FALSE(other.peer.has_value());
  CHECK_FALSE(bench_norm(*backend, "detachnorm", {4, 8}, 3).peer.has_value());
}

TEST_CASE("torch peer: the fastest of the modes that it has is the one that counts" *
          doctest::test_suite("slow")) {
  const FakePython python(test::kDetachNormPeer);
  const auto peer = start({"plain", "compiled", "usual"});
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const NormBench b = bench_norm(*backend, "detachnorm", {512, 1024}, 3, {peer.get()});
  CHECK(b.peer_refusal == "compiled: no compiler");
  REQUIRE(b.peer.has_value());
  REQUIRE(b.peer->modes.size() == 3);
  CHECK(b.peer->modes[0].bodies[1].median == doctest::Approx(6e-6));
  CHECK(b.peer->modes[1].bodies.empty());
  CHECK(b.peer->fastest().name == "usual");
  CHECK(b.peer->ratio() == doctest::Approx(3e-6 / b.peer->ours.median));
  const NormBench other = bench_norm(*backend, "layernorm_simple", {4, 8}, 3, {peer.get()});
  CHECK(other.peer_refusal ==
        "plain: no layernorm_simple; compiled: no layernorm_simple; usual: no layernorm_simple");
  CHECK_FALSE(other.peer.has_value());
}

TEST_CASE("torch peer: times under load, where they are wanted") {
  const FakePython python(test::kDetachNormPeer);
  std::string missing;
  const auto peer = LibraryPeer::start({.threads = 1, .under_load = true}, missing);
  REQUIRE(peer != nullptr);
  const auto backend = make_backend(default_backend(), {.threads = 1});
  const NormBench b = bench_norm(*backend, "detachnorm", {128, 512}, 3, {peer.get()});
  REQUIRE(b.peer_under_load.has_value());
  CHECK(b.peer_under_load->ours.median > 0);
  REQUIRE(b.peer_under_load->modes.size() == 1);
  CHECK(b.peer_under_load->modes[0].bodies[1].median == b.peer->modes[0].bodies[1].median);
  const auto other = start();
  CHECK_FALSE(
      bench_norm(*backend, "detachnorm", {4, 8}, 3, {other.get()}).peer_under_load.has_value());
}

TEST_CASE("torch peer: steps that it does not take") {
  const auto backend = make_backend(default_backend(), {.threads = 2});
  for (const char* setting : {"train.clip=element", "train.accumulate=2"}) {
    check_error(ErrorKind::kUsage, "peer: expected train.clip=none or global",
                [&] { step_case(*backend, test::small_job({setting})); });
  }
}

}  // namespace
}  // namespace keel::bench
