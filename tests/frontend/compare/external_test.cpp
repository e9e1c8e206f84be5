// Arrays of another program: what of them is compared, what is not, and that nothing passes unseen.
#include "frontend/compare/walk/external.h"

#include "frontend/compare/verdicts/comparison_page.h"
#include "src/ops/layout.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

// The first backend's results of a subject, each node computed from its results of those before, as
// another program's arrays.
io::Arrays arrays_of(const TestBackends& backends, GraphSubject& subject) {
  io::Arrays arrays;
  CompareOptions options;
  options.walk.mode = WalkMode::kChained;
  options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
    if (report.backend != backends.all[0]->name() || report.op == "update") return;
    const Node& node = tensors.graph.node(report.node);
    for (std::size_t port = 0; port < tensors.got.size(); ++port) {
      if (tensors.got[port].elements() == 0) continue;
      const Tensor& got = tensors.got[port];
      const DType type = is_floating(got.dtype()) ? DType::kF32 : got.dtype();
      arrays[array_name(node, int(port))] = got.to(type);
    }
  };
  backends.compare(subject, options);
  return arrays;
}

Comparison compared(const TestBackends& backends, GraphSubject& subject, const io::Arrays& arrays) {
  io::Arrays copies;
  for (const auto& [name, array] : arrays) copies[name] = array.clone();
  ExternalValues values("other", std::move(copies));
  CompareOptions options;
  options.walk.external = &values;
  return compare(*backends.reference, {}, subject, options);
}

const NodeReport& report_of(const Comparison& c, std::string_view op) {
  for (const NodeSummary& s : c.nodes) {
    if (s.worst.op == op) return s.worst;
  }
  FAIL("no report of the op");
  return c.nodes[0].worst;
}

std::string name_of(const GraphSubject& subject, std::string_view op) {
  for (int i = 0; i < subject.graph().size(); ++i) {
    const Node& node = subject.graph().node(i);
    if (node.op != nullptr && node.op->name == op) return array_name(node, 0);
  }
  return "";
}

TEST_CASE("external: a norm's backward is compared without its saved statistics") {
  const TestBackends backends;
  for (const char* norm : {"batchnorm", "layernorm", "groupnorm{groups=2}", "rmsnorm",
                           "instancenorm", "pn_v", "scalenorm"}) {
    CAPTURE(norm);
    for (const auto& subject : norm_subjects(nn::Norm::parse(norm), {.unfused = true})) {
      CAPTURE(subject->name());
      io::Arrays arrays = arrays_of(backends, *subject);
      std::string backward;
      for (int i = 0; i < subject->graph().size(); ++i) {
        const Node& node = subject->graph().node(i);
        if (node.op == nullptr || is_view(node)) continue;
        if (node.op->name.ends_with("norm_backward") || node.op->name == "pn_v_backward") {
          backward = array_name(node, 0);
          continue;
        }
        // The program gives y of the forward, and none of its statistics.
        for (int port = 1; port < int(node.outputs.size()); ++port) {
          arrays.erase(array_name(node, port));
        }
      }
      REQUIRE(!backward.empty());
      const Comparison honest = compared(backends, *subject, arrays);
      INFO(text_of(honest));
      CHECK(honest.agrees());
      CHECK(honest.complete());
      for (float& v : arrays.at(backward).as<float>()) v *= 1.02f;
      CHECK(!compared(backends, *subject, arrays).agrees());
    }
  }
}

TEST_CASE(
    "external: what misses an input is counted, listed and skipped, and nothing says agrees") {
  const TestBackends backends;
  const auto subjects = norm_subjects(nn::Norm::parse("powernorm"), {.unfused = true});
  GraphSubject& subject = *subjects[0];
  io::Arrays arrays = arrays_of(backends, subject);
  const std::string forward = name_of(subject, "power_norm");
  for (int port = 1; port < 8; ++port) arrays.erase(fmt::format("{}.{}", forward, port));
  const Comparison c = compared(backends, subject, arrays);
  CHECK(c.agrees());
  CHECK(!c.complete());
  CHECK(c.count(Verdict::kUncompared) == 1);
  const NodeReport& backward = report_of(c, "power_norm_backward");
  CHECK(!backward.compared);
  CHECK(backward.reason.find(forward + ".") != std::string::npos);
  CHECK(verdict_text({&c, 1}).find("; 1 was not compared: ") != std::string::npos);
  const std::string xml =
      junit_text({&c, 1}, [](const std::string&, const std::string&) { return ""; });
  CHECK(xml.find("skipped=\"1\"") != std::string::npos);
  CHECK(xml.find("was not given") != std::string::npos);
}

TEST_CASE("external: a view is compared as the copy it is, a name of no node is refused") {
  const TestBackends backends;
  Graph graph;
  const Value x = graph.input("x", {DType::kF32, Shape{2, 3}});
  const Value y = ops::reshape(graph, x, Shape{6});
  graph.mark_output("y", y);
  const std::string name = array_name(graph.node(y.node), 0);
  GraphSubject subject({"reshape", "given"}, std::move(graph), [](std::int64_t) {
    Feeds feeds;
    feeds["x"] = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    return feeds;
  });
  io::Arrays arrays;
  arrays[name] = Tensor::of<float>({6}, {1, 2, 3, 4, 5, 6});
  const Comparison right = compared(backends, subject, arrays);
  CHECK(right.agrees());
  CHECK(right.nodes.size() == 1);
  arrays[name] = Tensor::of<float>({6}, {1, 4, 2, 5, 3, 6});  // as if x were stored by columns
  CHECK(!compared(backends, subject, arrays).agrees());
  arrays["nowhere"] = Tensor::of<float>({1}, {1});
  try {
    compared(backends, subject, arrays);
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    CHECK(std::string(error.what()).find("nowhere") != std::string::npos);
  }
}

TEST_CASE("external: the worst element has a place, and a step's start has its constants") {
  const TestBackends backends;
  const auto subjects = op_subjects("softmax", {.unfused = true});
  GraphSubject& subject = *subjects[0];
  io::Arrays arrays = arrays_of(backends, subject);
  Tensor& y = arrays.at(name_of(subject, "softmax"));
  y.as<float>()[5] += 0.25f;
  const Comparison c = compared(backends, subject, arrays);
  CHECK(!c.agrees());
  CHECK(c.first->place == place_text(y.shape(), 5));
  const io::Arrays start = start_arrays(subject);
  for (const ArrayFacts& facts : array_facts(subject.graph())) {
    const bool is_leaf = facts.kind == "input" || facts.kind == "parameter" ||
                         facts.kind == "state" || facts.kind == "constant";
    if (is_leaf) CHECK(start.contains(facts.name));
  }
}

}  // namespace
}  // namespace keel::compare
