// The options of norms: how text is read, what each name fixes, which values are refused.
#include "frontend/nn/norm.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

void check_norm_refused(const std::string& text, std::string_view beginning,
                        std::string_view part = "") {
  CAPTURE(text);
  test::check_refused([&] { Norm::parse(text); }, beginning, part);
}

TEST_CASE("norm options: names and options parse") {
  CHECK(Norm::parse("none").is_none());
  CHECK(Norm::parse("none").options().empty());
  CHECK(Norm::parse("layernorm").options() ==
        "axes=0 eps=1e-05 gain=true bias=true unbiased=false eps_outside=false "
        "per_pixel=false gain_init=1 bias_init=0");
  CHECK(Norm::parse("layernorm{eps=1e-3,bias=false}").options() ==
        "axes=0 eps=0.001 gain=true bias=false unbiased=false eps_outside=false "
        "per_pixel=false gain_init=1 bias_init=0");
  CHECK(Norm::parse("layernorm_simple").options().find("gain=false bias=false") !=
        std::string::npos);
  CHECK(Norm::parse("batchnorm{}").options() ==
        "eps=1e-05 keep=0.9 gain=true bias=true unbiased=false running_unbiased=false "
        "padding=exact mean_penalty=0 deviation_penalty=0 gain_init=1 bias_init=0");
}

TEST_CASE("norm options: the value of one by its name") {
  const Norm norm = Norm::parse("batchnorm{keep=0.25}");
  CHECK(norm.option("keep") == "0.25");
  CHECK(norm.option("eps") == "1e-05");
  CHECK(norm.option("gain_init") == "1");
  CHECK(norm.option("bias_init") == "0");  // the last one
  CHECK(norm.option("unbiased") == "false");
  CHECK(norm.option("running_unbiased") == "false");
  for (const char* unknown : {"", "kee", "ep", "eps=", "heads", "biased"}) {
    CHECK(norm.option(unknown).empty());
  }
  CHECK(Norm::parse("none").option("eps").empty());
}

TEST_CASE("norm options: defaults apply first, what the name says last") {
  const Norm norm = Norm::parse("batchnorm{keep=0.5}", "keep=0.99,unbiased=true");
  CHECK(norm.options().find("keep=0.5 ") != std::string::npos);
  CHECK(norm.options().find(" unbiased=true") != std::string::npos);
}

