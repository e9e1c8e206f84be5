// A task: what the options are, where the data come from, and which network learns them. The
// program trains, resumes, evaluates, compares, times and plots it as it does the tasks of the zoo
// (keel/program.h).
//
// A task has two halves. `task::TaskWithOptions` reads the data once; `task::NetworkOf` is
// immutable and builds the graph of a batch. Data that fit a table are a `data::TensorDataset`, and
// `data::TableSplits` makes batches of it.
#pragma once

#include "frontend/data/csv_table.h"
#include "frontend/data/data_loader.h"
#include "frontend/data/table_rows.h"
#include "frontend/task/classification.h"
#include "frontend/task/rows_decoder.h"
#include "frontend/task/task.h"
#include "include/keel/layers.h"
#include "models/class_decoder.h"
