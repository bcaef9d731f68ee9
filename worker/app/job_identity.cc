#include "worker/app/job_identity.h"

#include <nlohmann/json.hpp>

#include "common/model/fingerprint.h"

namespace medley::worker {

JobIdentity IdentityOf(std::string_view spec_json) {
  using model::Purpose;
  const auto spec = nlohmann::json::parse(spec_json, nullptr, false);
  return {model::Fingerprint(spec, Purpose::kModel), model::CountedFields(spec, Purpose::kModel).dump(),
          model::ProfileHash(spec), model::Fingerprint(spec, Purpose::kJob),
          model::CountedFields(spec, Purpose::kJob).dump()};
}

}  // namespace medley::worker
