#include "models/translation/search_network.h"

#include <bit>

#include "src/ops/layout.h"
#include "src/ops/search.h"

namespace keel::models {
namespace {

constexpr std::int64_t kChunk = 16;

std::vector<task::Input> encode_inputs(const task::Sizes& sizes) {
  const Shape shape{sizes.at(0), sizes.at(1)};
  return {{"source", {DType::kI32, shape}}, {"source_mask", {DType::kU8, shape}}};
}

std::vector<task::Input> step_inputs(const task::Sizes& sizes) {
  const std::int64_t rows = sizes.at(0), sentences = sizes.at(1), length = sizes.at(2),
                     room = sizes.at(3);
  return {{"last", {DType::kI32, {rows}}},      {"origin", {DType::kI32, {rows}}},
          {"position", {DType::kI32, {1}}},     {"place", {DType::kI32, {}}},
          {"seen", {DType::kU8, {rows, room}}}, {"source_mask", {DType::kU8, {sentences, length}}}};
}

// The content of all chunks of a room, with the rows in their new order and `now` (rows, 1, width)
// in its place. `name` is that of the carries, which a number of the chunk follows.
Value joined_chunks(nn::Net& net, const std::string& name, const task::Inputs& in, Value now) {
  Graph& g = net.graph;
  const Shape step = g.shape(now);
  const std::int64_t last = chunk_of(g.shape(in["seen"])[1] - 1);
  std::vector<Value> chunks;
  for (std::int64_t chunk = 0; chunk <= last; ++chunk) {
    const std::int64_t length = chunk_begin(chunk + 1) - chunk_begin(chunk);
    const Value kept =
        g.carry(fmt::format("{}{}", name, chunk), {net.dtype, {step[0], length, step[2]}});
    Value next = ops::take_rows(g, kept, in["origin"]);
    if (chunk == last) next = ops::scatter(g, next, now, in["place"]);
    g.mark_update(kept, next);
    chunks.push_back(next);
  }
  return chunks.size() == 1 ? chunks[0] : ops::concat(g, chunks, 1);
}

}  // namespace

std::vector<task::Input> search_inputs(std::string_view network, const task::Sizes& sizes) {
  return network == kEncodeNetwork ? encode_inputs(sizes) : step_inputs(sizes);
}

std::int64_t chunk_begin(std::int64_t chunk) { return chunk == 0 ? 0 : kChunk << (chunk - 1); }

std::int64_t chunk_of(std::int64_t position) {
  return std::bit_width(static_cast<std::uint64_t>(position / kChunk));
}

std::int64_t room_for(std::int64_t position) { return chunk_begin(chunk_of(position) + 1); }

nn::AttentionMemory kept_source(nn::Net& net, const std::string& layer, const Shape& shape) {
  const auto leaf = [&](const char* what) {
    return net.graph.carry(fmt::format("search/{}/{}", layer, what), {net.dtype, shape});
  };
  return {.keys = leaf("source_keys"), .values = leaf("source_values")};
}

nn::AttentionMemory joined(nn::Net& net, const std::string& layer, const task::Inputs& in,
                           const nn::AttentionMemory& now) {
  return {.keys = joined_chunks(net, "search/" + layer + "/keys", in, now.keys),
          .values = joined_chunks(net, "search/" + layer + "/values", in, now.values),
          .mask = in["seen"]};
}

}  // namespace keel::models
