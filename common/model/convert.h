// Converts between the domain values and their protos. The protos as text: text.h.
//
// Pure and thread-safe. FromProto refuses what it cannot represent (an unknown enum value, a number out of range, a
// malformed time) with InvalidArgument that names the field's path in its JSON spelling
// ("model.layers[0].profiles[1].computeParallel"). Validate (planning.h) checks a request as a whole.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/forward.h"

namespace google::protobuf {
class Timestamp;
}  // namespace google::protobuf
namespace medley::plan::v1 {
class Device;
class ExecutionPlan;
}  // namespace medley::plan::v1
namespace medley::profile::v1 {
class AllreduceMeasurement;
class Link;
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
void ToProto(const Device& device, plan::v1::Device& out);
Device FromProto(const plan::v1::Device& in);

void ToProto(const Model& model, profile::v1::Model& out);
absl::StatusOr<Model> FromProto(const profile::v1::Model& in);
void ToProto(const Profile& profile, profile::v1::Profile& out);
absl::StatusOr<Profile> FromProto(const profile::v1::Profile& in);
void ToProto(const Link& link, profile::v1::Link& out);
Link FromProto(const profile::v1::Link& in);
void ToProto(const AllreduceMeasurement& measured, profile::v1::AllreduceMeasurement& out);
// `path` is the measurement's path in errors ("allreduces[2]"). Refuses numbers out of range.
absl::StatusOr<AllreduceMeasurement> FromProto(const profile::v1::AllreduceMeasurement& in, std::string_view path);

// FromProto fills in the defaults: stateFactor 3, epochs 1, minUnits 1, microBatches 1, planner exact,
// timeBudgetSeconds 10, unitsPerInstance 1.
void ToProto(const PlanRequest& request, scheduler::v1::PlanRequest& out);
absl::StatusOr<PlanRequest> FromProto(const scheduler::v1::PlanRequest& in);

// An unknown lower bound is sent as 0, which is always a lower bound, with gap 1.
void ToProto(const PlanResult& result, scheduler::v1::PlanResponse& out);
absl::StatusOr<PlanResult> FromProto(const scheduler::v1::PlanResponse& in);

void ToProto(const ProvisionedPlan& plan, scheduler::v1::ProvisionedPlan& out);
ProvisionedPlan FromProto(const scheduler::v1::ProvisionedPlan& in);
void ToProto(const Reason& reason, scheduler::v1::Reason& out);
Reason FromProto(const scheduler::v1::Reason& in);
void ToProto(const Resource& resource, scheduler::v1::Resource& out);
// `path` is the resource's path in errors ("resources[2]").
absl::StatusOr<Resource> FromProto(const scheduler::v1::Resource& in, std::string_view path);

void ToProto(const Prediction& prediction, scheduler::v1::Prediction& out);
Prediction FromProto(const scheduler::v1::Prediction& in);

// Validate (observation.h) checks the values.
void ToProto(const JobObservation& observation, scheduler::v1::ObserveRequest& out);
absl::StatusOr<JobObservation> FromProto(const scheduler::v1::ObserveRequest& in);

// `path` is the datasheet's path in errors ("hardware[2]").
void ToProto(const Hardware& hardware, scheduler::v1::Hardware& out);
absl::StatusOr<Hardware> FromProto(const scheduler::v1::Hardware& in, std::string_view path);

// RFC 3339. The zero time is the empty string, in both directions. Errors: InvalidArgument.
absl::Status TimeToProto(std::string_view text, google::protobuf::Timestamp& out);
std::string TimeFromProto(const google::protobuf::Timestamp& in);

}  // namespace medley::model
