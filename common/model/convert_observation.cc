#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/observation.h"
#include "common/model/prediction.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {

namespace pb = scheduler::v1;

void ToProto(const Prediction& prediction, pb::Prediction& out) {
  out.Clear();
  out.set_observations(prediction.observations);
  out.set_ratio_uncorrected(prediction.ratio_uncorrected);
  out.set_ratio_corrected(prediction.ratio_corrected);
  out.set_relative_error(prediction.relative_error);
  for (const Correction& correction : prediction.corrections) {
    pb::Correction& to = *out.add_corrections();
    to.set_resource_type(correction.resource_type);
    to.set_compute(correction.compute);
    to.set_comm(correction.comm);
    to.set_observations(correction.observations);
  }
}

Prediction FromProto(const pb::Prediction& in) {
  Prediction out{in.observations(), in.ratio_uncorrected(), in.ratio_corrected(), in.relative_error(), {}};
  for (const pb::Correction& from : in.corrections()) {
    out.corrections.push_back({from.resource_type(), from.compute(), from.comm(), from.observations()});
  }
  return out;
}

void ToProto(const JobObservation& observation, pb::ObserveRequest& out) {
  out.Clear();
  ToProto(observation.request, *out.mutable_request());
  for (const StageMeasurement& stage : observation.stages) {
    pb::StageObservation& to = *out.add_stages();
    to.set_first_layer(stage.first_layer);
    to.set_last_layer(stage.last_layer);
    to.set_resource_type(stage.resource_type);
    to.set_units(stage.units);
    to.set_compute_seconds(stage.compute_seconds);
    to.set_comm_seconds(stage.comm_seconds);
  }
  out.set_throughput(observation.throughput);
  out.set_batch_size(observation.batch_size);
  out.set_server_units(observation.server_units);
  out.set_usd_per_hour(observation.usd_per_hour);
  out.set_job_uid(observation.job_uid);
  out.set_generation(observation.generation);
}

absl::StatusOr<JobObservation> FromProto(const pb::ObserveRequest& in) {
  JobObservation out;
  auto request = FromProto(in.request());
  if (!request.ok()) return base::Annotate(request.status(), "request");
  out.request = *std::move(request);
  for (const pb::StageObservation& from : in.stages()) {
    out.stages.push_back({from.first_layer(), from.last_layer(), from.resource_type(), from.units(),
                          from.compute_seconds(), from.comm_seconds()});
  }
  out.throughput = in.throughput();
  out.batch_size = in.batch_size();
  out.server_units = in.server_units();
  out.usd_per_hour = in.usd_per_hour();
  out.job_uid = in.job_uid();
  out.generation = in.generation();
  return out;
}

}  // namespace medley::model
