// keel bench ranks
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/ranks.h"
#include "bench/child_process.h"
#include "bench/rank_link.h"
#include "bench/rank_step.h"
#include "frontend/io/message.h"
#include "program/bench_common.h"
#include "program/common.h"
#include "program/end_ranks.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

// A way to train: so many processes of so many threads.
struct Way {
  std::string name;
  int ranks = 1, threads = 1, shards = 1;
  std::string reduce = "fixed";
};

std::vector<Way> ways_of(const RanksBenchArgs& args) {
  const int n = args.ranks, shards = args.shards;
  const auto by_ranks = [&](int of, const char* reduce) {
    return Way{fmt::format("{} ranks x 1 thread, {} shards, {}", n, of, reduce), n, 1, of, reduce};
  };
  std::vector<Way> ways{{fmt::format("1 x {} threads, 1 shard", n), 1, n, 1},
                        {fmt::format("1 x {} threads, {} shards", n, shards), 1, n, shards},
                        by_ranks(shards, "fixed"),
                        by_ranks(shards, "fast")};
  if (shards != n) {
    ways.push_back(by_ranks(n, "fixed"));
    ways.push_back(by_ranks(n, "fast"));
  }
  return ways;
}

std::vector<std::string> command_of(const RanksBenchArgs& args, const Way& way) {
  const RunArgs& run = args.run;
  std::vector<std::string> words;
  if (way.ranks > 1) {
    words = {"mpirun", "-n", fmt::format("{}", way.ranks), "--oversubscribe", "--bind-to", "none"};
    if (geteuid() == 0) words.push_back("--allow-run-as-root");
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string& word :
       {program, std::string("bench"), std::string("ranks"), run.model, std::string("--here"),
        std::string("--json"), fmt::format("--steps={}", args.steps),
        fmt::format("--threads={}", way.threads), "--reduce=" + way.reduce}) {
    words.push_back(word);
  }
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(option + value);
  };
  add("--recipe=", run.recipe);
  add("--data=", run.data);
  add("--norm=", run.norm);
  add("--compute=", run.compute);
  add("--backend=", run.backend);
  if (run.device) words.push_back(fmt::format("--device={}", *run.device));
  if (run.tf32) words.push_back("--tf32");
  for (const std::string& set : run.sets) add("--set=", set);
  add("--set=", fmt::format("train.shards={}", way.shards));
  return words;
}

// The measurements of a process, or of ranks, that this process starts.
Json measured_by(const std::vector<std::string>& command) {
  bench::ChildProcess child(command);
  std::string text;
  std::string line;
  do {
    line = child.read_line();
    text += line + '\n';
  } while (line != "}");
  return Json::parse(text);
}

Json here_json(const bench::RankStep& step, const bench::RankLink& link,
               const bench::RoundTimes& sum_alone) {
  return {{"step_seconds", step.seconds},
          {"among_seconds", step.among},
          {"sum_alone_seconds", sum_alone.least},
          {"sum_alone_median_seconds", sum_alone.median},
          {"items", step.items},
          {"summed_bytes", step.summed_bytes},
          {"gatherings", step.gatherings},
          {"gathered_bytes", step.gathered_bytes},
          {"latency_seconds", link.latency},
          {"bytes_a_second", link.rate}};
}

// Measures the ranks that this process is one of.
int bench_here(const RanksBenchArgs& args, Communicator& ranks) {
  train::Job job = make_job(args.run);
  const auto backend = make_backend(args.run);
  settle_compute(job, *backend, &ranks);
  const Reduction reduction = args.reduce == "fast" ? Reduction::kFast : Reduction::kFixed;
  const bench::RankStep step =
      bench::bench_rank_step(*backend, job, {ranks, reduction}, args.steps);
  bench::RankLink link;
  bench::RoundTimes sum_alone;
  std::vector<bench::SumTime> sums;
  if (ranks.size() > 1) {
    sum_alone = bench::sum_seconds(ranks, step.summed_bytes, job.train().shards, reduction);
    sums = bench::time_sums(ranks);
    link = bench::fitted_link(sums, ranks.size());
  }
  if (ranks.rank() > 0) return 0;
  Json json = here_json(step, link, sum_alone);
  json["ranks"] = ranks.size();
  json["communicator"] = ranks.description();
  json["backend"] = backend->description();
  json["processor"] = processor_text();
  for (const bench::SumTime& sum : sums) {
    json["sums"].push_back({{"bytes", sum.bytes}, {"fixed", sum.fixed}, {"fast", sum.fast}});
  }
  print_json(json);
  return 0;
}

int bench_one_of(const RanksBenchArgs& args, Communicator& ranks) {
  try {
    return bench_here(args, ranks);
  } catch (...) {
    return end_ranks(ranks);
  }
}

struct Result {
  Way way;
  Json best;  // of the rounds: that with the shortest step
};

// Throws Error{kUsage} for options that no process which this one starts could take.
void expect_possible(const RanksBenchArgs& args) {
  check(args.run.threads == 0, ErrorKind::kUsage,
        "bench ranks --threads: each way has its own number of threads; expected --here beside it, "
        "or processes that mpirun has started");
  check(args.shards >= args.ranks, ErrorKind::kUsage,
        "bench ranks --shards: expected at least {}, one a rank, got {}", args.ranks, args.shards);
}

