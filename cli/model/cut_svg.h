// Draws how a model is divided into operations as SVG 1.1: one file without scripts or external resources. Pure.
#pragma once

#include <string>

#include "worker/cut/cut.h"

namespace medley::cli {

// A box for each operation, as far down as the longest path to it, with its shares of all parameters and FLOPs, and an
// arrow for what passes between two, with the bytes of a sample.
std::string CutSvg(const std::string& heading, const worker::cut::Cut& cut);

}  // namespace medley::cli
