// keel eval
#include <fcntl.h>
#include <unistd.h>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using test::step_file;

struct Trained {
  test::TempDir temp;
  train::Summary summary =
      test::train_in(temp.path(), test::small_job({"train.epochs=2", "train.lr=1e-2"}));
  std::string folder = temp.path();
};

TEST_CASE("eval: gives what training gave" * doctest::test_suite("slow")) {
  const Trained run;
  const std::string last = step_file(run.folder, 16);
  const Json test = json_of(run_keel({"eval", last, "--json"}));
  CHECK(test.at("loss") == run.summary.test.loss);
  CHECK(test.at("error") == run.summary.test.at("error"));
  CHECK(test.at("rows") == 60);
  const Json valid = json_of(run_keel({"eval", last, "--split", "valid", "--json"}));
  CHECK(valid.at("loss") == run.summary.valid.loss);
  CHECK(json_of(run_keel({"eval", last, "--split", "train", "--json"})).at("rows") == 275);
  const Json best = json_of(run_keel({"eval", run.folder, "--json"}));
  CHECK(best.at("loss") == run.summary.best_test->loss);
  CHECK(run_keel({"eval", run.folder}).out.starts_with("test: error "));
}

// A terminal of nobody's, which programs may write to.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    name_ = ptsname(master_);
    slave_ = open(name_.c_str(), O_RDWR | O_NOCTTY);  // what was written stays while it is open
    REQUIRE(slave_ >= 0);
  }
  ~Terminal() {
    close(slave_);
    close(master_);
  }
  const std::string& name() const { return name_; }
  std::string read_all() const {
    std::string bytes(1 << 16, '\0');
    const ssize_t count = read(master_, bytes.data(), bytes.size());
    return bytes.substr(0, std::size_t(std::max<ssize_t>(count, 0)));
  }

 private:
  int master_, slave_ = -1;
  std::string name_;
};

TEST_CASE("eval: a line on a terminal says how far it has come, and goes; elsewhere there is none" *
          doctest::test_suite("slow")) {
  const Trained run;
  const Terminal terminal;
  const auto eval = [&](const char* term) {
    const ProcessResult result =
        run_keel({"eval", run.folder, "--split", "valid"},
                 {.environment = {{"TERM", term}}, .err = terminal.name()});
    CHECK(result.out.starts_with("valid: error "));
    return terminal.read_all();
  };
  CHECK(eval("xterm") == "[####################] valid: evaluating, batch 1 of 1\r\x1b[K");
  CHECK(eval("dumb") == "valid: evaluating, batch 1 of 1\r\n");
  CHECK(run_keel({"eval", run.folder}).err == "");
}

TEST_CASE("eval: other data" * doctest::test_suite("slow")) {
  const Trained run;
  check_refusal(run_keel({"eval", run.folder, "--data", run.folder}), 4, "t10k-images");
  const ProcessResult builtin = run_keel({"eval", run.folder, "--data", "builtin", "--json"});
  CHECK(json_of(builtin).at("rows") == 2000);
}

TEST_CASE("eval: what cannot be meant" * doctest::test_suite("slow")) {
  const Trained run;
  for (const char* set : {"train.lr=1", "train.seed=1", "train.batch=32"}) {
    check_refusal(
        run_keel({"eval", run.folder, "--set", set}), 2,
        fmt::format("eval --set: expected model.NAME=VALUE or data.NAME=VALUE, got '{}'", set));
  }
  check_refusal(run_keel({"eval", run.folder, "--data", "builtin", "--set", "data.source=x"}), 2,
                "--data and --set data.source");
  check_refusal(run_keel({"eval", run.folder, "--data", "/none/such"}), 4,
                "/none/such: no such folder of data");
  std::filesystem::create_directory(run.temp / "bare");
  check_refusal(run_keel({"eval", run.temp / "bare"}), 4,
                "bare: expected a checkpoint or a run's folder, got a folder without checkpoints");
}

TEST_CASE("eval: damage anywhere in a checkpoint is found") {
  const Trained run;
  const std::string whole = test::read_bytes(step_file(run.folder, 16)),
                    path = run.temp / "damaged.safetensors";
  const auto eval = [&](const std::string& bytes) {
    test::write_bytes(path, bytes);
    return run_keel({"eval", path});
  };
  for (const double where : {0.0, 0.01, 0.3, 0.7, 0.999}) {
    CAPTURE(where);
    std::string bytes = whole;
    bytes[std::size_t(where * double(bytes.size()))] ^= 1;
    check_refusal(eval(bytes), 3, "damaged.safetensors");
  }
  check_refusal(eval(whole.substr(0, whole.size() - 1)), 3, "damaged.safetensors");
  check_refusal(eval(""), 3, "damaged.safetensors");
}

TEST_CASE("eval: refusals") {
  const Trained run;
  check_refusal(run_keel({"eval", run.temp / "nowhere"}), 4, "nowhere");
  check_refusal(run_keel({"eval", run.folder, "--split", "tset"}), 2, "tset");
  std::filesystem::remove(run.temp / "checkpoints/best.safetensors");
  check_refusal(run_keel({"eval", run.folder}), 4, "best.safetensors");
  io::TensorFile foreign;
  foreign.tensors.emplace("x", Tensor(DType::kF32, {2}));
  io::write_safetensors(run.temp / "foreign.safetensors", foreign);
  check_refusal(run_keel({"eval", run.temp / "foreign.safetensors"}), 3,
                "expected a checkpoint of keel");
  // An intact file of the format, but nothing says that it is.
  test::write_bytes(run.temp / "bare.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  check_refusal(run_keel({"eval", run.temp / "bare.safetensors"}), 3, "checksum");
}

}  // namespace
}  // namespace keel::cli
