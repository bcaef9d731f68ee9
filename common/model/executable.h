// What the worker runtime executes of an execution plan. Everything else in a plan is refused with a sentence that
// names the field and its value, so that nothing of a plan is ignored silently.
//
// The scheduling service, the operator and the coordinator ask the same functions. A field or a value that is added to
// proto/medley/plan/v1/plan.proto is refused until it has an entry in the tables of executable.cc. Pure functions,
// thread-safe.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <vector>

#include "common/model/execution_plan.h"

namespace google::protobuf {
class EnumValueDescriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace medley::plan::v1 {
class ExecutionPlan;
}  // namespace medley::plan::v1

namespace medley::model {

// What the runtime does with a field of the plan's messages.
enum class FieldUse {
  kExecuted,     // every value; model::Validate checks ranges
  kByParts,      // a message or an enumeration: its fields or values decide
  kDescription,  // for readers; it asks for nothing
  kRefused,      // any value but the default is refused
};

// nullopt: no decision was made; the field is refused.
std::optional<FieldUse> UseOf(const google::protobuf::FieldDescriptor& field);
// Whether the runtime executes a value of an enumeration of the plan. nullopt: no decision was made; it is refused.
std::optional<bool> IsExecuted(const google::protobuf::EnumValueDescriptor& value);

// What the model's operations consist of.
struct OperationParts {
  bool tables = false;  // has embedding rows
  bool dense = false;   // has other parameters
};

// Errors: Unimplemented (or InvalidArgument for a plan that contradicts itself) naming the field. `operations`: of the
// model that is trained, or empty where the model is unknown; then checks only what the plan alone tells.
absl::Status CheckExecutable(const plan::v1::ExecutionPlan& plan, const std::vector<OperationParts>& operations = {});
absl::Status CheckExecutable(const ExecutionPlan& plan);

}  // namespace medley::model
