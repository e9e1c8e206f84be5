// A learned table of word vectors.
#pragma once

#include <string>

#include "frontend/nn/init.h"
#include "frontend/nn/net.h"

namespace keel::nn {

struct EmbeddingOptions {
  Initializer init = normal(1);
  // The word that stands for padding, or -1. Its vector is zeros, and looking it up gives no
  // gradient. Its row of the table is zeros at first, and stays so unless the table is shared with
  // a layer that gives it a gradient.
  std::int64_t padding_id = -1;
  // kRows: the words' vectors have length 1, at first and after every update.
  UnitVectors unit = UnitVectors::kNone;
};

// The parameter "<name>/table" (words, width), which Linear::sharing can use too. The net must
// outlive the layer.
class Embedding {
 public:
  // Throws Error{kUsage} for a padding_id that is no word.
  Embedding(Net& net, const std::string& name, std::int64_t words, std::int64_t width,
            const EmbeddingOptions& options = {});

  // The vectors (..., width) of ids (...) i32.
  Value operator()(Value ids) const;
  Value table() const { return table_; }

 private:
  Net* net_;
  std::string name_;
  std::int64_t padding_id_;
  Value table_;
};

}  // namespace keel::nn
