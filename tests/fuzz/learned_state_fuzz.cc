// The fuzz target of the scheduling service's state files: policies, whose checksum is made right so that the checks
// behind it are reached, and calibration records.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "scheduler-service/policy_net/trained_policy.h"
#include "scheduler-service/profile/calibration_records.h"

namespace {

void FuzzLearnedState(std::string_view input) {
  std::string sealed(input);
  const uint64_t sum = medley::base::Hash64(input);
  sealed.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  const auto policy = medley::sched::policy_net::PolicyFromBytes(sealed);
  if (policy.ok())
    MEDLEY_CHECK(medley::sched::policy_net::ToBytes(*policy) == sealed, "a policy did not read back as itself");
  for (std::string_view left = input; !left.empty();) {
    const size_t before = left.size();
    if (!medley::sched::TakeRecords(left).ok()) break;
    MEDLEY_CHECK(left.size() < before, "records were read without an end");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzLearnedState({reinterpret_cast<const char*>(data), size});
  return 0;
}
