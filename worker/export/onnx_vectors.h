// The layers of worker/model/vector_layers.h, and Cross, as nodes of ONNX. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "worker/export/onnx_writer.h"
#include "worker/model/graph.h"

namespace medley::worker {

// A value of samples x width.
struct OnnxInput {
  std::string name;
  int64_t width = 0;
};

// Returns the name of the outputs.
std::string AddOnnxVectors(const Operation& operation, std::span<const OnnxInput> inputs, OnnxWriter& graph);

}  // namespace medley::worker
