#include "worker/trainer/rebuild.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "worker/ps/push_replay.h"
#include "worker/ps/replay_pushes.h"
#include "worker/trainer/member.h"
#include "worker/trainer/restore_error.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

constexpr size_t kMostKept = size_t{256} << 20;                // bytes; sent again in less than a second
constexpr size_t kMostRuns = 64;                               // that a trainer reports
constexpr base::nanoseconds kMemoryIsKnown{base::seconds(1)};  // for how long

}  // namespace

bool Rebuilds(const pb::Prepare& order, int shard) {
  const auto& shards = order.rebuild().shards();
  return std::find(shards.begin(), shards.end(), shard) != shards.end();
}

absl::Status TakePushes(const pb::Prepare& order, std::shared_ptr<RowStore> store, ParameterServer& server,
                        const base::Clock& clock, std::stop_token stop) {
  const int64_t after = order.rebuild().after_step(), to = order.rebuild().to_step();
  if (store->AppliedStep() != after) {
    return RestoreError(base::DataLoss("the rows to rebuild are of step {}, and the kept pushes follow step {}",
                                       store->AppliedStep(), after));
  }
  if (after >= to) return absl::OkStatus();
  const auto replay = std::make_shared<PushReplay>(std::move(store), to);
  server.SetReplay(order.generation(), replay);
  const absl::Status rebuilt = replay->Await({stop, clock.Steady() + kRebuildTime});
  server.SetReplay(order.generation(), nullptr);
  return absl::IsCancelled(rebuilt) ? rebuilt : RestoreError(rebuilt);
}

ResentPushes::ResentPushes(const pb::Prepare& order, const SessionOptions& session, const std::shared_ptr<PushLog>& log,
                           const base::Clock& clock) {
  if (log == nullptr) return;
  for (const pb::Peer& peer : order.peers()) {
    const int shard = peer.slot().index();
    if (peer.slot().role() != pb::MEMBER_ROLE_SERVER || !Rebuilds(order, shard)) continue;
    const ReplayTarget target{peer.address(), session.token, session.tls, order.generation()};
    absl::Status& result = *results_.emplace_back(std::make_unique<absl::Status>());
    threads_.emplace_back([&result, &clock, log, target, shard, stop = end_.get_token(), rebuild = order.rebuild()] {
      result = ReplayPushes(target, log->Of(shard, rebuild.after_step(), rebuild.to_step()), clock,
                            {stop, clock.Steady() + kRebuildTime});
    });
  }
}

ResentPushes::~ResentPushes() { end_.request_stop(); }

absl::Status ResentPushes::Finish(std::stop_token stop) {
  {
    const std::stop_callback forward(std::move(stop), [this] { end_.request_stop(); });
    threads_.clear();  // joins
  }
  for (const auto& result : results_) {
    if (result->ok()) continue;
    return IsExchange(*result) ? *result : RestoreError(*result);
  }
  return absl::OkStatus();
}

void ReportPushes(const PushLog& log, pb::Halted& halted) {
  const std::vector<PushLog::Run> runs = log.Runs();
  for (size_t i = runs.size() > kMostRuns ? runs.size() - kMostRuns : 0; i < runs.size(); ++i) {
    pb::KeptPushes& kept = *halted.add_pushes();
    kept.set_first_step(runs[i].first_step);
    kept.set_last_step(runs[i].last_step);
    kept.set_trainer(runs[i].place.trainer);
    kept.set_trainers(runs[i].place.trainers);
    kept.set_shards(runs[i].place.shards);
  }
}

std::shared_ptr<PushLog> MakePushLog(const base::Clock& clock) {
  const int64_t limit = base::MemoryLimit();
  // Called under the log's lock.
  return std::make_shared<PushLog>([limit, &clock, other = int64_t{0}, next = base::SteadyTime()](size_t held) mutable {
    if (const base::SteadyTime now = clock.Steady(); now >= next) {
      other = std::max<int64_t>(0, base::MemoryInUse() - static_cast<int64_t>(held));
      next = now + kMemoryIsKnown;
    }
    return PushLogBudget(limit, other, kMostKept);
  });
}

}  // namespace medley::worker
