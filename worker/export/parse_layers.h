// The layers of model.json. Pure.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "common/document/reader.h"
#include "worker/model/graph.h"

namespace medley::worker {

inline constexpr int64_t kMostExportedFloats = int64_t{1} << 40;  // of a tensor

// Appends a layer to the graph, whose shape is known. `outputs_of_task`: the inputs of the loss; 0: any number. Errors:
// InvalidArgument naming the field, also when the layer does not fit those before it.
absl::Status ReadExportedLayer(const document::Reader& layer, int outputs_of_task, Graph& graph);

// Whether every output but the loss's is used. Errors: InvalidArgument naming the layer.
absl::Status CheckLayerUses(const Graph& graph);

}  // namespace medley::worker
