// The slow trainers that stand by: connected, without a part in the generation in force. They are probed, and return
// when they are as fast as usual again.
//
//   left out --hold ends--> probed every `interval` --the last kProbes are good--> may return --> in a generation
//
// Hysteresis: a trainer is left out when it takes kLeastSlowness (1.5) times as long as usual, and returns when it
// takes at most kReturnSlowness (1.25) times as long in the mean of its last kProbes probes. The hold begins with
// `hold` and doubles, up to 64 times, each time that the trainer is left out again before it has trained for four times
// its last hold. So a trainer whose speed swings costs fewer and fewer switches.
//
// A process that does not answer a probe in time counts as slow. It gets no other probe before it has answered, so that
// a process that is stopped finds at most one when it continues.
//
// Not thread-safe; owned by the core, which passes in the time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

inline constexpr double kReturnSlowness = 1.25;  // times the usual
inline constexpr int kProbes = 4;                // whose mean counts, answered in a row

struct StandbyOptions {
  base::nanoseconds hold = base::seconds(5);
  base::nanoseconds interval = base::milliseconds(500);  // between an answer and the next probe
  base::nanoseconds timeout = base::seconds(30);         // for an answer
};

struct Standby {
  job::v1::StandbyRecord record;
  base::SteadyTime hold_until{};
  base::SteadyTime probe_at{};               // not earlier
  std::optional<base::SteadyTime> deadline;  // of the probe that is not answered
  int64_t probe = 0;                         // id of the last one; 0: none
  std::deque<double> slowness;               // of the last answers, times the usual; at most kProbes
  double seconds = 0;                        // of the last answer; 0: none, or it could not be measured
  bool may_return = false;
};

// A probe to send.
struct DueProbe {
  std::string member;
  std::string instance;
  int64_t id = 0;
};

class Standbys {
 public:
  explicit Standbys(const StandbyOptions& options) : options_(options) {}

  // The trainer is left out. Sets record.times.
  void Add(job::v1::StandbyRecord record, base::SteadyTime now);
  // Records of the journal; the hold begins again.
  void Restore(const job::v1::CoordinatorState& journal, base::SteadyTime now);
  // It trains again, is lost, or has left.
  void Remove(const std::string& member, base::SteadyTime now);
  void Clear() { all_.clear(); }

  const Standby* Find(const std::string& member) const;
  bool Has(const std::string& member, const std::string& instance) const;
  const std::map<std::string, Standby>& all() const { return all_; }

  // The probes to send now to those of `connected` (member -> instance). Probes that are late count as slow.
  std::vector<DueProbe> Due(const std::map<std::string, std::string>& connected, base::SteadyTime now);
  // The session was interrupted: an answer may be lost.
  void OnSession(const std::string& member);
  // `slowness` of the trainers that train: how much longer than usual their steps take now, >= 1.
  void OnProbed(const std::string& member, const job::v1::Probed& answer, double slowness, base::SteadyTime now);

 private:
  // How often a trainer was left out in short succession.
  struct Past {
    std::string instance;
    int times = 0;
    base::nanoseconds hold{0};
    base::SteadyTime returned{};
  };
  base::nanoseconds HoldOf(int times) const;

  const StandbyOptions options_;
  std::map<std::string, Standby> all_;
  std::map<std::string, Past> past_;
  int64_t last_probe_ = 0;
};

}  // namespace medley::worker
