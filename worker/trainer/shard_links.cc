#include "worker/trainer/shard_links.h"

#include "common/model/rows_member.h"

namespace medley::worker {

PsClientOptions ShardsOf(const job::v1::Prepare& order, const TrainerContext& context, PushRank rank) {
  PsClientOptions options{.generation = order.generation(),
                          .trainer = rank.rank,
                          .token = context.session.token,
                          .tls = context.session.tls,
                          .timeout = context.step_timeout,
                          .log = context.push_log,
                          .trainers = rank.of,
                          .rows_ahead = context.rows_ahead};
  if (context.spec != nullptr && context.spec->training.embeddings) {
    options.format = WireFormatNamed(context.spec->training.embeddings->wire);
  }
  for (const job::v1::Peer& peer : order.peers()) {
    if (peer.slot().role() != job::v1::MEMBER_ROLE_SERVER) continue;
    if (context.own_rows != nullptr && peer.slot().member() == model::RowsMember(context.session.member)) {
      options.own = context.own_rows;
      options.log = nullptr;
      options.own_shard = static_cast<int>(options.shards.size());
    }
    options.shards.push_back(peer.address());
  }
  return options;
}

}  // namespace medley::worker
