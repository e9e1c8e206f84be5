// Runs of a plan on arrays that are not contiguous.
#include "plugin/c/plan.h"

namespace keel::plugin {
namespace {

// The strides of an array in a table that may be absent.
const std::int64_t* strides_in(const std::int64_t* const* table, std::size_t place) {
  return table == nullptr ? nullptr : table[place];
}

std::vector<std::int64_t> contiguous_strides(const Shape& shape) {
  const auto strides = shape.strides();
  return {strides.begin(), strides.begin() + shape.rank()};
}

// Throws unless outputs have memory of their own. The last `outputs` of the arrays are outputs.
void expect_apart(std::span<const MemoryOf> arrays, std::size_t outputs) {
  for (std::size_t j = arrays.size() - outputs; j < arrays.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      check(!arrays[j].overlaps(arrays[i]), ErrorKind::kUsage,
            "{}: expected memory of its own, got some of {}", arrays[j].name(), arrays[i].name());
    }
  }
}

}  // namespace

// Arrays of the shape of x are those that go by rows. A gain has that shape, too, where x is a
// single row, which is contiguous.
bool Plan::takes(const TensorType& array, const Layout& layout) const {
  if (layout.is_contiguous()) return true;
  return row_ > 0 && array.shape == outputs_[0].shape && layout.run() % row_ == 0;
}

bool Plan::takes_strides(int input, const std::int64_t* strides) const {
  check(input >= 0 && input < int(inputs_.size()) && inputs_[std::size_t(input)], ErrorKind::kUsage,
        "[{}] input {}: expected one of the request", op_.name, input);
  const TensorType& type = *inputs_[std::size_t(input)];
  if (type.shape.elements() == 0) return true;
  return takes(type, read_layout(type, strides, input_text(std::size_t(input))));
}

void Plan::expect_taken(const TensorType& array, const Layout& layout, const std::int64_t* strides,
                        const std::string& what) const {
  if (takes(array, layout)) return;
  const bool has_rows = row_ > 0 && array.shape == outputs_[0].shape;
  const std::string expected =
      has_rows ? fmt::format("rows of {} neighbours", row_) : "a contiguous array";
  fail(ErrorKind::kUsage, "{}: expected {}, got {} of {}", what, expected,
       strides_text(array.shape, strides), array.text());
}

std::vector<StridedArray> Plan::strided(const Arrays& given, const Binding& arrays) const {
  std::vector<StridedArray> found;
  if (given.strided == nullptr) return found;
  std::vector<MemoryOf> memory;
  const auto read = [&](const TensorRef& array, bool is_output, std::size_t place,
                        const std::int64_t* const* table, const std::string& what) {
    if (!array) return;
    const std::int64_t* strides = strides_in(table, place);
    const std::vector<std::int64_t> usual = contiguous_strides(array.type.shape);
    if (strides == nullptr) strides = usual.data();
    const Layout layout = read_layout(array.type, strides, what);
    expect_taken(array.type, layout, strides, what);
    memory.emplace_back(array, layout, what);
    check(!is_output || !memory.back().repeats(), ErrorKind::kUsage,
          "{}: expected a place for each element, got {} of {}", what,
          strides_text(array.type.shape, strides), array.type.text());
    if (!layout.is_contiguous()) found.push_back({is_output, place, layout});
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    read(arrays.inputs[i], false, i, given.strided->input_strides, input_text(i));
  }
  const std::size_t inputs = memory.size();
  for (std::size_t j = 0; j < outputs_.size(); ++j) {
    read(arrays.outputs[j], true, j, given.strided->output_strides, output_text(j));
  }
  expect_apart(memory, memory.size() - inputs);
  return found;
}

void Plan::start(const Binding& arrays, std::span<const StridedArray> strided, int threads) const {
  if (strided.empty()) return start(arrays);
  RowWindows windows(arrays, strided, row_, threads);
  prepared_.back().bind_rows(arrays, {.before = {}, .after = {}, .window = windows.window()})();
}

}  // namespace keel::plugin
