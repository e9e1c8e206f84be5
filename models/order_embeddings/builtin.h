// "shapes": synthetic images of three objects each, with sentences about them, so that retrieval
// can be tried without a download.
#pragma once

#include "models/order_embeddings/corpus.h"

namespace keel::models {

// 4,000, 500 and 500 images for training, validation and testing, always the same ones.
//   object    a noun of 20, a colour of 8 and a size of 4, all equally likely; the three nouns of
//             an image differ
//   features  relu(A a + 0.1 n) scaled to length 1: a (60) counts nouns (20), colours (8) and pairs
//             of colour and size (32) of the objects, A (256, 60) and n are standard normal, A
//             drawn once
//   captions  five, each by one of five patterns, of one or two of the objects in any order: "a
//             small red ball and a cup". They describe only a part of the image, so that several
//             images may fit a caption.
CaptionCorpus make_shapes();

}  // namespace keel::models
