// Finds numbers that are not finite in a response. Pure, thread-safe.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace medley::sched {

// The path of the first number of `message` that is infinite or not a number ("plan.costPerHour"); empty if there is
// none.
std::string NotFinite(const google::protobuf::Message& message);

}  // namespace medley::sched
