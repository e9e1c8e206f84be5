#include "models/order_embeddings/caption_embedder.h"

#include <iterator>

#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"

namespace keel::models {
namespace {

constexpr std::int64_t kEmbeddedTogether = 64;  // lines of a user
constexpr const char* kFromUser = "standard input";

}  // namespace

CaptionEmbedder::CaptionEmbedder(std::span<const std::string> lines,
                                 const text::Vocabulary& vocabulary, std::int64_t feature_width)
    : answers_(lines.size()) {
  if (lines.empty()) return;
  auto captions = std::make_shared<NumberedCaptions>();
  captions->features = Tensor(DType::kF32, {0, feature_width});
  captions->each = 1;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = text::place(kFromUser, std::int64_t(i) + 1);
    check(!text::first_invalid_utf8(lines[i]), ErrorKind::kBadInput,
          "[order_embeddings] {}: expected UTF-8", where);
    captions->add(lines[i], vocabulary, where);
  }
  // One fold: lines are sorted by length all together.
  const CaptionBatchOptions options{.batch = kEmbeddedTogether, .fold = std::ssize(lines)};
  stream_.emplace(data::StreamNotes{kFromUser, {}}, std::move(captions), options);
}

const task::Batch* CaptionEmbedder::next() {
  if (!stream_ || step_ == stream_->steps(0)) return nullptr;
  return batch_ = &stream_->at(0, step_++);
}

void CaptionEmbedder::take(const std::map<std::string, Tensor>& predictions) {
  const Tensor& embeddings = predictions.at("caption");
  const auto width = std::size_t(embeddings.shape()[1]);
  for (std::size_t place = 0; place < batch_->rows.size(); ++place) {
    if (batch_->rows[place] < 0) continue;
    const std::span<const float> row = embeddings.as<float>().subspan(place * width, width);
    std::string& answer = answers_[std::size_t(batch_->rows[place])];
    for (const float x : row) {
      fmt::format_to(std::back_inserter(answer), "{}{:.6g}", answer.empty() ? "" : " ", x);
    }
  }
}

}  // namespace keel::models
