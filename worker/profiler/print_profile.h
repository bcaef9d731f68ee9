// How a profiler says what it has measured.
#pragma once

#include <ostream>

#include "common/model/profile.h"

namespace medley::worker {

// As one line, in which the operator finds it among those of a log: "MEDLEY-PROFILE {profile as proto3 JSON}".
void PrintProfile(const model::Profile& profile, std::ostream& output);

}  // namespace medley::worker
