// What the simulator knows about time: seconds of every instruction of one program, from measurements or made up by a
// test. Pure values.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <vector>

#include "common/model/forward.h"
#include "common/model/link_speed.h"
#include "common/program/program.h"

namespace medley::sched {

// Seconds as a function of samples; no samples take no time.
struct Linear {
  double fixed = 0;
  double per_sample = 0;
  double At(int samples) const { return samples == 0 ? 0 : fixed + per_sample * samples; }
};

using model::LinkSpeed;

// The links between all pairs of them take 16 MiB.
inline constexpr int kMaxLocations = 1024;

struct Durations {
  // One replica of a block.
  struct Passes {
    Linear forward;  // one micro-batch
    Linear backward;
    double update = 0;
  };
  // One replica and step of an embedding table.
  struct Rows {
    double pull = 0;
    double push = 0;
    double update = 0;     // on each server
    double processor = 0;  // of the replica for a pull, and for a push, at full speed; computation then lacks it
  };

  std::vector<std::vector<Passes>> passes;    // by block and replica
  std::vector<double> reductions;             // by block: AllReduce
  std::vector<double> averages;               // by block: Average
  std::vector<double> shares;                 // by Program::shared: Share; empty: no time
  std::map<int, Rows> rows;                   // by operation; missing: no time
  std::vector<Linear> load;                   // by device; samples of the step
  std::vector<double> copy_bytes_per_second;  // by device: sums and copies; 0: they take no time

  // Devices of one location are alike to the network. links[a * locations + b] is for a message from a to b.
  int locations = 1;
  std::vector<int> location;  // by device
  std::vector<LinkSpeed> links;
  LinkSpeed local;                            // between devices of one machine, unless `links_within_machines`
  bool links_within_machines = false;         // `links` holds between them too
  std::vector<double> flow_bytes_per_second;  // by flow, instead of the link's; empty, or 0: the link's

  // Devices with the same number share a network card, whose rate holds in each direction.
  std::vector<int> machine;                   // by device
  std::vector<double> card_bytes_per_second;  // by machine; 0: no limit

  // A message or a reduction costs processor time at both ends, which computation then lacks.
  std::vector<double> cores;  // by device; 0: it computes on something else than the CPU
  // For one end of a message, by device; empty: none.
  struct MessageCpu {
    double per_message = 0;
    double per_byte = 0;
  };
  std::vector<MessageCpu> message_cpu;

  std::vector<std::vector<double>> reduction_cpu_seconds;  // by block and replica; empty: none
  // By block: of the gradients or parameters. Reductions then share network cards with messages and with one another,
  // and take longer than `reductions` where that is so. Empty: they do not.
  std::vector<double> reduction_bytes;

  // A CPU quota: in each period a device computes for at most `seconds`, at full speed, messages and reductions
  // included. Its periods begin at `phase`.
  struct Quota {
    double period = 0;  // seconds; 0: no quota
    double seconds = 0;
    double phase = 0;
  };
  std::vector<Quota> quotas;  // by device; empty: none

  // By device: the least time of a step in the long run. Empty, or 0: no limit.
  std::vector<double> least_step_seconds;

  const LinkSpeed& Link(int from, int to) const;
};

// Durations of the right shape for `program` in which nothing takes time and each device is a machine, except that
// devices with the same non-empty Device::machine share one.
Durations NoTime(const program::Program& program);

// Errors: InvalidArgument that names what is missing, negative, infinite or not a number.
absl::Status CheckDurations(const program::Program& program, const Durations& durations);

// Seconds of a reduction of `bytes` among the replicas of a group (model::HierarchicalSeconds, or
// ServedSeconds where one of them serves).
double ReductionSeconds(const program::Program& program, const program::Group& group, const Durations& durations,
                        double bytes);

}  // namespace medley::sched
