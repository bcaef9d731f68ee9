#include "worker/profiler/print_profile.h"

#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"

namespace medley::worker {

void PrintProfile(const model::Profile& profile, std::ostream& output) {
  profile::v1::Profile proto;
  model::ToProto(profile, proto);
  output << "MEDLEY-PROFILE " << model::ToJson(proto) << std::endl;
}

}  // namespace medley::worker
