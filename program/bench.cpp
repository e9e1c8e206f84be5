// keel bench
#include <nlohmann/json.hpp>

#include "bench/recurrent_bench.h"
#include "bench/step_bench.h"
#include "program/bench_common.h"
#include "program/common.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

std::vector<std::string> time_row(const std::string& what, const bench::Timing& t) {
  return {what, milliseconds(t.median), milliseconds(t.p10), milliseconds(t.p90)};
}

std::string profile_text(const std::vector<NodeTime>& profile) {
  std::vector<std::vector<std::string>> rows{{"us", "op", "node"}};
  for (const NodeTime& node : profile) {
    rows.push_back({fmt::format("{:.1f}", node.nanoseconds * 1e-3), node.op, node.name});
  }
  return table_text(rows);
}

// The subject of the measurement, the backend, and the library beside it.
struct StepTitle {
  std::string model, what;  // what: of the batch
  nlohmann::ordered_json facts;
  std::string backend, library;
};

void print_step_json(const StepTitle& title, const bench::StepBench& b) {
  nlohmann::ordered_json profile = nlohmann::ordered_json::array();
  for (const NodeTime& n : b.profile) {
    profile.push_back({{"node", n.name}, {"op", n.op}, {"nanoseconds", n.nanoseconds}});
  }
  nlohmann::ordered_json json{
      {"model", title.model}, {"processor", processor_text()}, {"backend", title.backend}};
  json.update(title.facts);
  json.update(nlohmann::ordered_json{{"step", time_json(b.step)},
                                     {"products", time_json(b.products)},
                                     {"products_flop", b.products_flop},
                                     {"optimizer", time_json(b.optimizer)},
                                     {"copy", time_json(b.copy)},
                                     {"ratio", b.ratio()}});
  if (b.peer) {
    nlohmann::ordered_json& peer = json[title.library];
    peer = peer_json(*b.peer, {"seconds"}, "keel_seconds");
    if (b.peer_under_load) {
      peer["under_load"] = peer_json(*b.peer_under_load, {"seconds"}, "keel_seconds");
    }
  }
  if (!b.peer_refusal.empty()) json[title.library + "_refusal"] = b.peer_refusal;
  json["profile"] = profile;
  print_json(json);
}

// Rows of keel's steps and of the library's, with a column for those under load.
void add_peer_rows(const bench::StepBench& b, std::string_view title,
                   std::vector<std::vector<std::string>>& rows) {
  const bench::PeerTimes* const loaded = b.peer_under_load ? &*b.peer_under_load : nullptr;
  const auto add = [&](const std::string& what, const bench::Timing& t,
                       const bench::Timing* under_load) {
    rows.push_back(time_row(what, t));
    if (under_load != nullptr) rows.back().push_back(milliseconds(under_load->median));
  };
  add("steps in a row", b.peer->ours, loaded ? &loaded->ours : nullptr);
  for (std::size_t i = 0; i < b.peer->modes.size(); ++i) {
    const bench::PeerMode& mode = b.peer->modes[i];
    if (!mode.refusal.empty()) continue;
    add(fmt::format("{}'s, {}", title, mode.name), mode.bodies[0],
        loaded ? &loaded->modes[i].bodies[0] : nullptr);
  }
  if (loaded == nullptr) return;
  rows[0].push_back("under load");
  for (auto& row : rows) {
    if (row.size() < rows[0].size()) row.push_back("-");
  }
}

std::string step_text(const bench::StepBench& b, std::string_view title) {
  std::vector<std::vector<std::string>> rows{{"", "median ms", "p10", "p90"},
                                             time_row("step", b.step),
                                             time_row("products alone", b.products),
                                             time_row("optimizer alone", b.optimizer),
                                             time_row("copy of its bytes", b.copy)};
  if (b.peer) add_peer_rows(b, title, rows);
  std::string text = table_text(rows);
  text += fmt::format("step / (products + optimizer) = {:.2f}\n", b.ratio());
  text += fmt::format("products: {:.3g} GFLOP, {:.0f} GFLOP/s\n", b.products_flop / 1e9,
                      b.products_flop / 1e9 / b.products.median);
  if (b.peer) text += b.peer->text(title) + "\n";
  if (b.peer_under_load) text += "under load: " + b.peer_under_load->text(title) + "\n";
  if (!b.peer_refusal.empty()) text += fmt::format("{}: {}\n", title, b.peer_refusal);
  return text;
}