std::vector<Result> measure_all(const RanksBenchArgs& args) {
  std::vector<Result> results;
  for (const Way& way : ways_of(args)) results.push_back({way, nullptr});
  for (int round = 0; round < args.rounds; ++round) {
    for (Result& result : results) {
      const Json one = measured_by(command_of(args, result.way));
      const bool is_better = result.best.is_null() ||
                             one.at("step_seconds").get<double>() < result.best.at("step_seconds");
      if (is_better) result.best = one;
    }
  }
  return results;
}

std::string number_ms(const Json& json, const char* name) {
  return fmt::format("{:.3f}", 1e3 * json.at(name).get<double>());
}

double speed_of(const Json& json) {
  return json.at("items").get<double>() / json.at("step_seconds").get<double>();
}

std::string ways_text(const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> rows{
      {"way", "step ms", "with others ms", "sum alone ms", "median", "speed"}};
  for (const Result& result : results) {
    rows.push_back({result.way.name, number_ms(result.best, "step_seconds"),
                    number_ms(result.best, "among_seconds"),
                    number_ms(result.best, "sum_alone_seconds"),
                    number_ms(result.best, "sum_alone_median_seconds"),
                    fmt::format("{:.2f}", speed_of(result.best) / speed_of(results[0].best))});
  }
  return table_text(rows);
}

// A step of so many hosts, each with a shard as large as that of one of the measured ranks.
struct Modelled {
  double hosts = 0, sum = 0, gatherings = 0, step = 0;  // seconds
  double efficiency = 0;  // what a host computes, of a step in which none waits for another
};

std::vector<Modelled> model_of(const Json& measured) {
  const bench::RankLink link{measured.at("latency_seconds"), measured.at("bytes_a_second")};
  const double alone =
      measured.at("step_seconds").get<double>() - measured.at("among_seconds").get<double>();
  std::vector<Modelled> rows;
  for (const double hosts : {8., 64., 512.}) {
    Modelled row{.hosts = hosts, .sum = link.sum_seconds(measured.at("summed_bytes"), hosts)};
    row.gatherings = measured.at("gatherings").get<double>() *
                     link.gather_seconds(measured.at("gathered_bytes").get<double>() /
                                             measured.at("gatherings").get<double>(),
                                         hosts);
    row.step = alone + row.sum + row.gatherings;
    row.efficiency = alone / row.step;
    rows.push_back(row);
  }
  return rows;
}

std::string model_text(const Json& measured) {
  std::vector<std::vector<std::string>> rows{
      {"hosts (model)", "step ms", "sum ms", "gatherings ms", "efficiency without waiting"}};
  for (const Modelled& row : model_of(measured)) {
    rows.push_back({fmt::format("{:.0f}", row.hosts), fmt::format("{:.3f}", 1e3 * row.step),
                    fmt::format("{:.3f}", 1e3 * row.sum),
                    fmt::format("{:.3f}", 1e3 * row.gatherings),
                    fmt::format("{:.2f}", row.efficiency)});
  }
  const std::string link = fmt::format(
      "{}: {:.1f} us a message, {:.2f} GB/s; {:.0f} bytes are summed in a step\n",
      measured.at("communicator").get<std::string>(),
      1e6 * measured.at("latency_seconds").get<double>(),
      measured.at("bytes_a_second").get<double>() / 1e9, measured.at("summed_bytes").get<double>());
  return link + table_text(rows);
}

Json model_json(const Json& measured) {
  Json rows = Json::array();
  for (const Modelled& row : model_of(measured)) {
    rows.push_back({{"hosts", row.hosts},
                    {"step_seconds", row.step},
                    {"sum_seconds", row.sum},
                    {"gathering_seconds", row.gatherings},
                    {"efficiency", row.efficiency}});
  }
  return rows;
}

// The way that the model goes on from: one shard a rank, or the fewest that were measured.
const Result& modelled(const std::vector<Result>& results) { return results[results.size() - 2]; }

void print_all(const RanksBenchArgs& args, const std::vector<Result>& results) {
  const Json& measured = modelled(results).best;
  if (!args.run.json) {
    print(fmt::format("{}, {}\n{}\n{}{}", args.run.model, measured.at("backend").get<std::string>(),
                      processor_text(), ways_text(results), model_text(measured)));
    return;
  }
  Json ways = Json::array();
  for (const Result& result : results) {
    Json row{{"way", result.way.name},
             {"speed", speed_of(result.best) / speed_of(results[0].best)}};
    row.update(result.best);
    ways.push_back(row);
  }
  print_json({{"model", args.run.model}, {"ways", ways}, {"hosts", model_json(measured)}});
}

}  // namespace

int run_bench_ranks(const RanksBenchArgs& args) {
  const auto ranks = start_ranks([](const std::string& line) { io::say(line); });
  if (ranks->size() > 1) return bench_one_of(args, *ranks);
  if (args.here) return bench_here(args, *ranks);
  check(has_mpi(), ErrorKind::kBackendMissing,
        "bench ranks: this keel was built without MPI; install Open MPI (libopenmpi-dev) and "
        "configure with -Dmpi=enabled");
  expect_possible(args);
  print_all(args, measure_all(args));
  return 0;
}

}  // namespace keel::cli
