// keel identify
#include <sstream>

#include "frontend/nn/norm.h"
#include "tests/program/norm_case.h"

namespace keel::cli {
namespace {

// A file of arrays for `keel identify`, and what it says of them.
struct IdentifyCase : Case {
  ProcessResult identify(const Arrays& given, std::vector<std::string> more = {}) {
    test::write_bytes(folder / "given.npz", io::npz_bytes(given));
    std::vector<std::string> words{"identify", folder / "given.npz"};
    words.insert(words.end(), more.begin(), more.end());
    return run_keel(words);
  }

  // The inputs and the outputs of a norm of `keel norm`.
  Arrays arrays_from(const std::string& norm, Arrays given) {
    for (auto& [name, value] : results(given, {norm})) {
      if (name.starts_with("state.")) {
        given["after." + name.substr(6)] = value.clone();
      } else if (name == "y" || name == "dx" || name == "dgain") {  // what identify reads
        given[name] = value.clone();
      }
    }
    Arrays renamed;
    for (auto& [name, value] : given) {
      const bool is_state = name.starts_with("state.");
      renamed[is_state ? "before." + name.substr(6) : name] = std::move(value);
    }
    return renamed;
  }

  Json json_for(const Arrays& given, int code = 0) {
    const ProcessResult result = identify(given, {"--json"});
    CAPTURE(result.err);
    CHECK(result.code == code);
    return Json::parse(result.out, nullptr, false);
  }
};

// A norm as it is run, with arrays besides x and dy, and what is said of it.
struct Named {
  std::string norm, name;
  std::vector<std::string> features = {};  // arrays (24) to draw
  Shape x = {40, 24};
  std::vector<std::pair<std::string, Shape>> more = {};  // arrays of other shapes
  std::map<std::string, std::string> options = {};       // the answer must have
  std::optional<Shape> given = {};                       // the shape of x for `keel identify`
};

Names words(const std::string& text, char between) {
  Names found;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, between);) {
    if (!word.empty()) found.push_back(word);
  }
  return found;
}

Shape shape_of(const std::string& text, char between) {
  std::vector<std::int64_t> sizes;
  for (const std::string& size : words(text, between)) sizes.push_back(std::stoll(size));
  return Shape(sizes);
}

// A row of identify_cases.inc.
Named named(const std::string& norm, const std::string& name, const std::string& options,
            const std::string& shape, const std::string& arrays) {
  const std::size_t as = shape.find(" as ");
  Named row{.norm = norm, .name = name, .x = shape_of(shape.substr(0, as), ' ')};
  if (as != std::string::npos) row.given = shape_of(shape.substr(as + 4), ' ');
  for (const std::string& option : words(options, ' ')) {
    const Names pair = words(option, '=');
    row.options[pair.at(0)] = pair.at(1);
  }
  for (const std::string& array : words(arrays, ' ')) {
    const Names pair = words(array, ':');
    row.more.emplace_back(pair.at(0), shape_of(pair.at(1), 'x'));
  }
  return row;
}

const std::vector<Named>& known_norms() {
#define IDENTIFY(...) named(__VA_ARGS__),
#define KEEL_IDENTIFY(...) named(__VA_ARGS__),
  static const std::vector<Named> all{
#include "tests/program/identify_cases.inc"
  };
#undef IDENTIFY
#undef KEEL_IDENTIFY
  return all;
}

// Positive where a state has to be.
Tensor drawn_array(const std::string& name, const Shape& shape, std::uint32_t stream) {
  Tensor value = random(shape, stream);
  if (name == "bias" || name.ends_with("mean") || name.ends_with("nu")) return value;
  for (double& v : value.as<double>()) v = 0.5 + std::abs(v);
  return value;
}

// As the program takes them in.
Tensor in_floats(const Tensor& value) { return value.to(DType::kF32); }

Arrays arrays_for(const Named& row) {
  Arrays given = arrays_of("x", random(row.x, 1), "dy", random(row.x, 2));
  std::uint32_t stream = 3;
  for (const std::string& name : row.features) {
    given[name] = drawn_array(name, {24}, stream++);
  }
  for (const auto& [name, shape] : row.more) given[name] = drawn_array(name, shape, stream++);
  for (auto& [name, value] : given) value = in_floats(value);
  return given;
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: every norm is named from its own output") {
  for (const Named& row : known_norms()) {
    CAPTURE(row.norm);
    CAPTURE(row.x.text());
    Arrays arrays = arrays_from(row.norm, arrays_for(row));
    for (const char* name : {"x", "y", "dy", "dx"}) {
      if (row.given) arrays[name] = Tensor::of<float>(*row.given, arrays.at(name).as<float>());
    }
    const Json answer = json_for(arrays);
    REQUIRE(answer["known"] == true);
    CHECK(answer["fits"] == true);
    const Json& best = answer["matches"][0];
    CHECK(best["norm"] == row.name);
    CHECK(best["gradient"] != "");
    for (const auto& [option, value] : row.options) {
      CAPTURE(option);
      CHECK(best["options"].value(option, "") == value);
    }
    for (const Json& match : answer["matches"]) CHECK(match["norm"] == row.name);
  }
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: one group with a gain per channel is a layernorm, too") {
  const Named row = named("groupnorm{groups=1}", "", "", "3 8 4 5", "gain:8 bias:8");
  const std::string told = identify(arrays_from(row.norm, arrays_for(row))).out;
  CHECK(told.starts_with("groupnorm{groups=1,eps=1e-05}: y within "));
  CHECK(holds(told, "the same as layernorm of a whole sample with a gain and a bias per channel"));
}

