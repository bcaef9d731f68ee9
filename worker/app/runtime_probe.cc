#include "worker/app/runtime_probe.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/link_speed.h"
#include "common/rpc/server.h"
#include "worker/collective/group.h"
#include "worker/profiler/statistics.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/row_store.h"
#include "worker/ps/shard_generation.h"

namespace medley::worker {
namespace {

constexpr int kMaxRepeats = 400;
constexpr int kStretches = 3;    // of messages amid computation
constexpr int kMaxReplicas = 8;  // threads of this process
constexpr char kToken[] = "probe";
constexpr base::seconds kLimit{10};

double CpuSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

absl::Status CheckReplicas(int replicas) {
  if (replicas >= 2 && replicas <= kMaxReplicas) return absl::OkStatus();
  return base::InvalidArgument("runtime probe: an allreduce of {} replicas; from 2 to {} can be measured", replicas,
                               kMaxReplicas);
}

// The processors that this thread may use; empty: not known.
std::vector<int> Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Where the threads of each rank run: all on one processor, or those of each rank on one of its own.
enum class Places { kAny, kTogether, kApart };

// While it lives, this thread runs where the rank does, and so do those that it starts meanwhile.
class OnPlace {
 public:
  OnPlace(Places places, int rank) {
    const std::vector<int> processors = Processors();
    if (places == Places::kAny || processors.empty()) return;
    pinned_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    const size_t at = places == Places::kTogether ? 0 : static_cast<size_t>(rank) % processors.size();
    CPU_SET(processors[at], &one);
    (void)sched_setaffinity(0, sizeof one, &one);  // where it fails, the scheduler chooses
  }
  OnPlace(const OnPlace&) = delete;
  OnPlace& operator=(const OnPlace&) = delete;
  ~OnPlace() {
    if (pinned_) (void)sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  bool pinned_ = false;
};

std::vector<std::vector<float>> Buffers(int64_t bytes, int replicas) {
  return {static_cast<size_t>(replicas), std::vector<float>(static_cast<size_t>(bytes / 4))};
}

}  // namespace

class RuntimeProbe::Rep {
 public:
  Rep(const RuntimeProbeOptions& options, const base::Clock& clock) : options_(options), clock_(clock) {}