void print_step(const BenchArgs& args, const StepTitle& title, const bench::StepBench& b) {
  if (args.run.json) return print_step_json(title, b);
  std::string text =
      fmt::format("{}, {}, {}\n{}\n", title.model, title.what, title.backend, processor_text());
  text += step_text(b, bench::title_of(title.library));
  if (args.profile) text += "\n" + profile_text(b.profile);
  print(text);
}

std::string description_of(const Backend& backend, const bench::LibraryPeer* library) {
  std::string text = backend.description();
  return library ? text + ", beside " + library->text() : text;
}

// Beside a step in bf16 PyTorch runs under autocast, too, unless modes are named.
std::unique_ptr<bench::LibraryPeer> start_step_peer(const BenchArgs& args, const Backend& backend,
                                                    bool is_narrow) {
  PeerArgs peer = args.peer;
  const bool is_on_cpu = backend.name() != "cuda";
  const bool has_autocast = is_narrow && is_on_cpu && peer.name == "torch";
  if (has_autocast && peer.modes.empty()) peer.modes = {"usual", "autocast"};
  return start_peer(peer, args.run, backend, is_narrow ? kStepPeerModes : kWidePeerModes);
}

}  // namespace

int run_bench_step(const BenchArgs& args) {
  train::Job job = make_job(args.run);
  const auto backend = make_backend(args.run);
  settle_compute(job, *backend);
  const auto library = start_step_peer(args, *backend, job.train().is_narrow());
  const bench::StepBench b = bench::bench_step(*backend, job, args.rounds, library.get());
  const std::int64_t batch = job.train().batch;
  print_step(args,
             {args.run.model,
              fmt::format("batch {}, {}", batch, choice_text(job.train().compute)),
              {{"batch", batch}, {"compute", choice_text(job.train().compute)}},
              description_of(*backend, library.get()),
              args.peer.name},
             b);
  return 0;
}

int run_bench_recurrent(const RecurrentBenchArgs& args) {
  const BenchArgs& asked = args.bench;
  const bench::RecurrentCase c{.cell = args.cell == "gru" ? bench::Cell::kGru : bench::Cell::kLstm,
                               .norm = nn::Norm::parse(args.norm),
                               .layers = args.layers,
                               .width = args.width,
                               .steps = args.steps,
                               .rows = args.rows,
                               .is_narrow = args.compute == "bf16"};
  const auto backend = make_backend(asked.run);
  const auto library = start_step_peer(asked, *backend, c.is_narrow);
  const bench::StepBench b = bench::bench_recurrent(*backend, c, asked.rounds, library.get());
  print_step(
      asked,
      {fmt::format("{} of {}, {}", args.layers, args.cell, args.norm),
       fmt::format("{} steps of {} rows, {} wide, {}", c.steps, c.rows, c.width, args.compute),
       {{"steps", c.steps}, {"rows", c.rows}, {"width", c.width}, {"compute", args.compute}},
       description_of(*backend, library.get()),
       asked.peer.name},
      b);
  return 0;
}

int run_bench_overhead(const BenchArgs& args) {
  const train::Job job = make_job(args.run);
  std::string backend_name;
  const double first_step = bench::first_step_seconds(job, [&] {
    auto backend = make_backend(args.run);
    backend_name = backend->name();
    return backend;
  });
  const bench::OverheadBench b = bench::bench_overhead(job, args.rounds * 20);
  if (args.run.json) {
    print_json({{"model", args.run.model},
                {"kernels", b.kernels},
                {"nanoseconds_per_kernel", b.nanoseconds_per_kernel},
                {"build_seconds", b.build_seconds},
                {"compile_seconds", b.compile_seconds},
                {"first_step_backend", backend_name},
                {"first_step_seconds", first_step}});
  } else {
    print(
        fmt::format("{}: {} kernels, {:.1f} ns a kernel on the null backend; graph built in "
                    "{:.1f} ms, compiled in {:.1f} ms\n"
                    "first step on {} done {:.1f} ms after the backend was asked for\n",
                    args.run.model, b.kernels, b.nanoseconds_per_kernel, b.build_seconds * 1e3,
                    b.compile_seconds * 1e3, backend_name, first_step * 1e3));
  }
  return 0;
}

}  // namespace keel::cli
