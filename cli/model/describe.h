// Numbers and shapes of a cut, in words. Pure.
#pragma once

#include <string>

#include "worker/cut/cut.h"

namespace medley::cli {

std::string CountText(double value);  // "1.2 M"
// "[batch, 8]".
std::string SizesText(const exported::TensorMeta& meta);
// Those of what an operation gives to others, "[batch, 8] [batch]"; of the last one, of the result.
std::string OutputText(const cut::Cut& cut, const cut::Operation& operation);
// For parameters and statistics that an operation owns.
double ParameterCount(const cut::Cut& cut, const cut::Operation& operation);
// For all operations.
double ParameterCount(const cut::Cut& cut);
double FlopCount(const cut::Cut& cut);

}  // namespace medley::cli
