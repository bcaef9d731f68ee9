#include "worker/coordinator/server/final_result.h"

#include <cerrno>
#include <fstream>

#include "common/base/status.h"
#include "common/model/task.h"

namespace medley::worker {
namespace {

std::optional<job_result::Phase> PhaseOf(job::v1::JobPhase phase) {
  switch (phase) {
    case job::v1::JOB_PHASE_COMPLETE:
      return job_result::Phase::kComplete;
    case job::v1::JOB_PHASE_FAILED:
      return job_result::Phase::kFailed;
    case job::v1::JOB_PHASE_SUSPENDED:
      return job_result::Phase::kSuspended;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<job_result::JobResult> ResultOf(const job::v1::Observation& observation, const std::string& job_uid) {
  const std::optional<job_result::Phase> phase = PhaseOf(observation.phase());
  if (!phase) return std::nullopt;
  job_result::JobResult result;
  result.job_uid = job_uid;
  result.phase = *phase;
  result.step = observation.step();
  result.samples = observation.samples_done();
  result.samples_total = observation.samples_total();
  result.epoch = observation.epoch();
  result.epochs = observation.epochs();
  result.bad_rows = observation.bad_rows();
  result.last_checkpoint_step = observation.last_checkpoint_step();
  result.loss = observation.loss();
  result.stopped_early = observation.stopped_early();
  result.metrics = {observation.metrics().begin(), observation.metrics().end()};
  if (observation.has_best()) {
    const job::v1::BestModel& best = observation.best();
    result.best = job_result::Best{best.step(), best.epochs(), model::MetricKey(best.metric()), best.value(),
                                   best.data() == job::v1::EVALUATION_DATA_VALIDATION};
  }
  if (observation.has_exported()) {
    const job::v1::ExportedState& exported = observation.exported();
    result.exported = job_result::Exported{exported.step(), exported.epochs(), exported.best()};
  }
  result.reason = observation.message();
  return result;
}

absl::Status WriteResult(const job_result::JobResult& result, const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << job_result::ToText(result);
  out.close();
  if (out.fail()) return base::ErrnoStatus(errno, "writing the job's result to " + file.string());
  return absl::OkStatus();
}

}  // namespace medley::worker
