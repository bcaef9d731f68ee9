#include "cli/data/template_choice.h"

#include <algorithm>

namespace medley::cli {
namespace {

// The part of the rows with the rarer of two classes; 0 for other labels.
double RateOfRarer(const LabelGuess& label) {
  if (label.task != model::Task::kBinary || label.positives + label.negatives <= 0) return 0;
  const auto all = static_cast<double>(label.positives + label.negatives);
  return static_cast<double>(std::min(label.positives, label.negatives)) / all;
}

// Rows that tell something of the label: of two classes the rarer one counts, because the rows of the other tell little
// without it.
double InformativeRows(int64_t rows, const LabelGuess& label) {
  const double rarer = RateOfRarer(label);
  return static_cast<double>(rows) * (rarer > 0 ? 4 * rarer * (1 - rarer) : 1);
}

}  // namespace

int BatchSize(int64_t rows) {
  int batch = 16;
  while (batch < 2048 && rows / (batch * 2) >= 50) batch *= 2;
  return batch;
}

int Epochs(int64_t rows) { return rows < 200'000 ? 20 : rows < 2'000'000 ? 10 : 3; }

int Buckets(int64_t rows, const LabelGuess& label) {
  constexpr double kEnough = 15'000;
  return InformativeRows(rows, label) < kEnough ? 16 : 32;
}

bool Decays(int64_t rows, const LabelGuess& label) {
  constexpr double kRare = 0.1, kLittle = 5'000;
  const double rarer = RateOfRarer(label);
  return rarer > 0 && rarer < kRare && InformativeRows(rows, label) < kLittle;
}

}  // namespace medley::cli
