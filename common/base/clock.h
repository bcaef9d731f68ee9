// Time is injected: only common/base may call system_clock::now() or sleep_for (checked by tests/lint/check_style.py).
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include <absl/status/statusor.h>

namespace medley::base {

using WallTime = std::chrono::system_clock::time_point;    // for logs and for API objects
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
  // Waits until `deadline`, or until `stop` is requested. Returns true if the deadline was reached.
  virtual bool SleepUntil(SteadyTime deadline, std::stop_token stop) = 0;
  bool SleepFor(nanoseconds duration, std::stop_token stop) { return SleepUntil(Steady() + duration, stop); }
};

class SystemClock final : public Clock {
 public:
  WallTime Now() const override;
  SteadyTime Steady() const override;
  bool SleepUntil(SteadyTime deadline, std::stop_token stop) override;
};

// RFC 3339 in UTC. FormatTime has seconds ("2026-11-21T07:15:00Z"), as Kubernetes' metav1.Time; FormatTimeMicro has
// microseconds, as metav1.MicroTime. ParseTime accepts both, and offsets from UTC.
std::string FormatTime(WallTime time);
std::string FormatTimeMicro(WallTime time);
absl::StatusOr<WallTime> ParseTime(std::string_view text);

// A Go duration ("2h", "1h30m", "300ms", "60s"), as manifests write it. Negative durations are refused.
absl::StatusOr<nanoseconds> ParseDuration(std::string_view text);

inline double ToSeconds(nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }
inline nanoseconds FromSeconds(double value) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(value));
}

}  // namespace medley::base