// The value of one option, as Norm::options() shows it.
std::string option_of(const Norm& norm, const std::string& name) {
  const std::string text = " " + norm.options() + " ", key = " " + name + "=";
  REQUIRE(text.find(key) != std::string::npos);
  const std::size_t begin = text.find(key) + key.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

TEST_CASE("norm options: powernorm has no eps in the paper's mode unless it is given") {
  const auto eps = [](const char* text, const char* defaults = "") {
    return option_of(Norm::parse(text, defaults), "eps");
  };
  CHECK(eps("powernorm") == "1e-05");
  CHECK(eps("powernorm{mode=release}") == "1e-05");
  CHECK(eps("powernorm{mode=paper}") == "0");
  CHECK(eps("powernorm", "mode=paper") == "0");
  CHECK(eps("powernorm{mode=release}", "mode=paper") == "1e-05");
  CHECK(eps("powernorm{mode=paper,eps=0.5}") == "0.5");
  CHECK(eps("powernorm{eps=0.5,mode=paper}") == "0.5");
  CHECK(eps("powernorm{mode=paper}", "eps=0.5") == "0.5");
  // At first psi2 is 1, and x is divided only by it.
  LayerRun run(
      [](Net& net, Value x) { return Norm::parse("powernorm{mode=paper,heads=0}")(net, "n", x); },
      {6, 5});
  run.program->run();
  const Tensor x = test::random_normal({6, 5}, 5, 2, 3), y = run.program->fetch("y", true);
  for (std::int64_t e = 0; e < 30; ++e) CHECK(y.at(e) == x.at(e));
}

TEST_CASE("norm options: refusals name the nearest known name") {
  check_norm_refused("lernorm", "norm: 'lernorm' is unknown", "nearest: 'layernorm'");
  check_norm_refused("", "norm: '' is unknown", "");
  check_norm_refused("batchnorm{kep=0.9}", "norm batchnorm: option kep:", "nearest: 'keep'");
  check_norm_refused("none{eps=1}", "norm none: option eps:", "'eps' is unknown");
  check_norm_refused("layernorm{eps=small}",
                     "norm layernorm: option eps:", "expected a number, got 'small'");
  check_norm_refused("layernorm{gain=maybe}",
                     "norm layernorm: option gain:", "expected true or false, got 'maybe'");
  check_norm_refused("layernorm{axes=1.5}", "norm layernorm: option axes:", "a whole number");
  check_norm_refused("layernorm{eps}", "norm layernorm:", "expected key=value, got 'eps'");
  check_norm_refused("layernorm{=1}", "norm layernorm:", "expected key=value");
  check_norm_refused("layernorm{eps=1", "norm 'layernorm{eps=1'", "closing brace");
}

TEST_CASE("norm options: text that is no list of pairs") {
  const char* pair = "norm layernorm: expected key=value, got ";
  check_norm_refused("layernorm{eps=1,}", pair, "got ''");
  check_norm_refused("layernorm{,eps=1}", pair, "got ''");
  check_norm_refused("layernorm{,}", pair, "got ''");
  check_norm_refused("layernorm{eps=1}}", pair, "got 'eps=1}'");
  check_norm_refused("layernorm{{eps=1}", pair, "got '{eps=1'");
  check_norm_refused("layernorm{", "norm 'layernorm{'", "closing brace");
  check_norm_refused("layernorm{eps=1}x", "norm 'layernorm{eps=1}x'", "closing brace");
  check_norm_refused("layernorm}", "norm: 'layernorm}' is unknown", "nearest: 'layernorm'");
  for (const char* item : {"", "eps", "=1", "eps=1,gain=false", "eps=1}", "{eps=1"}) {
    CAPTURE(std::string(item));
    const std::string more[] = {item};
    test::check_refused([&] { Norm::parse("layernorm", "", more); },
                        pair + fmt::format("'{}'", item));
  }
}

TEST_CASE("norm options: one source gives an option once, a later one overrides it") {
  const auto eps = [](const char* text, const char* defaults, std::vector<std::string> more) {
    return option_of(Norm::parse(text, defaults, more), "eps");
  };
  CHECK(eps("layernorm{eps=2}", "eps=1", {"eps=3"}) == "3");
  CHECK(eps("layernorm{eps=2}", "eps=1", {"gain=false"}) == "2");
  CHECK(eps("sequencebatchnorm", "", {}) == "1e-06");
  CHECK(eps("sequencebatchnorm", "eps=1", {}) == "1");
  const char* twice = "norm layernorm: option eps: expected one value, got '1' and '2'";
  check_norm_refused("layernorm{eps=1,gain=false,eps=2}", twice);
  test::check_refused([&] { eps("layernorm", "eps=1,eps=2", {}); }, twice);
  test::check_refused([&] { eps("layernorm", "", {"eps=1", "eps=2"}); }, twice);
}

TEST_CASE("norm options: groups are 32 unless they are given, and have to divide the width") {
  for (const std::string norm : {"groupnorm", "groupscaling"}) {
    CAPTURE(norm);
    CHECK(Norm::parse(norm).option("groups") == "32");
    const auto y = [&](const std::string& text) {
      LayerRun run([&](Net& net, Value x) { return Norm::parse(text)(net, "n", x); }, {3, 64});
      run.program->run();
      return run.program->fetch("y", true).clone();
    };
    test::check_close(y(norm), y(norm + "{groups=32}"), 0);
    const Tensor one = y(norm + "{groups=1}"), usual = y(norm);
    bool differs = false;
    for (std::int64_t e = 0; e < one.elements(); ++e) differs |= one.at(e) != usual.at(e);
    CHECK(differs);
    test::check_refused(
        [&] {
          LayerRun run([&](Net& net, Value x) { return Norm::parse(norm)(net, "n", x); }, {3, 48});
        },
        "", "groups: expected a divisor of 48");
  }
  CHECK(Norm::parse("layerscaling").option("groups") == "1");
}

TEST_CASE("norm options: every number is finite") {
  for (const NormFacts& facts : norm_facts()) {
    const std::string options = Norm::parse(facts.name).options() + " ";
    for (const char* value : {"inf", "-inf", "nan"}) {
      for (const char* option : {"eps", "keep", "gain_init", "bias_init", "C", "k", "r_max",
                                 "updates", "n_mean", "n_std", "clip", "alpha_f", "deviation"}) {
        if ((" " + options).find(fmt::format(" {}=", option)) == std::string::npos) continue;
        // The name stands for values of these.
        if (facts.name == "layernorm_simple" && std::string_view(option).ends_with("_init"))
          continue;
        check_norm_refused(fmt::format("{}{{{}={}}}", facts.name, option, value),
                           fmt::format("norm {}: option {}: ", facts.name, option),
                           fmt::format("expected a finite number, got {}", value));
      }
    }
    if (options.starts_with("eps=") || options.find(" eps=") != std::string::npos) {
      check_norm_refused(facts.name + "{eps=1e39}",
                         fmt::format("norm {}: option eps: ", facts.name),
                         "expected a number that float32 holds, got 1e+39");
    }
  }
}

TEST_CASE("norm options: values out of range") {
  for (const char* name :
       {"layernorm", "layernorm_simple", "detachnorm", "adanorm", "rmsnorm", "scalenorm"}) {
    check_norm_refused(name + std::string("{axes=-1}"), fmt::format("norm {}: option axes: ", name),
                       "expected >= 0, got -1");
  }
  for (const char* option : {"n_mean", "r_mean", "r_std"}) {
    check_norm_refused(fmt::format("noisybatchnorm{{{}=-0.5}}", option),
                       fmt::format("norm noisybatchnorm: option {}: ", option),
                       "expected >= 0, got -0.5");
  }
  check_norm_refused("noisybatchnorm{n_std=0.5}",
                     "norm noisybatchnorm: option n_std: ", "expected >= 1, got 0.5");
  for (const char* norm : {"batchnorm", "noisybatchnorm"}) {
    for (const char* option : {"mean_penalty", "deviation_penalty"}) {
      check_norm_refused(fmt::format("{}{{{}=-1}}", norm, option),
                         fmt::format("norm {}: option {}: ", norm, option),
                         "expected >= 0, got -1");
    }
  }
  check_norm_refused("batchrenorm{updates=0}", "norm batchrenorm: option updates: ", "> 0, got 0");
  check_norm_refused("batchrenorm{updates=-1}", "norm batchrenorm: option updates: ", "got -1");
  check_norm_refused("batchrenorm{r_start=50000}",
                     "norm batchrenorm: option r_start: ", "expected 0 to r_end=40000, got 50000");
  check_norm_refused("batchrenorm{r_start=-1}", "norm batchrenorm: option r_start: ", "got -1");
  check_norm_refused("batchrenorm{d_end=1000}",
                     "norm batchrenorm: option d_start: ", "expected 0 to d_end=1000, got 5000");
  check_norm_refused("batchrenorm{d_start=-1}", "norm batchrenorm: option d_start: ", "got -1");
  check_norm_refused("mabn{m=0}", "norm mabn: option m: ", "expected >= 1, got 0");
  check_norm_refused("mabn{warmup=-5}", "norm mabn: option warmup: ", "expected >= 0, got -5");
  check_norm_refused("mabn{clip_after=-5}", "norm mabn: option clip_after: ", "got -5");
  check_norm_refused("unifiednorm{m=0}", "norm unifiednorm: option m: ", "expected >= 1, got 0");
  check_norm_refused("unifiednorm{warmup=-5}", "norm unifiednorm: option warmup: ", "got -5");
  check_norm_refused("unifiednorm{clip_after=-5}",
                     "norm unifiednorm: option clip_after: ", "got -5");
  check_norm_refused("weightnorm{deviation=-1}", "norm weightnorm: option deviation: ", "got -1");
  check_norm_refused("weightnorm{deviation=0}",
                     "norm weightnorm: option deviation: ", "> 0, got 0");
  check_norm_refused("weightnorm{gain_init=0}",
                     "norm weightnorm: option gain_init: ", "> 0, got 0");
  // The ends of the ranges are good.
  for (const char* text :
       {"batchrenorm{r_start=40000,d_start=0}", "noisybatchnorm{n_std=1,r_std=0}",
        "mabn{m=1,warmup=0,clip_after=0}", "layernorm{axes=0}"}) {
    Norm::parse(text);
  }
}

TEST_CASE("norm options: a name stands for its formula") {
  const struct {
    const char *norm, *option, *fixed, *other;
  } rows[] = {{"layernorm_simple", "gain", "false", "true"},
              {"layernorm_simple", "bias", "false", "true"},
              {"layernorm_simple", "gain_init", "1", "0.1"},
              {"layernorm_simple", "bias_init", "0", "0.1"},
              {"detachnorm", "detach_mean", "true", "false"},
              {"detachnorm", "detach_variance", "true", "false"},
              {"detachmean", "detach_mean", "true", "false"},
              {"detachmean", "detach_variance", "false", "true"},
              {"detachvariance", "detach_mean", "false", "true"},
              {"detachvariance", "detach_variance", "true", "false"},
              {"layerscaling", "groups", "1", "4"}};
  for (const auto& row : rows) {
    const auto with = [&](const char* value) {
      return fmt::format("{}{{{}={}}}", row.norm, row.option, value);
    };
    CHECK(option_of(Norm::parse(row.norm), row.option) == row.fixed);
    CHECK(Norm::parse(with(row.fixed)).options() == Norm::parse(row.norm).options());
    check_norm_refused(
        with(row.other),
        fmt::format("norm {}: option {}: expected {}, ", row.norm, row.option, row.fixed),
        fmt::format("got {}", row.other));
  }
  Norm::parse("layernorm_simple{gain=false,bias=false,eps=1}");
}

TEST_CASE("norm options: the heads of powernorm") {
  const auto apply = [](const char* text, const Shape& shape) {
    Graph g;
    Net net{.graph = g};
    Norm::parse(text)(net, "n", g.input("x", {DType::kF32, shape}));
  };
  const char* option = "norm powernorm: option heads: ";
  check_norm_refused("powernorm{heads=-1}", option, "expected >= 0, got -1");
  test::check_refused(
      [&] {
        apply("powernorm{heads=2}", {4, 8, 2, 2});
      },
      option, "expected 0 or 1 for images, which are not scaled, got 2");
  for (const Shape& tokens : {Shape{6, 8}, Shape{2, 3, 8}}) {
    test::check_refused([&] { apply("powernorm{heads=3}", tokens); }, option,
                        "expected 0 or a divisor of 8 features, got 3");
    for (const char* text : {"powernorm", "powernorm{heads=0}", "powernorm{heads=8}"}) {
      apply(text, tokens);
    }
  }
  for (const char* text : {"powernorm", "powernorm{heads=1}", "powernorm{heads=0}"}) {
    apply(text, {4, 8, 2, 2});
  }
}

}  // namespace
}  // namespace keel::nn
