// Where a trainer finds the shards of a generation's rows. Pure.
#pragma once

#include "medley/job/v1/coordinator.pb.h"
#include "worker/ps/client.h"
#include "worker/trainer/trainer_context.h"

namespace medley::worker {

// A trainer among those that push.
struct PushRank {
  int rank = 0;
  int of = 1;  // how many push
};
// The shard in this process, if it is one of the generation's, is the client's own. Then no pushes are kept: with a
// trainer's shard, the trainer's pushes are lost too.
PsClientOptions ShardsOf(const job::v1::Prepare& order, const TrainerContext& context, PushRank rank);

}  // namespace medley::worker
