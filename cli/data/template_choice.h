// What the job file of `medley init` trains with, by its rows and labels. Chosen by the data of `./dev bench templates`
// with other seeds than those that it reports (docs/adr/0059). Pure.
#pragma once

#include <cstdint>

#include "cli/data/label_guess.h"

namespace medley::cli {

// A power of two that makes some hundred steps of an epoch.
int BatchSize(int64_t rows);

// The most: training ends earlier when the validation data say so.
int Epochs(int64_t rows);

// Ranges of each number. More of them follow the data more closely, and need more rows to do so.
int Buckets(int64_t rows, const LabelGuess& label);

// Whether weights decay, because one of two classes is rare and the rows tell little. Chosen on 20,000 rows of which
// 2 % have the rarer class; not for small tables of classes of equal size, for which nothing was measured.
bool Decays(int64_t rows, const LabelGuess& label);

}  // namespace medley::cli
