// The only header that includes LibTorch: tensors and the few operators that the kernels use. Each operator has its own
// header, which compiles much faster than torch/torch.h. Include this file only in .cc files of worker/model.
#pragma once

#define AT_PER_OPERATOR_HEADERS
#include <ATen/core/ivalue.h>  // first: clang needs IValue complete before Tensor.h in C++20

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <c10/core/InferenceMode.h>
