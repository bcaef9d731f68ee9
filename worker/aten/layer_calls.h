// The layers of built-in models as calls of ATen, with autograd: what worker/model/vector_layers.h and kernels.h
// compute, but for the rounding of single operations, for tensors in any place.
//
// Throws what LibTorch throws. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "worker/aten/place.h"
#include "worker/aten/torch.h"
#include "worker/model/graph.h"

namespace medley::worker::aten {

// What a layer needs beside its inputs and parameters, which does not change.
struct LayerConstants {
  at::Tensor pairs;     // kInteraction: where the products of vectors i > j are among all products
  at::Tensor identity;  // pass_first: the fixed rows of the weights
};

// Errors: those of Place.
absl::StatusOr<LayerConstants> ConstantsOf(const Operation& operation, const Place& place);

// A layer without parameters: any kind but kEmbedding, kFullyConnected, kCross, kNumerics, kLoss and kImported. Each
// input is samples x its width, and so is the result.
at::Tensor VectorLayer(const Operation& operation, const std::vector<at::Tensor>& inputs,
                       const LayerConstants& constants);

// activation(x w + bias)
at::Tensor FullyConnected(Activation activation, const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias);

// x0 (x w + bias) + x, where products but that of x and w are element by element.
at::Tensor Cross(const at::Tensor& x0, const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias);

}  // namespace medley::worker::aten
