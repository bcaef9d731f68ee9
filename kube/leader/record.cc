#include "kube/leader/record.h"

namespace medley::kube {
namespace {

int64_t Number(const Object& lease, std::string_view pointer) {
  const Json& value = lease.At(pointer);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

}  // namespace

LeaderRecord ReadLeaderRecord(const Object& lease) {
  LeaderRecord record;
  record.holder = lease.String("/spec/holderIdentity");
  record.lease_seconds = Number(lease, "/spec/leaseDurationSeconds");
  record.acquire_time = lease.String("/spec/acquireTime");
  record.renew_time = lease.String("/spec/renewTime");
  record.transitions = Number(lease, "/spec/leaseTransitions");
  return record;
}

void WriteLeaderRecord(const LeaderRecord& record, Object& lease) {
  Json& spec = lease.mutable_json()["spec"];
  if (!spec.is_object()) spec = Json::object();
  const auto text = [&spec](const char* field, const std::string& value) {
    if (value.empty()) {
      spec.erase(field);
    } else {
      spec[field] = value;
    }
  };
  text("holderIdentity", record.holder);
  text("acquireTime", record.acquire_time);
  text("renewTime", record.renew_time);
  spec["leaseDurationSeconds"] = record.lease_seconds;
  spec["leaseTransitions"] = record.transitions;
}

}  // namespace medley::kube
