// What `medley model inspect` prints of a job whose model is Medley's own. Pure.
#pragma once

#include <string>

#include "common/model/forward.h"

namespace medley::cli {

// A row for each layer: kind, parameters, FLOPs of a sample's forward pass, bytes of what it gives, bytes that would
// pass a stage boundary after it, what it takes; then sums. `model` has no profiles.
std::string JobLayersText(const model::Model& model);

}  // namespace medley::cli
