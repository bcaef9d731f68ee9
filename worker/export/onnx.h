// Writes a model in the ONNX format, which many programs can run. Pure.
//
//   inputs:  ids (int64, samples x fields) and numerics (float, samples x numerics), as FeatureEncoder makes them;
//            an input without columns is left out
//   output:  probability (float, samples); value (the same) of a regression; probabilities (float, samples x outputs)
//            of several classes or labels
//
// Only the few messages of ONNX that a chain of layers needs are encoded, by hand: the library of ONNX is not used.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/export/read_export.h"

namespace medley::worker {

// Returns the bytes of the file. Errors: ResourceExhausted when they would be more than the 2 GiB that ONNX allows.
absl::StatusOr<std::string> ToOnnx(const LoadedModel& model);

}  // namespace medley::worker
