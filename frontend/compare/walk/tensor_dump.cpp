#include "frontend/compare/walk/tensor_dump.h"

#include <algorithm>

#include "frontend/io/atomic_file.h"
#include "frontend/io/npz.h"

namespace keel::compare {
namespace {

void add_arrays(io::Arrays& arrays, const std::string& name, std::span<const Tensor> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].elements() > 0) arrays[fmt::format("{}{}", name, i)] = values[i].clone();
  }
}

io::Arrays arrays_of(const NodeTensors& tensors) {
  io::Arrays arrays;
  for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
    const Tensor* input = tensors.inputs[i];
    if (input && input->elements() > 0) arrays[fmt::format("in{}", i)] = input->clone();
  }
  add_arrays(arrays, "expected", tensors.expected);
  add_arrays(arrays, "got", tensors.got);
  add_arrays(arrays, "bound", tensors.bounds);
  return arrays;
}

}  // namespace

NodeSink dump_of_divergences(const std::filesystem::path& folder) {
  return [folder](const NodeReport& report, const NodeTensors& tensors) {
    if (!report.diverges()) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    check(!error, ErrorKind::kIo, "{}: {}", folder.string(), error.message());
    std::string name = fmt::format("{}.{}.step{}.npz", report.path, report.backend, report.step);
    std::ranges::replace(name, '/', '.');
    io::write_npz(folder / name, arrays_of(tensors));
  };
}

}  // namespace keel::compare
