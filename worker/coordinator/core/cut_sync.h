// How replicas agree after some of them were lost. Pure; internal to core/.
#pragma once

#include <map>
#include <string>

#include "medley/plan/v1/plan.pb.h"

namespace medley::worker {

// New ids of devices by old ones; those of lost devices are missing.
using NewIds = std::map<std::string, std::string>;

// Groups keep those of their devices that are left; without its root, the first replica adds.
void CutSync(const NewIds& ids, plan::v1::Sync& sync);

}  // namespace medley::worker
