// One network, evaluated from several threads: weights are shared and only read; each thread has a
// backend and a program, with memory of its own. usage: serving own_loop.safetensors [THREADS]
#include <keel/layers.h>
#include <keel/run.h>

#include <chrono>
#include <cstdio>
#include <numeric>
#include <thread>
using namespace keel;

// The network of own_loop.cpp for one row, without its training.
Graph network() {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const Value x = g.input("x", {DType::kF32, {1, 2}});
  const Value h = nn::linear(net, "hidden", x, 32, {.norm = nn::Norm::parse("layernorm")});
  g.mark_output("y", nn::linear(net, "out", ops::tanh(g, h), 1));
  return g;
}

// The objects that one thread owns. Programs are made one after another, because a program declares
// the parameters of its graph; they are run at the same time.
struct Worker {
  Worker(Variables& weights, const Graph& g)
      : backend(make_backend("onednn", {.threads = 1})), program(*backend, weights, g) {}
  float answer(float a, float b) {
    program.feed("x", Tensor::of<float>({1, 2}, {a, b}));
    program.run();
    return program.fetch("y").as<float>()[0];
  }
  std::unique_ptr<Backend> backend;
  Program program;
};

int main(int argc, char** argv) {
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2, requests = 20000;
  if (argc < 2 || threads < 1) return std::fputs("usage: serving FILE [THREADS]\n", stderr), 2;
  const auto backend = make_backend("onednn", {.threads = 1});
  Variables weights(*backend, /*seed=*/0);
  const Graph g = network();
  weights.declare(g);
  for (const auto& [name, w] : io::read_safetensors(argv[1]).tensors) weights.write(name, w);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < threads; ++t) workers.push_back(std::make_unique<Worker>(weights, g));
  std::vector<float> answers(requests);
  std::vector<std::thread> running;
  const auto start = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (int i = t; i < requests; i += threads) {
        answers[i] = workers[t]->answer(float(i % 100) / 50 - 1, float(i / 100 % 100) / 50 - 1);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("sum of answers %.9g\n", std::accumulate(answers.begin(), answers.end(), 0.0));
  std::fprintf(stderr, "%d threads: %.0f answers/s\n", threads, requests / took.count());
}
