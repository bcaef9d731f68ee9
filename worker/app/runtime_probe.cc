#include "worker/app/runtime_probe.h"

#include <time.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/allreduce.h"
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
constexpr char kToken[] = "probe";
constexpr base::seconds kLimit{10};

double CpuSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

class RuntimeProbe::Rep {
 public:
  Rep(const RuntimeProbeOptions& options, const base::Clock& clock) : options_(options), clock_(clock) {}

  absl::Status Connect() {
    absl::StatusOr<std::unique_ptr<Group>> other;
    std::jthread peer([&] { other = Join(1); });
    auto mine = Join(0);
    peer.join();
    MEDLEY_ASSIGN_OR_RETURN(groups_[0], std::move(mine));
    MEDLEY_ASSIGN_OR_RETURN(groups_[1], std::move(other));
    return absl::OkStatus();
  }

  // What `once(rank)`, run on both ranks at the same time, costs one rank in the mean.
  absl::StatusOr<Traffic> TimeBoth(const std::function<absl::Status(Group&, int rank)>& once) {
    MEDLEY_ASSIGN_OR_RETURN(const Traffic first, RunBoth(once, 2));
    return RunBoth(once, Repeats(first.seconds));
  }

  int Repeats(double seconds_of_one) const {
    const double wanted = base::ToSeconds(options_.stretch) / std::max(seconds_of_one, 1e-7);
    return static_cast<int>(std::clamp(wanted, 3.0, static_cast<double>(kMaxRepeats)));
  }

  base::SteadyTime Now() const { return clock_.Steady(); }
  const RuntimeProbeOptions& options() const { return options_; }
  const base::Clock& clock() const { return clock_; }

 private:
  absl::StatusOr<std::unique_ptr<Group>> Join(int rank) {
    return Group::Connect({.name = "probe",
                           .rank = rank,
                           .members = {"probe-0", "probe-1"},
                           .address = options_.address,
                           .rendezvous_timeout = std::chrono::duration_cast<base::milliseconds>(kLimit),
                           .timeout = std::chrono::duration_cast<base::milliseconds>(kLimit),
                           .tls = options_.tls},
                          store_, std::stop_token());
  }

  absl::StatusOr<Traffic> RunBoth(const std::function<absl::Status(Group&, int)>& once, int repeats) {
    absl::Status peer_status;
    const double processor = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    const base::SteadyTime start = Now();
    std::vector<double> single;
    {
      std::jthread peer([&] {
        for (int i = 0; i < repeats && peer_status.ok(); ++i) peer_status = once(*groups_[1], 1);
      });
      base::SteadyTime before = start;
      for (int i = 0; i < repeats; ++i) {
        MEDLEY_RETURN_IF_ERROR(once(*groups_[0], 0));
        const base::SteadyTime end = Now();
        single.push_back(base::ToSeconds(end - std::exchange(before, end)));
      }
    }
    MEDLEY_RETURN_IF_ERROR(peer_status);
    const double ranks = 2;  // of this process
    return Traffic{base::ToSeconds(Now() - start) / repeats,
                   (CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - processor) / repeats / ranks, Median(std::move(single))};
  }

  const RuntimeProbeOptions options_;
  const base::Clock& clock_;
  MemoryStore store_;
  std::unique_ptr<Group> groups_[2];
};

RuntimeProbe::RuntimeProbe(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
RuntimeProbe::~RuntimeProbe() = default;

absl::StatusOr<std::unique_ptr<RuntimeProbe>> RuntimeProbe::Create(const RuntimeProbeOptions& options,
                                                                   const base::Clock& clock) {
  if (options.micro_batches < 1)
    return base::InvalidArgument("runtime probe: micro_batches is {}, it must be at least 1", options.micro_batches);
  auto rep = std::make_unique<Rep>(options, clock);
  MEDLEY_RETURN_IF_ERROR(rep->Connect());
  return std::unique_ptr<RuntimeProbe>(new RuntimeProbe(std::move(rep)));
}

absl::StatusOr<Traffic> RuntimeProbe::Allreduce(int64_t bytes, int replicas) {
  if (bytes <= 0) return Traffic();
  if (replicas != 2)
    return base::Unimplemented("runtime probe: measures an allreduce of 2 replicas, not of {}", replicas);
  std::vector<float> values[2];
  for (auto& side : values) side.assign(static_cast<size_t>(bytes / 4), 0.0F);
  // As a plan's AUTO is resolved, so that the time is that of the job.
  const auto algorithm =
      model::ChooseAllreduce(model::AllreduceRules(replicas, model::kUnmeasuredLink), replicas, bytes);
  return rep_->TimeBoth([&](Group& group, int rank) { return group.AllreduceSum(values[rank], algorithm); });
}

absl::StatusOr<Traffic> RuntimeProbe::Exchange(int64_t bytes) {
  const int pieces = rep_->options().micro_batches;
  const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes / pieces));
  std::vector<std::byte> buffers[2] = {std::vector<std::byte>(size), std::vector<std::byte>(size)};
  return rep_->TimeBoth([&](Group& group, int rank) -> absl::Status {
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
