// The fuzz target of the objects that the operator reads, which any user with the right to write them can fill: jobs,
// pools, status, stored plans, pods and nodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "operator/api/job_status.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "operator/records/notices.h"
#include "operator/records/plan_record.h"

namespace medley::ops {
namespace {

constexpr document::Limits kLimits{.bytes = 1 << 16, .depth = 32, .values = 10'000};

void FuzzManifest(std::string_view input) {
  auto json = document::Parse(input, kLimits);
  if (!json.ok()) json = document::ParseYaml(input, kLimits);
  if (!json.ok() || !json->is_object()) return;
  const kube::Object object(*json);
  static_cast<void>(TrainingJob::FromObject(object));
  static_cast<void>(ManagedByThisOperator(object));
  static_cast<void>(ResourcePool::FromObject(object));
  static_cast<void>(ReadPlanRecord(object));
  static_cast<void>(NoticeOf(object));
  static_cast<void>(PodNoticeOf(object));
  static_cast<void>(TaintsOf(object));
  const JobStatus status = JobStatus::FromJson(object.At("/status"));
  MEDLEY_CHECK(JobStatus::FromJson(status.ToJson()).ToJson() == status.ToJson(),
               "a status did not read back as itself");
}

}  // namespace
}  // namespace medley::ops

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::ops::FuzzManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
