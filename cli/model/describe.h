// Numbers and shapes of a cut, in words. Pure.
#pragma once

#include <string>

#include "worker/cut/cut.h"

namespace medley::cli {

std::string CountText(double value);  // "1.2 M"
// "[batch, 8]".
std::string SizesText(const worker::exported::TensorMeta& meta);
// Those of what an operation gives to others, "[batch, 8] [batch]"; of the last one, of the result.
std::string OutputText(const worker::cut::Cut& cut, const worker::cut::Operation& operation);
// For parameters and statistics that an operation owns.
double ParameterCount(const worker::cut::Cut& cut, const worker::cut::Operation& operation);
// For all operations.
double ParameterCount(const worker::cut::Cut& cut);
double FlopCount(const worker::cut::Cut& cut);

}  // namespace medley::cli
