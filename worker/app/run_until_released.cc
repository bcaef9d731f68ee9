#include <utility>

#include "common/base/log.h"
#include "worker/app/roles.h"
#include "worker/trainer/member.h"

namespace medley::worker {

absl::StatusOr<int> RunUntilReleased(Member& member, Role& role, const Signals& signals, std::stop_token stop) {
  std::stop_callback on_signal(signals.stop(), [&] {
    base::log::Info("received a stop signal: asking the coordinator to release this member");
    member.Leave(kStopNotice);
  });
  auto code = member.Run(role, std::move(stop));
  if (!code.ok() && code.status().code() == absl::StatusCode::kCancelled && signals.stop().stop_requested()) return 0;
  return code;
}

}  // namespace medley::worker
