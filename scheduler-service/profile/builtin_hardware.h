// The text of data/hardware.yaml. Internal to scheduler-service/profile.
#pragma once

#include <string_view>

namespace medley::sched {

std::string_view BuiltinHardwareText();

}  // namespace medley::sched
