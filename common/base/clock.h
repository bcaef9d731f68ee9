// Time, injected. Nothing outside common/base may call system_clock::now() or sleep_for (lint).
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include <absl/status/statusor.h>

namespace medley::base {

using WallTime = std::chrono::system_clock::time_point;    // for people and for the API
using SteadyTime = std::chrono::steady_clock::time_point;  // for waits and measurements
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Thread-safe. A FakeClock for tests is in common/base/testing/fake_clock.h.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual SteadyTime Steady() const = 0;
  // Waits until `deadline` or until `stop` is requested; true when the deadline was reached.
  virtual bool SleepUntil(SteadyTime deadline, std::stop_token stop) = 0;
  bool SleepFor(nanoseconds duration, std::stop_token stop) { return SleepUntil(Steady() + duration, stop); }
};

class SystemClock final : public Clock {
 public:
  WallTime Now() const override;
  SteadyTime Steady() const override;
  bool SleepUntil(SteadyTime deadline, std::stop_token stop) override;
};

// RFC 3339 in UTC with seconds ("2026-11-21T07:15:00Z"), as Kubernetes' metav1.Time; FormatMicro has
// microseconds, as metav1.MicroTime. Parse takes both, and offsets.
std::string FormatTime(WallTime time);
std::string FormatTimeMicro(WallTime time);
absl::StatusOr<WallTime> ParseTime(std::string_view text);

// Go duration ("2h", "1h30m", "300ms", "60s"), as the manifests carry them; negative is refused.
absl::StatusOr<nanoseconds> ParseDuration(std::string_view text);

inline double ToSeconds(nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }
inline nanoseconds FromSeconds(double value) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(value));
}

}  // namespace medley::base
