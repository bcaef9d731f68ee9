// How a member of a job reaches its coordinator.
#pragma once

#include <string>

#include "worker/app/environment.h"
#include "worker/app/job_tls.h"
#include "worker/trainer/session.h"

namespace medley::worker {

// `name`: of the member. Each call makes another instance.
SessionOptions MakeSession(const Environment& env, const JobTls& tls, std::string name, job::v1::MemberRole role,
                           std::string address);

}  // namespace medley::worker