  // Unless they are connected.
  absl::Status Connect(int ranks, Places places = Places::kAny) {
    if (groups_.contains({ranks, places})) return absl::OkStatus();
    std::vector<absl::StatusOr<std::unique_ptr<Group>>> joined(static_cast<size_t>(ranks));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
          const OnPlace place(places, rank);
          joined[static_cast<size_t>(rank)] = Join(rank, ranks, places);
        });
      }
    }
    std::vector<std::unique_ptr<Group>> groups(joined.size());
    for (size_t rank = 0; rank < joined.size(); ++rank) {
      MEDLEY_ASSIGN_OR_RETURN(groups[rank], std::move(joined[rank]));
    }
    groups_[{ranks, places}] = std::move(groups);
    return absl::OkStatus();
  }

  // What `once(rank)`, run `repeats` times on all ranks at the same time, costs one rank in the mean.
  absl::StatusOr<Traffic> RunAll(int ranks, const std::function<absl::Status(Group&, int)>& once, int repeats,
                                 Places places = Places::kAny) {
    MEDLEY_RETURN_IF_ERROR(Connect(ranks, places));
    std::vector<std::unique_ptr<Group>>& groups = groups_[{ranks, places}];
    std::vector<absl::Status> ended(groups.size());
    const double processor = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    const base::SteadyTime start = Now();
    std::vector<double> single;
    {
      const auto run = [&](size_t rank) {
        const OnPlace place(places, static_cast<int>(rank));
        base::SteadyTime before = start;
        for (int i = 0; i < repeats && ended[rank].ok(); ++i) {
          ended[rank] = once(*groups[rank], static_cast<int>(rank));
          if (rank > 0) continue;
          const base::SteadyTime end = Now();
          single.push_back(base::ToSeconds(end - std::exchange(before, end)));
        }
      };
      std::vector<std::jthread> peers;
      for (size_t rank = 1; rank < groups.size(); ++rank) peers.emplace_back([&run, rank] { run(rank); });
      run(0);
    }
    for (const absl::Status& status : ended) MEDLEY_RETURN_IF_ERROR(status);
    return Traffic{base::ToSeconds(Now() - start) / repeats,
                   (CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - processor) / repeats / ranks, Median(std::move(single))};
  }

  // The same over a stretch of time.
  absl::StatusOr<Traffic> TimeAll(int ranks, const std::function<absl::Status(Group&, int rank)>& once) {
    MEDLEY_ASSIGN_OR_RETURN(const Traffic first, RunAll(ranks, once, 2));
    return RunAll(ranks, once, Repeats(first.seconds));
  }

  // The mean over a quarter of a stretch. The number of repeats doubles, so a disturbed start does not prolong it.
  absl::StatusOr<double> ShortMean(int ranks, const std::function<absl::Status(Group&, int rank)>& once) {
    MEDLEY_RETURN_IF_ERROR(RunAll(ranks, once, 1).status());  // connects, and touches the memory
    double seconds = 0;
    int total = 0;
    for (int repeats = 1; seconds < base::ToSeconds(options_.stretch) / 4; repeats *= 2) {
      MEDLEY_ASSIGN_OR_RETURN(const Traffic some, RunAll(ranks, once, repeats));
      seconds += repeats * some.seconds;
      total += repeats;
    }
    return seconds / total;
  }

  // The processor seconds of a rank for an exchange amid computation: those of the process without those of the
  // computation. Differences of runs with and without messages would have the noise of the computation, which takes
  // many times as long.
  absl::StatusOr<double> ExchangeAt(Places places, int64_t bytes, int64_t computed_bytes) {
    const int pieces = options_.micro_batches;
    const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes / pieces));
    std::vector<std::byte> buffers[2] = {std::vector<std::byte>(size), std::vector<std::byte>(size)};
    auto values = Buffers(computed_bytes, 2);
    std::array<double, 2> computing{};  // processor seconds by rank
    const auto compute = [&](int rank) {
      if (computed_bytes <= 0) return;
      const double begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
      for (float& value : values[static_cast<size_t>(rank)]) value = value * 0.5F + 1;
      computing[static_cast<size_t>(rank)] += CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - begin;
    };
    const auto step = [&](Group& group, int rank) -> absl::Status {
      for (int piece = 0; piece < pieces; ++piece) {
        const auto tag = static_cast<uint64_t>(piece);
        if (rank == 1) MEDLEY_RETURN_IF_ERROR(group.Recv(0, tag, buffers[rank]));
        compute(rank);
        MEDLEY_RETURN_IF_ERROR(group.Send(1 - rank, tag, buffers[rank]));
        if (rank == 0) MEDLEY_RETURN_IF_ERROR(group.Recv(1, tag, buffers[rank]));
        compute(rank);
      }
      return absl::OkStatus();
    };
    MEDLEY_ASSIGN_OR_RETURN(const Traffic first, RunAll(2, step, 2, places));
    const int repeats = Repeats(first.seconds);
    std::vector<double> costs;
    for (int i = 0; i < kStretches; ++i) {
      computing = {};
      MEDLEY_ASSIGN_OR_RETURN(const Traffic all, RunAll(2, step, repeats, places));
      costs.push_back(std::max(0.0, all.processor_seconds - (computing[0] + computing[1]) / repeats / 2));
    }
    return Median(std::move(costs));
  }

  int Repeats(double seconds_of_one) const {
    const double wanted = base::ToSeconds(options_.stretch) / std::max(seconds_of_one, 1e-7);
    return static_cast<int>(std::clamp(wanted, 3.0, static_cast<double>(kMaxRepeats)));
  }

  base::SteadyTime Now() const { return clock_.Steady(); }
  const RuntimeProbeOptions& options() const { return options_; }
  const base::Clock& clock() const { return clock_; }

 private:
  absl::StatusOr<std::unique_ptr<Group>> Join(int rank, int ranks, Places places) {
    std::vector<std::string> members;
    for (int i = 0; i < ranks; ++i) members.push_back(fmt::format("probe-{}", i));
    return Group::Connect({.name = fmt::format("probe-of-{}-{}", ranks, static_cast<int>(places)),
                           .rank = rank,
                           .members = members,
                           .address = options_.address,
                           .rendezvous_timeout = std::chrono::duration_cast<base::milliseconds>(kLimit),
                           .timeout = std::chrono::duration_cast<base::milliseconds>(kLimit),
                           .tls = options_.tls},
                          store_, std::stop_token());
  }

  const RuntimeProbeOptions options_;
  const base::Clock& clock_;
  MemoryStore store_;
  std::map<std::pair<int, Places>, std::vector<std::unique_ptr<Group>>> groups_;  // by number of ranks
};

