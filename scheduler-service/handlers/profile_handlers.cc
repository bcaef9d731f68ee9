// The handlers for datasheets, and for profiles estimated from them.
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/profile.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/profile/analytic.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

constexpr int kDefaultBatch = 64;

}  // namespace

absl::Status Handlers::Profile(const pb::ProfileRequest& in, Call& call, pb::ProfileResponse& out) {
  return Answer("Profile", in, call, out, [&](pb::ProfileResponse& o, base::SteadyTime) -> absl::Status {
    model::Profile profile;
    MEDLEY_ASSIGN_OR_RETURN(profile.model, model::FromProto(in.model()));
    if (profile.model.layers.empty()) return base::InvalidArgument("model.layers: must not be empty");
    if (in.hardware().empty()) return base::InvalidArgument("hardware: must name at least one datasheet");
    if (in.profile_batch_size() < 0) return base::InvalidArgument("profileBatchSize: must not be negative");
    profile.profile_batch_size = in.profile_batch_size() == 0 ? kDefaultBatch : in.profile_batch_size();
    for (int i = 0; i < in.hardware_size(); ++i) {
      const Hardware* hardware = context_.hardware.Find(in.hardware(i));
      if (hardware == nullptr) {
        return base::InvalidArgument("hardware[{}]: '{}' is unknown; known datasheets: {}", i, in.hardware(i),
                                     context_.hardware.Names());
      }
      MEDLEY_RETURN_IF_ERROR(AddAnalyticProfiles(profile.model, hardware->name, *hardware, profile.profile_batch_size));
    }
    model::ToProto(profile, *o.mutable_profile());
    call.reproducible = true;
    return absl::OkStatus();
  });
}

absl::Status Handlers::ListHardware(const pb::ListHardwareRequest&, Call& call, pb::ListHardwareResponse& out) {
  return Read("ListHardware", call, [&] {
    for (const Hardware& hardware : context_.hardware.all()) model::ToProto(hardware, *out.add_hardware());
    return absl::OkStatus();
  });
}

}  // namespace medley::sched
