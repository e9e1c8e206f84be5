#include "models/order_embeddings/caption_embedder.h"

#include <algorithm>
#include <iterator>

#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"

namespace keel::models {
namespace {

constexpr std::int64_t kEmbeddedTogether = 64;  // lines of a user
constexpr const char* kFromUser = "standard input";

}  // namespace

std::shared_ptr<const CaptionRows> caption_lines(std::span<const std::string> lines,
                                                 const text::Vocabulary& vocabulary,
                                                 std::int64_t feature_width) {
  // One fold: lines are sorted by length all together.
  auto captions = std::make_shared<CaptionRows>(
      data::SplitNotes{kFromUser}, Tensor(DType::kF32, {0, feature_width}),
      CaptionRows::Options{.each = 1, .fold = std::max<std::int64_t>(std::ssize(lines), 1)});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = text::place(kFromUser, std::int64_t(i) + 1);
    check(!text::first_invalid_utf8(lines[i]), ErrorKind::kBadInput,
          "[order_embeddings] {}: expected UTF-8", where);
    captions->add(lines[i], vocabulary, where);
  }
  return captions;
}

CaptionEmbedder::CaptionEmbedder(std::span<const std::string> lines,
                                 const text::Vocabulary& vocabulary, std::int64_t feature_width)
    : answers_(lines.size()) {
  auto captions = caption_lines(lines, vocabulary, feature_width);
  if (!lines.empty()) ask(std::move(captions), kEmbeddedTogether);
}

void CaptionEmbedder::answer(std::int64_t row, std::int64_t place,
                             const std::map<std::string, Tensor>& predictions) {
  const Tensor& embeddings = predictions.at("caption");
  const std::int64_t width = embeddings.shape()[1];
  std::string& answer = answers_[std::size_t(row)];
  for (const float x :
       embeddings.as<float>().subspan(std::size_t(place * width), std::size_t(width))) {
    fmt::format_to(std::back_inserter(answer), "{}{:.6g}", answer.empty() ? "" : " ", x);
  }
}

}  // namespace keel::models
