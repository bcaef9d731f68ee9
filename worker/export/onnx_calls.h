// Operators of ATen as operators of ONNX. Pure.
#pragma once

#include <functional>
#include <string_view>

#include "worker/export/onnx_program.h"

namespace medley::worker {

using OnnxConverter = void (*)(OnnxConversion& to);

// Null: the operator ("relu", without namespace, overload and the "_" of an operator in place) is not known.
OnnxConverter FindOnnxConverter(std::string_view call);
OnnxConverter FindOnnxLayerConverter(std::string_view call);      // onnx_layers.cc
OnnxConverter FindOnnxRecurrentConverter(std::string_view call);  // onnx_recurrent.cc
// Those that change shapes, or make tensors from sizes (onnx_shapes.cc); FindOnnxConverter asks it.
OnnxConverter FindOnnxShapeConverter(std::string_view call);

}  // namespace medley::worker
