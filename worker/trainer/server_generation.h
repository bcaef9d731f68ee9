// A parameter server's next generation. Copies the rows of its new shard while training continues; at the switch it
// copies the rows that have changed since.
//
// PreparedGeneration documents thread-safety and lifecycle. Internal to worker/trainer.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "worker/ps/client.h"
#include "worker/ps/row_store.h"
#include "worker/ps/shard_generation.h"
#include "worker/trainer/server_role.h"

namespace medley::worker {

class ServerGeneration final : public PreparedGeneration {
 public:
  // `held`: this server's store of order.source_generation; null when it has none. `server`: receives what trainers
  // send again when this shard is rebuilt.
  static absl::StatusOr<std::shared_ptr<ServerGeneration>> Build(const job::v1::Prepare& order,
                                                                 const ServerContext& context,
                                                                 std::shared_ptr<RowStore> held,
                                                                 ParameterServer& server, std::stop_token stop);

  int64_t generation() const override { return order_.generation(); }
  job::v1::Warmed warmed() const override;
  void Abort() override { abort_.request_stop(); }

  bool serves() const { return shard_ >= 0; }  // false: a source that only sends its rows
  int shard() const { return shard_; }
  int trainers() const { return trainers_; }  // of the stages with tables; each one pushes
  const std::shared_ptr<RowStore>& store() const { return store_; }

  // Brings the store exactly to order.step.
  absl::Status TakeState(const job::v1::Switch& order);

 private:
  struct Source {
    std::string address;
    int64_t since_step = 0;
  };
  ServerGeneration(job::v1::Prepare order, const ServerContext& context)
      : order_(std::move(order)), context_(context) {}
  absl::Status FindPlace();
  absl::Status Load(std::stop_token stop);
  // Sets sources_ to the servers that have rows of this shard; leaves it empty when this server keeps its store.
  void FindSources();
  absl::StatusOr<RowsCopied> Fetch(const Source& source, const WaitLimit& limit);

  const job::v1::Prepare order_;
  const ServerContext& context_;
  int shard_ = -1;
  int shards_ = 0;
  int trainers_ = 0;
  bool rebuilt_ = false;  // store_ has the rows of a lost server at the step of the switch
  std::vector<Source> sources_;
  std::shared_ptr<RowStore> held_;
  std::shared_ptr<RowStore> store_;
  std::stop_source abort_;
};

}  // namespace medley::worker
