// Compiles a plan into a program. Pure; reads no durations and no clock.
#pragma once

#include <absl/status/statusor.h>

#include "common/model/forward.h"
#include "common/program/program.h"

namespace medley::program {

// The program that trains. A plan that is no pipeline has one micro-batch a step. `model`: with the inputs, sizes and
// kinds of its layers; profiles are not read. Errors: InvalidArgument for a plan that contradicts itself or the model,
// Unimplemented for a combination that no generator makes, ResourceExhausted for more than max_instructions; each names
// the field, the operation or the device.
absl::StatusOr<Program> Compile(const model::ExecutionPlan& plan, const model::Model& model,
                                int64_t max_instructions = kMaxInstructions);

// The program that scores test data with the same devices: forward passes, one micro-batch a step.
absl::StatusOr<Program> CompileEvaluation(const model::ExecutionPlan& plan, const model::Model& model);

}  // namespace medley::program
