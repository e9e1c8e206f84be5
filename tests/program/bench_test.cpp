// keel bench
#include "backends/backends.h"
#include "bench/norm_accuracy.h"
#include "frontend/nn/norm.h"
#include "tests/program/helpers.h"
#include "tests/support/fake_python.h"

namespace keel::cli {
namespace {

std::vector<std::string> bench(const std::string& what, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{
      "bench", what,     "mnist_mlp",         "--set", "model.hidden=16", "--rounds",
      "5",     "--data", test::small_digits()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("bench: a step beside its floor") {
  const Json json = json_of(run_keel(bench("step", {"--json"})));
  CHECK(json.at("model") == "mnist_mlp");
  CHECK(json.at("batch") == 128);
  for (const char* part : {"step", "products", "optimizer", "copy"}) {
    CAPTURE(std::string(part));
    CHECK(json.at(part).at("p10") > 0);
    CHECK(json.at(part).at("p10") <= json.at(part).at("median"));
    CHECK(json.at(part).at("median") <= json.at(part).at("p90"));
  }
  CHECK(json.at("ratio") > 0);
  CHECK(json.at("products_flop") > 0);
  CHECK(json.at("profile").size() > 10);
  const ProcessResult text = run_keel(bench("step", {"--profile"}));
  CHECK(text.code == 0);
  CHECK(holds(text.out, "step / (products + optimizer) = "));
  CHECK(holds(text.out, " GFLOP/s"));
  CHECK(holds(text.out, "adam_step"));
}

TEST_CASE("bench: overhead") {
  const Json json = json_of(run_keel(bench("overhead", {"--json"})));
  CHECK(json.at("kernels") > 10);
  CHECK(json.at("nanoseconds_per_kernel") > 0);
  CHECK(json.at("first_step_seconds") > 0);
  const ProcessResult text = run_keel(bench("overhead"));
  CHECK(holds(text.out, "ns a kernel"));
  CHECK(holds(text.out, "first step on"));
}

TEST_CASE("bench: hashes of a norm, and those of another machine") {
  const ProcessResult made = run_keel({"bench", "norms", "scalenorm", "--hashes"});
  CHECK(made.code == 0);
  CHECK(holds(made.out, " scalenorm rows,groups=7,n=16,"));
  const test::TempDir folder;
  const std::string path = folder / "hashes.txt";
  const auto against = [&](const std::string& text) {
    test::write_bytes(path, text);
    return run_keel({"bench", "norms", "scalenorm", "--hashes", "--against", path});
  };
  const ProcessResult same = against(made.out);
  CHECK(same.code == 0);
  CHECK(holds(same.out, " hashes agree with "));
  std::string changed = made.out;
  char& digit = changed[changed.find(" scalenorm rows,groups=7,n=40,") - 1];
  digit = digit == '0' ? '1' : '0';
  const ProcessResult other = against(changed);
  CHECK(other.code == 1);
  CHECK(holds(other.out, "first difference: "));
  CHECK(holds(other.out, "groups=7,n=40,"));
  CHECK(against("nothing\n").code == 3);
  CHECK(against("# no norm\n").code == 3);
  CHECK(run_keel({"bench", "norms", "--against", path}).code == 2);
  CHECK(run_keel({"bench", "norms", "--hashes", "--rounds", "5"}).code == 2);
  CHECK(run_keel({"bench", "norms", "--hashes", "--threads", "1,2"}).code == 2);
  CHECK(run_keel({"bench", "norms", "--hashes", "--against", path + ".none"}).code == 4);
}

TEST_CASE("bench: graphs of several sizes") {
  const Json json =
      json_of(run_keel({"bench", "graph", "--nodes", "500,1000", "--rounds", "3", "--json"}));
  REQUIRE(json.at("graphs").size() == 2);
  CHECK(json.at("graphs")[1].at("nodes") > 900);
  CHECK(json.at("graphs")[1].at("total") > json.at("graphs")[1].at("passes"));
  const ProcessResult text = run_keel({"bench", "graph", "--nodes", "500"});
  CHECK(holds(text.out, "us a node"));
}

TEST_CASE("bench: a softmax over many words and its memory") {
  const auto softmax = [](const std::string& more) {
    return run_keel({"bench", "softmax", "--words", "9000", "--width", "8", "--rows", "1000",
                     "--cutoffs", "100,1000", "--rounds", "3", more});
  };
  const Json json = json_of(softmax("--json"));
  CHECK(json.at("step").at("median") > 0);
  CHECK(json.at("flop") == 6.0 * 9000 * 8 * 1000);
  CHECK(json.at("cutoffs").size() == 2);
#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory
  // All logits would be 4/3 of this; threads and the allocator keep some memory of their own, too.
  CHECK(json.at("bytes") < 9000 * 1000 * 3);
#endif
  const ProcessResult text = softmax("--threads=1");
  CHECK(holds(text.out, "MiB"));
  CHECK(holds(text.out, " GFLOP/s of the step"));
}

TEST_CASE("bench: a table of embeddings by its whole gradient and by rows") {
  const auto table = [](const std::string& more) {
    return run_keel({"bench", "table", "--vocabulary", "300", "--width", "5", "--ids", "40",
                     "--rounds", "3", more});
  };
  const Json json = json_of(table("--json"));
  CHECK(json.at("vocabulary") == 300);
  for (const char* form : {"whole", "rows", "lazy"}) CHECK(json.at(form).at("median") > 0);
  const ProcessResult text = table("--optimizer=sgd");
  CHECK(text.code == 0);
  CHECK(holds(text.out, "a table of 300 x 5, 40 ids, sgd"));
  CHECK(holds(text.out, "rows, lazy"));
}

std::vector<std::string> accuracy(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "accuracy"});
  return more;
}

TEST_CASE("bench: accuracy of one norm, and its worst case alone" * doctest::test_suite("slow")) {
  const Json all = json_of(run_keel(accuracy({"rmsnorm", "scalenorm", "--json"}))).at("norms");
  REQUIRE(all.size() == 2);
  for (const Json& norm : all) {
    CHECK(norm.at("cases") > 300);
    for (const char* of : {"forward", "dx", "parameters"}) {
      CAPTURE(std::string(of));
      const Json& worst = norm.at(of);
      if (default_backend() == "onednn") CHECK(worst.at("error") > 0);
      CHECK(worst.at("error") <= worst.at("bound"));
      CHECK(worst.at("bound") == (of == std::string("forward") ? 16 : 64));
      const ProcessResult alone =
          run_keel(accuracy({norm.at("norm"), "--case", worst.at("case"), "--json"}));
      CHECK(json_of(alone).at("norms")[0].at(of) == worst);
    }
  }
}

TEST_CASE("bench: accuracy as a table, and exit code 1 over a bound") {
  const std::vector<std::string> arguments{"layernorm", "--case", "rows,groups=4,n=65,mean=1e6"};
  const ProcessResult good = run_keel(accuracy(arguments));
  CHECK(good.code == 0);
  CHECK(holds(good.out, "parameters"));
  CHECK(holds(good.out, "rows,groups=4,n=65,split=1,mean=1000000,eps=1e-05,deviation=1,"));
  CHECK_FALSE(holds(good.out, "FAILED"));
  std::vector<std::string> nothing = arguments;
  nothing.insert(nothing.end(), {"--backend", "null"});
  const ProcessResult bad = run_keel(accuracy(nothing));
  CHECK(bad.code == 1);
  CHECK(holds(bad.out, "FAILED"));
}

TEST_CASE("bench: accuracy's help names every norm that is left out") {
  const std::string help = run_keel(accuracy({"--help"})).out;
  const std::vector<std::string> measured = bench::accuracy_norms();
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const bool skipped = std::ranges::count(measured, facts.any_width()) == 0;
    if (skipped) CHECK(holds(help.substr(help.find("not included: ")), facts.name));
  }
}

TEST_CASE("bench: accuracy, refusals" * doctest::test_suite("slow")) {
  const auto refused = [](const std::vector<std::string>& arguments, std::string_view part) {
    check_refusal(run_keel(accuracy(arguments)), 2, part);
  };
  refused({"none"}, "'none' does nothing");
  refused({"layernom"}, "nearest: 'layernorm'");
  refused({"powernorm{heads=2}"}, "expected heads=0, got 2");
  refused({"layernorm{axes=2}", "--case", "rows"}, "norm/gain: expected (3, 17), got (17)");
  refused({"detachnorm{axes=2}", "--case", "rows"}, "groups: expected 3, got 1");
  refused({"groupnorm{groups=0}", "--case", "rows"}, "groups: expected 1 or more, got 0");
  refused({"layernorm", "--case", "row,n=3"},
          "expected rows, columns, images, instances, sequences, thumbnails first");
  refused({"layernorm", "--case", "rows,m=3"}, "got 'm=3'");
  refused({"layernorm", "--case", "rows,n"}, "a whole number");
  refused({"layernorm", "--case", "rows,n=0"}, "expected groups and n of at least 1");
  refused({"layernorm{unbiased=true}", "--case", "rows,n=1"}, "takes none of the cases");
  refused({"batchnorm", "--case", "rows,n=3"}, "batchnorm: expected the layout columns or images");
  refused({"layernorm", "--case", "columns,n=5"}, "layernorm: expected the layout rows, got 'col");
  refused({"layernorm", "--thorough", "--case", "rows"}, "--case");
}

std::vector<std::string> norms(std::vector<std::string> more) {
  std::vector<std::string> arguments{"bench", "norms", "--rounds", "3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("bench norms: every norm on every shape by every number of threads") {
  const Json json = json_of(run_keel(norms(
      {"rmsnorm", "instancenorm", "--shapes", "64x64,2x4x8x8", "--threads", "1,2", "--json"})));
  CHECK(json.at("rounds") == 3);
  CHECK(json.at("backends").size() == 2);
  CHECK_FALSE(json.contains("torch"));
  CHECK(json.at("norms").size() == 8);
  std::size_t i = 0;
  for (const int threads : {1, 2}) {
    for (const char* norm : {"rmsnorm", "instancenorm"}) {
      for (const Json& shape : {Json{64, 64}, Json{2, 4, 8, 8}}) {
        const Json& row = json.at("norms").at(i++);
        CHECK(row.at("norm") == norm);
        CHECK(row.at("shape") == shape);
        CHECK(row.at("threads") == threads);
        const bool is_refused = norm == std::string("instancenorm") && shape.size() == 2;
        CHECK(row.contains("refusal") == is_refused);
        if (is_refused) continue;
        const std::int64_t elements = shape.size() == 2 ? 4096 : 512;
        const Json &forward = row.at("forward"), &backward = row.at("backward");
        const std::int64_t bytes = forward.at("bytes");
        CHECK((bytes == 8 * elements || bytes == 16 * elements));
        CHECK(backward.at("bytes") == bytes / 2 * 3);
        CHECK(forward.at("ratio") > 0);
        CHECK(backward.at("gigabytes_per_second") > 0);
        CHECK_FALSE(row.contains("torch"));
      }
    }
  }
}

TEST_CASE("bench norms: with a residual four arrays move, forward and backward") {
  const std::vector<std::string> words{"rmsnorm",   "--shapes", "64x64",
                                       "--threads", "1",        "--residual"};
  std::vector<std::string> as_json = words;
  as_json.push_back("--json");
  const Json json = json_of(run_keel(norms(as_json)));
  CHECK(json.at("residual") == true);
  const Json& row = json.at("norms").at(0);
  const std::int64_t bytes = row.at("forward").at("bytes");
  CHECK((bytes == 16 * 4096 || bytes == 32 * 4096));
  CHECK(row.at("backward").at("bytes") == bytes);
  CHECK(holds(run_keel(norms(words)).out, "the norm reads x + residual"));
  CHECK(json_of(run_keel(norms({"rmsnorm", "--shapes", "8x8", "--threads", "1", "--json"})))
            .at("residual") == false);
}

TEST_CASE("bench norms: one and two threads are the default, as a table") {
  const ProcessResult text = run_keel(norms({"layernorm_simple", "--shapes", "8x400"}));
  CHECK(text.code == 0);
  for (const char* row : {"layernorm_simple  8x400  1  ", "layernorm_simple  8x400  2  "}) {
    CHECK(holds(text.out, row));
  }
  check_refusal(run_keel(norms({"--threads", "1,two"})), 2, "--threads");
  check_refusal(run_keel(norms({"layernorm_simple", "--shapes", "8x400", "--threads", "-1"})), 2,
                "threads");
  check_refusal(run_keel(norms({"--peer", "mlx"})), 2, "--peer");
  check_refusal(run_keel(norms({"--under-load"})), 2, "--peer");
  check_refusal(run_keel(norms({"--peer", "jax", "--peer-modes", "compiled"})), 2,
                "--peer-modes: expected usual, plain, channels_last of JAX, got 'compiled'");
  check_refusal(run_keel({"bench", "softmax", "--peer", "jax"}), 2, "--peer");
}

TEST_CASE("bench: PyTorch beside it" * doctest::test_suite("slow")) {
  const test::FakePython python(test::kDetachNormPeer);
  const Json json = json_of(run_keel(norms({"detachnorm", "layernorm_simple", "--shapes", "128x64",
                                            "--threads", "2", "--peer", "torch", "--json"})));
  CHECK(json.at("torch") == "fake on cpu 2");
  const Json& times = json.at("norms").at(0).at("torch");
  const Json& usual = times.at("modes").at("usual");
  const double forward = usual.at("forward_seconds").at("median"),
               both = usual.at("both_seconds").at("p90"),
               ours = times.at("keel_both_seconds").at("median");
  CHECK(forward >= 1e-6);
  CHECK(both == doctest::Approx(3 * forward));
  CHECK(ours > 0);
  CHECK(times.at("ratio") == doctest::Approx(both / ours));
  CHECK(times.at("fastest") == "usual");
  CHECK(times.at("modes").size() == 1);
  CHECK(json.at("norms").at(1).at("torch_refusal") == "no layernorm_simple");
  CHECK_FALSE(json.at("norms").at(1).contains("torch"));
  const ProcessResult text =
      run_keel(norms({"detachnorm", "--shapes", "128x64", "--peer", "torch"}));
  CHECK(holds(text.out, "beside PyTorch fake on cpu 1"));
  CHECK(holds(text.out, "PyTorch/keel"));
  CHECK(text.err == "");
  const Json modes = json_of(run_keel(norms({"detachnorm", "--shapes", "128x64", "--peer", "torch",
                                             "--peer-modes", "plain,compiled", "--json"})));
  const Json& row = modes.at("norms").at(0);
  CHECK(row.at("torch").at("fastest") == "plain");
  CHECK(row.at("torch").at("modes").at("compiled").at("refusal") == "no compiler");
  CHECK(row.at("torch_refusal") == "compiled: no compiler");
  check_refusal(run_keel(norms({"--peer-modes", "plain"})), 2, "--peer");
  check_refusal(run_keel(norms({"--peer", "torch", "--peer-modes", "autocast"})), 2, "autocast");
}

TEST_CASE("bench: JAX beside it, and both under load" * doctest::test_suite("slow")) {
  const test::FakePython python(test::kDetachNormPeer);
  const std::vector<std::string> words{"detachnorm", "--shapes", "128x64", "--threads",
                                       "1",          "--peer",   "jax",    "--under-load"};
  std::vector<std::string> as_json = words;
  as_json.push_back("--json");
  const Json json = json_of(run_keel(norms(as_json)));
  CHECK(json.at("jax") == "fake on cpu 1");
  const Json& times = json.at("norms").at(0).at("jax");
  CHECK(times.at("fastest") == "usual");
  const Json& loaded = times.at("under_load");
  CHECK(loaded.at("keel_both_seconds").at("median") > 0);
  CHECK(loaded.at("modes").at("usual").at("both_seconds") ==
        times.at("modes").at("usual").at("both_seconds"));
  const ProcessResult text = run_keel(norms(words));
  for (const char* part : {"beside JAX fake on cpu 1", "JAX/keel", "JAX/keel, under load"}) {
    CHECK(holds(text.out, part));
  }
}

TEST_CASE("bench: without PyTorch or JAX there is a warning and the rest is measured") {
  const test::ProcessOptions options{.environment = {{"KEEL_PYTHON", "no-such-python"}}};
  CHECK(holds(run_keel(bench("step", {"--peer", "jax", "--json"}), options).err,
              "warning: no peer jax: no-such-python: "));
  const ProcessResult result = run_keel(bench("step", {"--peer", "torch", "--json"}), options);
  const Json json = json_of(result);
  CHECK(json.at("step").at("median") > 0);
  CHECK_FALSE(json.contains("torch"));
  CHECK(result.err ==
        "warning: no peer torch: no-such-python: No such file or directory (the variable "
        "KEEL_PYTHON names the Python to run)\n");
}

TEST_CASE("bench: a peer that dies or talks nonsense is one error") {
  const auto steps = [](const std::string& program) {
    const test::FakePython python(program);
    return run_keel(bench("step", {"--peer", "torch"}));
  };
  check_refusal(steps("#!/bin/sh\nexit 1\n"), 4, "expected an answer, but it ended");
  check_refusal(steps("#!/bin/sh\necho '{\"torch\": \"1\"}'\n"), 4, "ended");
  check_refusal(steps("#!/bin/sh\necho hello\n"), 3, "peer: expected a JSON object");
}

}  // namespace
}  // namespace keel::cli