RuntimeProbe::RuntimeProbe(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
RuntimeProbe::~RuntimeProbe() = default;

absl::StatusOr<std::unique_ptr<RuntimeProbe>> RuntimeProbe::Create(const RuntimeProbeOptions& options,
                                                                   const base::Clock& clock) {
  if (options.micro_batches < 1)
    return base::InvalidArgument("runtime probe: micro_batches is {}, it must be at least 1", options.micro_batches);
  auto rep = std::make_unique<Rep>(options, clock);
  MEDLEY_RETURN_IF_ERROR(rep->Connect(2));
  return std::unique_ptr<RuntimeProbe>(new RuntimeProbe(std::move(rep)));
}

absl::StatusOr<Traffic> RuntimeProbe::Allreduce(int64_t bytes, int replicas) {
  if (bytes <= 0) return Traffic();
  MEDLEY_RETURN_IF_ERROR(CheckReplicas(replicas));
  // As a plan's AUTO is resolved, so that the time is that of the job.
  const auto algorithm =
      model::ChooseAllreduce(model::AllreduceRules(replicas, model::kUnmeasuredLink), replicas, bytes);
  auto values = Buffers(bytes, replicas);
  return rep_->TimeAll(replicas, [&](Group& group, int rank) {
    return group.AllreduceSum(values[static_cast<size_t>(rank)], algorithm);
  });
}

absl::StatusOr<double> RuntimeProbe::AllreduceSeconds(int64_t bytes, int replicas,
                                                      model::AllreduceAlgorithm algorithm) {
  if (bytes <= 0) return 0.0;
  MEDLEY_RETURN_IF_ERROR(CheckReplicas(replicas));
  auto values = Buffers(bytes, replicas);
  return rep_->ShortMean(replicas, [&](Group& group, int rank) {
    return group.AllreduceSum(values[static_cast<size_t>(rank)], algorithm);
  });
}

absl::StatusOr<Traffic> RuntimeProbe::Exchange(int64_t bytes) {
  const int pieces = rep_->options().micro_batches;
  const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes / pieces));
  std::vector<std::byte> buffers[2] = {std::vector<std::byte>(size), std::vector<std::byte>(size)};
  return rep_->TimeAll(2, [&](Group& group, int rank) -> absl::Status {
    const int peer = 1 - rank;
    for (int piece = 0; piece < pieces; ++piece) {
      const auto tag = static_cast<uint64_t>(piece);
      // Activations go from rank 0 to rank 1, their gradients back.
      if (rank == 0) MEDLEY_RETURN_IF_ERROR(group.Send(peer, tag, buffers[rank]));
      MEDLEY_RETURN_IF_ERROR(group.Recv(peer, tag, buffers[rank]));
      if (rank == 1) MEDLEY_RETURN_IF_ERROR(group.Send(peer, tag, buffers[rank]));
    }
    return absl::OkStatus();
  });
}

// A message costs two to four times as much where it wakes a thread on another processor. On which its receiver runs is
// chance, so both are measured: one message of as many as there are processors stays on its own.
absl::StatusOr<double> RuntimeProbe::ExchangeAmidComputation(int64_t bytes, int64_t computed_bytes) {
  MEDLEY_ASSIGN_OR_RETURN(const double together, rep_->ExchangeAt(Places::kTogether, bytes, computed_bytes));
  const auto processors = static_cast<double>(Processors().size());
  if (processors < 2) return together;
  MEDLEY_ASSIGN_OR_RETURN(const double apart, rep_->ExchangeAt(Places::kApart, bytes, computed_bytes));
  return (together + (processors - 1) * apart) / processors;
}

absl::StatusOr<CommunicationProbe::ServerCost> RuntimeProbe::PullPushCost(int64_t rows, int columns) {
  ServerCost cost;
  if (rows <= 0) return cost;
  const ParameterSpec table{.operation = 0, .name = "table", .rows = rows, .columns = columns, .sparse = true};
  auto store = std::make_shared<RowStore>(std::vector<ParameterSpec>{table}, rep_->options().optimizer, 1);
  auto shard = std::make_shared<ShardGeneration>(
      ShardGenerationOptions{.generation = 1, .trainers = 1, .wait = kLimit, .on_applied = {}}, store);
  MEDLEY_RETURN_IF_ERROR(shard->Allow(1 << 20));
  ParameterServer server(kToken, rep_->clock());
  server.Install(shard);
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Server> listening,
                          rpc::Server::Start({.host = rep_->options().address}, {&server.service()}));
  PsClient client({.generation = 1, .trainer = 0, .shards = {listening->address()}, .token = kToken, .timeout = kLimit},
                  rep_->clock());
  MEDLEY_RETURN_IF_ERROR(client.Connect({.stop = {}, .deadline = rep_->Now() + kLimit}));
  std::vector<TableKeys> keys(1);
  keys[0] = {.operation = 0, .columns = columns, .keys = std::vector<uint64_t>(static_cast<size_t>(rows))};
  for (size_t i = 0; i < keys[0].keys.size(); ++i) keys[0].keys[i] = i;
  const std::vector<float> gradient(static_cast<size_t>(rows) * static_cast<size_t>(columns), 0.01F);
  const std::vector<std::span<const float>> gradients = {gradient};
  int64_t step = 0;
  const auto once = [&]() -> absl::Status {
    ++step;
    const WaitLimit limit{.stop = {}, .deadline = rep_->Now() + kLimit};
    std::vector<std::vector<float>> pulled;
    MEDLEY_RETURN_IF_ERROR(client.Pull(step, keys, pulled, limit));
    return client.Push(step, keys, gradients, 1, limit);
  };
  MEDLEY_RETURN_IF_ERROR(once());  // connects, creates the rows
  base::SteadyTime start = rep_->Now();
  MEDLEY_RETURN_IF_ERROR(once());
  const int repeats = rep_->Repeats(base::ToSeconds(rep_->Now() - start));
  // All threads but this one work for the server (and a little for the client's transport).
  const double process = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const double client_thread = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  start = rep_->Now();
  for (int i = 0; i < repeats; ++i) MEDLEY_RETURN_IF_ERROR(once());
  cost.client.seconds = base::ToSeconds(rep_->Now() - start) / repeats;
  cost.client.processor_seconds = (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - client_thread) / repeats;
  cost.server_seconds =
      std::max(1e-9, (CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - process) / repeats - cost.client.processor_seconds);
  return cost;
}

}  // namespace medley::worker