TEST_CASE("identify: the table has every norm but the one that is drawn") {
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    const bool is_there = std::ranges::any_of(known_norms(), [&](const Named& row) {
      return nn::Norm::parse(row.norm).name() == facts.name;
    });
    CHECK_MESSAGE(is_there == (facts.name != "noisybatchnorm"), facts.name);
  }
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: an offset of the gain that backward forgets") {
  Arrays given = arrays_for({"layernorm", "layernorm", {"gain", "bias"}});
  const Arrays wrong = results(given, {"layernorm"});
  Tensor larger = given.at("gain").clone();
  for (float& v : larger.as<float>()) v += 1;
  Arrays offset = arrays_of("x", given.at("x").clone(), "gain", std::move(larger), "bias",
                            given.at("bias").clone());
  given["y"] = results(offset, {"layernorm"}).at("y").clone();
  given["dx"] = wrong.at("dx").clone();
  const ProcessResult result = identify(given);
  CHECK(result.code == 1);
  CHECK(result.out.starts_with("layernorm{eps=1e-05,offset=1}: y within "));
  CHECK(holds(result.out, "dx: backward ignores the +1 on the gain"));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: a gradient that is no norm's, and no norm") {
  Arrays given = arrays_from("layernorm", arrays_for({"layernorm", "", {"gain", "bias"}}));
  Arrays wrong;
  for (const auto& [name, value] : given) wrong[name] = value.clone();
  wrong["dx"].as<float>()[7] *= 1.01F;
  CHECK(holds(identify(wrong).out, "dx is not this norm's gradient (nearest: exact, "));
  CHECK(identify(wrong).code == 1);
  given["dgain"].as<float>()[3] *= 1.01F;
  CHECK(holds(identify(given).out, "dgain is not the sum of dy xhat"));
  given["y"].as<float>()[7] *= 1.01F;
  const ProcessResult none = identify(given);
  CHECK(none.code == 1);
  CHECK(none.out.starts_with("no norm that is known; the nearest:\nlayernorm{"));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: what data cannot tell, and running statistics") {
  Arrays large = arrays_of("x", in_floats(random({40, 24}, 1)));
  for (float& v : large["x"].as<float>()) v *= 1e4F;
  large["y"] = results(large, {"layernorm_simple"}).at("y").clone();
  CHECK(holds(identify(large).out,
              "eps cannot be told (0, 0.0001, 0.001, 0.01, 1.1920929e-07, 1e-05, 1e-06, 1e-07, "
              "1e-08, 1e-12): a row whose variance is near eps would tell\n"));
  const Named row{"batchnorm{keep=0.75,running_unbiased=true}",
                  "batchnorm",
                  {"state.running_mean", "state.running_var"},
                  {9, 24}};
  const std::string told = identify(arrays_from(row.norm, arrays_for(row))).out;
  CHECK(holds(told, "running_mean: takes 0.25 of the batch and keeps 0.75\n"));
  CHECK(holds(told, "running_var: takes 0.25 of the batch and keeps 0.75, unbiased\n"));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: the eps that PyTorch's RMSNorm takes") {
  for (const std::string eps : {"1.1920929e-07", "1e-07"}) {
    Arrays given = arrays_of("x", in_floats(random({40, 24}, 1)));
    for (float& v : given["x"].as<float>()) v *= 3e-4F;
    const Json answer =
        json_for(arrays_from("rmsnorm{gain=false,eps=" + eps + "}", std::move(given)));
    REQUIRE(answer["known"] == true);
    CHECK(answer["matches"].size() == 1);
    CHECK(answer["matches"][0]["options"]["eps"] == eps);
  }
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: every option that is left open is named") {
  const Named row{
      "batchrenorm{r_max=3,d_max=5}", "", {"state.running_mean", "state.running_std"}, {40, 24}};
  Arrays given = arrays_for(row);
  for (float& v : given["state.running_mean"].as<float>()) v = 1;
  for (float& v : given["state.running_std"].as<float>()) v = 1;
  const std::string told = identify(arrays_from(row.norm, std::move(given))).out;
  CHECK(holds(told, "d_max cannot be told (1e+30, 5): states that are farther from the batch's "));
  CHECK(holds(told, "r_max cannot be told (1e+30, 3): states that are farther from the batch's "));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: a gradient of the gain without a gain") {
  Arrays given = arrays_from("layernorm", arrays_for({"layernorm", ""}));
  const Json answer = json_for(given);
  REQUIRE(answer["known"] == true);
  CHECK(answer["matches"][0]["norm"] == "layernorm");
  CHECK(answer["matches"][0]["dgain"].is_number());
  given["dgain"].as<float>()[3] *= 1.01F;
  const ProcessResult wrong = identify(given);
  CHECK(wrong.code == 1);
  CHECK(holds(wrong.out, "dgain is not the sum of dy xhat ("));
  CHECK_FALSE(holds(wrong.out, "inf bounds off"));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: arrays that no norm takes together") {
  const Arrays given = arrays_of("x", random({6, 8}, 1), "y", random({6, 8}, 2), "gain",
                                 random({6}, 3), "bias", random({8}, 4), "before.running_mean",
                                 random({8}, 5), "after.running_mean", random({8}, 6));
  const ProcessResult result = identify(given);
  CHECK(result.code == 1);
  CHECK(result.out == "no norm that is known takes arrays of these shapes\n");
  CHECK(json_for(given, 1)["nearest"].empty());
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: why nothing is told of a state") {
  const Named row{"batchnorm", "", {"state.running_mean", "state.running_var"}, {9, 24}};
  Arrays given = arrays_from("batchnorm", arrays_for(row));
  given["after.psi2"] = given.at("after.running_var").clone();
  given.erase("before.running_mean");
  const std::string told = identify(given).out;
  CHECK(holds(told, "psi2: batchnorm has no such state\n"));
  CHECK(holds(told, "running_mean: nothing can be told without before.running_mean\n"));
  CHECK(holds(told, "running_var: takes "));
  const Named power{"powernorm", "", {"gain", "bias", "state.psi2", "state.nu"}};
  CHECK(holds(identify(arrays_from("powernorm", arrays_for(power))).out,
              "psi2: how powernorm changes it is not checked\n"));
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: refusals of parameters, gradients and states") {
  const auto refused = [&](const std::string& name, const Shape& shape, std::string_view part) {
    Arrays given = arrays_of("x", random({6, 8}, 1), "y", random({6, 8}, 2));
    given[name] = random(shape, 3);
    CAPTURE(name);
    check_refusal(identify(given), 3, part);
  };
  refused("gain", {5}, "gain: expected 1 or 6 or 8 elements, got 5");
  refused("bias", {6}, "bias: expected 8 elements, got 6");
  refused("dgain", {5}, "dgain: expected 1 or 6 or 8 elements, got 5");
  refused("dgain", {8}, "dgain: expected dy too");
  refused("dx", {6, 8}, "dx: expected dy too");
  refused("before.running_mean", {6}, "before.running_mean: expected 8 elements, got 6");
  refused("after.x2", {2, 7}, "after.x2: expected a multiple of 8 elements, got 14");
  refused("before.step", {2}, "before.step: expected 1 elements, got 2");
  refused("after.num_batches_tracked", {},
          "after.num_batches_tracked: expected a state of a norm: running_mean, running_var, ");
}

