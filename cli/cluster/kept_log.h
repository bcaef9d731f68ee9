// Where the log of a finished job is kept. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::cli {

// A sentence for `medley logs`, such as "the coordinator's log is kept in the folder team-adult-UID/logs of the
// checkpoint volume (persistentVolumeClaim ck), and in the finished model as training.log".
std::string KeptLog(const kube::Object& job);

}  // namespace medley::cli
