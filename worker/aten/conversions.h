// From the types of exported programs to those of LibTorch. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <span>

#include "worker/aten/torch.h"
#include "worker/exported/program.h"

namespace medley::worker::aten {

at::ScalarType TypeOf(exported::ScalarType type);

// The schema's argument is a list of tensors some of which may be missing, as the indices of aten::index are.
bool TakesOptionalTensors(const c10::Argument& schema);

// An argument that refers to no value, in the form that the schema (or null: no schema) takes. Devices become `place`.
// Errors: InvalidArgument for numbers that the schema of the file does not define.
absl::StatusOr<c10::IValue> ConstantOf(const exported::Argument& argument, const c10::Argument* schema,
                                       at::Device place);

// A stored tensor with memory of its own, contiguous.
at::Tensor TensorOf(const exported::StoredTensor& stored);

// Its values as float32, contiguous, without a copy in between where they are so already.
void CopyStored(const exported::StoredTensor& stored, std::span<float> to);

// Whether the argument is a tensor, perhaps an optional one.
bool TakesTensor(const c10::Argument& schema);

// A number as the tensor that Python makes of it in `x + 2`: it does not change the type of the result. Others are
// returned as they are.
c10::IValue NumberAsTensor(const c10::IValue& value);

}  // namespace medley::worker::aten
