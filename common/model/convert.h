// Between the domain values and the wire: protos, and protos' JSON or YAML text.
//
// Pure and thread-safe. From the wire: nothing is lost silently, an enum value that is not known, a number that does
// not fit or a malformed time is InvalidArgument naming the field's path in its JSON spelling
// ("model.layers[0].profiles[1].computeParallel"). The meaning of a whole request is checked by Validate (planning.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/planning.h"

namespace google::protobuf {
class Message;
class Timestamp;
}  // namespace google::protobuf
namespace medley::plan::v1 {
class ExecutionPlan;
}
namespace medley::profile::v1 {
class Model;
class Profile;
}  // namespace medley::profile::v1
namespace medley::scheduler::v1 {
class Hardware;
class ObserveRequest;
class PlanRequest;
class PlanResponse;
class Prediction;
class ProvisionedPlan;
class Reason;
class Resource;
}  // namespace medley::scheduler::v1

namespace medley::model {

struct Hardware;
struct JobObservation;

void ToProto(const ExecutionPlan& plan, plan::v1::ExecutionPlan& out);
absl::StatusOr<ExecutionPlan> FromProto(const plan::v1::ExecutionPlan& in);

void ToProto(const Model& model, profile::v1::Model& out);
absl::StatusOr<Model> FromProto(const profile::v1::Model& in);
void ToProto(const Profile& profile, profile::v1::Profile& out);
absl::StatusOr<Profile> FromProto(const profile::v1::Profile& in);

// Values that the contract calls defaults are filled in: stateFactor 3, epochs 1, minUnits 1, microBatches 1, planner
// exact, timeBudgetSeconds 10, unitsPerInstance 1.
void ToProto(const PlanRequest& request, scheduler::v1::PlanRequest& out);
absl::StatusOr<PlanRequest> FromProto(const scheduler::v1::PlanRequest& in);

// A lower bound that is not known travels as 0 (always a bound) with gap 1.
void ToProto(const PlanResult& result, scheduler::v1::PlanResponse& out);
absl::StatusOr<PlanResult> FromProto(const scheduler::v1::PlanResponse& in);

void ToProto(const ProvisionedPlan& plan, scheduler::v1::ProvisionedPlan& out);
ProvisionedPlan FromProto(const scheduler::v1::ProvisionedPlan& in);
void ToProto(const Reason& reason, scheduler::v1::Reason& out);
Reason FromProto(const scheduler::v1::Reason& in);
void ToProto(const Resource& resource, scheduler::v1::Resource& out);
// `path` names the resource in errors ("resources[2]").
absl::StatusOr<Resource> FromProto(const scheduler::v1::Resource& in, std::string_view path);

void ToProto(const Prediction& prediction, scheduler::v1::Prediction& out);
Prediction FromProto(const scheduler::v1::Prediction& in);

// What was observed is checked by Validate (observation.h).
void ToProto(const JobObservation& observation, scheduler::v1::ObserveRequest& out);
absl::StatusOr<JobObservation> FromProto(const scheduler::v1::ObserveRequest& in);

// `path` names the datasheet in errors ("hardware[2]").
void ToProto(const Hardware& hardware, scheduler::v1::Hardware& out);
absl::StatusOr<Hardware> FromProto(const scheduler::v1::Hardware& in, std::string_view path);

// RFC 3339; empty for the zero time, both ways. Errors: InvalidArgument.
absl::Status TimeToProto(std::string_view text, google::protobuf::Timestamp& out);
std::string TimeFromProto(const google::protobuf::Timestamp& in);

// Reads JSON (text that begins with { or [) or YAML into `message` in the proto3 JSON mapping (camelCase; the proto's
// own field names are taken as well). Errors: InvalidArgument with the path for an unknown or duplicate field, a value
// of the wrong type or out of range; with line and column for broken syntax; text over 16 MiB, deeper than 64 levels or
// of more than a million values is refused.
absl::Status ParseText(std::string_view text, google::protobuf::Message& message);

// The proto3 JSON of `message`, every plain field printed, also zeros; `pretty` over several lines.
std::string ToJson(const google::protobuf::Message& message, bool pretty = false);
// The same as block YAML.
std::string ToYaml(const google::protobuf::Message& message);

// YAML (or JSON) as one line of JSON, for readers with a schema of their own. Errors as ParseText, without a schema.
absl::StatusOr<std::string> YamlToJson(std::string_view text);

}  // namespace medley::model
