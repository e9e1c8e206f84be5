// A network and its training by hand: y = x0 * x1 is learned by one hidden layer; the weights go
// into a file and come back. usage: own_loop [BACKEND]
#include <keel/layers.h>
#include <keel/run.h>

#include <cstdio>
using namespace keel;

int main(int argc, char** argv) {
  Graph g;
  nn::Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {64, 2}}), y = g.input("y", {DType::kF32, {64, 1}});
  Value h = nn::linear(net, "hidden", x, 32, {.norm = nn::Norm::parse("layernorm")});
  h = nn::linear(net, "out", ops::tanh(g, h), 1);
  const Value loss = ops::mean(g, ops::square(g, ops::sub(g, h, y)));
  g.mark_output("loss", loss);
  const std::vector<Value> parameters = g.leaves(NodeKind::kParameter);
  const Value lr = g.constant(0.01), count = g.input("step", {DType::kI32, {}});
  optim::apply_optimizer(g, parameters, gradient(g, loss, parameters), {lr, {}, count}, {});

  const auto backend = make_backend(argc > 1 ? argv[1] : default_backend());
  Variables weights(*backend, /*seed=*/1);
  Program step(*backend, weights, g);
  for (int i = 0; i < 500; ++i) {
    Tensor xs(DType::kF32, {64, 2}), ys(DType::kF32, {64, 1});
    const auto in = xs.as<float>(), out = ys.as<float>();
    for (std::size_t e = 0; e < 128; ++e) in[e] = float(Philox(1, 0, i).normal(e));
    for (std::size_t e = 0; e < 64; ++e) out[e] = in[2 * e] * in[2 * e + 1];
    step.feed("x", xs), step.feed("y", ys), step.feed("step", Tensor::of<int>({}, {i}));
    step.run();
    if (i % 100 == 0 || i == 499) std::printf("step %d: loss %.6f\n", i, step.scalar("loss"));
  }

  io::TensorFile file;
  for (const Value p : parameters) file.tensors[g.node(p).name] = weights.read(g.node(p).name);
  io::write_safetensors("own_loop.safetensors", file);
  for (const auto& [name, tensor] : io::read_safetensors("own_loop.safetensors").tensors)
    weights.write(name, tensor);  // throws where a shape differs
  std::printf("%zu tensors in own_loop.safetensors\n", file.tensors.size());
}
