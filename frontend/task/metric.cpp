#include "frontend/task/metric.h"

#include <cmath>
#include <numbers>

namespace keel::task {

double mean_of(double sum, double count) { return sum / count; }
double percent_of(double sum, double count) { return 100 * sum / count; }
double percent_without(double sum, double count) { return 100 * (count - sum) / count; }
double perplexity_of(double sum, double count) { return std::exp(sum / count); }
double bits_of(double sum, double count) { return sum / count / std::numbers::ln2; }

}  // namespace keel::task
