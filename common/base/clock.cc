#include "common/base/clock.h"

#include <absl/time/time.h>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::base {

WallTime SystemClock::Now() const { return std::chrono::system_clock::now(); }
SteadyTime SystemClock::Steady() const { return std::chrono::steady_clock::now(); }

bool SystemClock::SleepUntil(SteadyTime deadline, std::stop_token stop) {
  Mutex mutex;
  CondVar condition;
  MutexLock lock(mutex);
  condition.WaitUntil(mutex, stop, deadline, [] { return false; });
  return !stop.stop_requested();
}

std::string FormatTime(WallTime time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

std::string FormatTimeMicro(WallTime time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

absl::StatusOr<WallTime> ParseTime(std::string_view text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, absl::string_view(text.data(), text.size()), &time, &error)) {
    return InvalidArgument("'{}' is not an RFC 3339 time: {}", text, error);
  }
  return absl::ToChronoTime(time);
}

absl::StatusOr<nanoseconds> ParseDuration(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(absl::string_view(text.data(), text.size()), &duration)) {
    return InvalidArgument("'{}' is not a duration such as 90s, 5m or 2h", text);
  }
  if (duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) {
    return InvalidArgument("duration '{}' must be finite and not negative", text);
  }
  return absl::ToChronoNanoseconds(duration);
}

}  // namespace medley::base
