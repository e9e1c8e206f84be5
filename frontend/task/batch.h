// The batches, streams and splits of frontend/data, as tasks, networks and their callers name them.
#pragma once

#include "frontend/data/stream.h"

namespace keel::task {

using data::Batch;
using data::Input;
using data::ShardRange;
using data::Sizes;
using data::Skipped;
using data::Split;
using data::Splits;
using data::Stream;
using data::StreamOptions;

}  // namespace keel::task