TEST_CASE_FIXTURE(IdentifyCase, "identify: refusals say what was expected") {
  const Tensor x = random({4, 3}, 1), flat = random({12}, 1), number = Tensor::scalar(1);
  const auto refused = [&](Arrays given, std::string_view part) {
    check_refusal(identify(given), 3, part);
  };
  refused(arrays_of("x", x.clone()), "given.npz: expected an array y, got none");
  refused(arrays_of("x", x.clone(), "y", flat.clone()), "y: expected (4, 3), got (12)");
  refused(arrays_of("x", x.clone(), "y", x.clone(), "dx", flat.clone()), "dx: expected (4, 3)");
  refused(arrays_of("x", flat.clone(), "y", flat.clone()), "x: expected two, three or four axes");
  refused(arrays_of("x", x.clone(), "y", x.clone(), "weight", flat.clone()),
          "array weight: expected only x, y, gain, ");
  refused(arrays_of("x", x.clone(), "y", x.clone(), "gain", Tensor(DType::kI32, {3})),
          "gain: expected f4 or f8, got i32(3)");
  check_refusal(run_keel({"identify", folder / "no.npz"}), 4, "no.npz");
  check_refusal(run_keel({"identify"}), 2, "file");
}

}  // namespace
}  // namespace keel::cli
