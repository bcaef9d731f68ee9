// The client of parameter servers: a trainer's pulls and pushes, and the copy of rows between shards.
//
// ShardOf divides the keys among the shards. Every call contacts every shard, in parallel and even without keys,
// because a shard waits for all its trainers. What does not fit into one message is sent in several, one after another
// to each shard. A shard in this process is called directly. Thread-safe for one pulling and one pushing thread. The
// caller's limit and, for each message, `timeout` bound every wait.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/message_pieces.h"
#include "worker/ps/push_log.h"
#include "worker/ps/row_store.h"

namespace medley::rpc {
class MutualTls;
}

namespace medley::worker {

class ParameterServer;

struct PsClientOptions {
  int64_t generation = 0;
  int trainer = 0;                  // rank of this trainer among those that push to the shards
  std::vector<std::string> shards;  // "ip:port" of each shard
  std::string token;
  std::shared_ptr<const rpc::MutualTls> tls = nullptr;  // null: plain text
  base::nanoseconds timeout{base::seconds(60)};
  // The shard of these that is in this process, which is asked without messages; null: none is.
  ParameterServer* own = nullptr;
  int own_shard = -1;
  // Most bytes of keys and rows in one message; servers refuse more than AcceptedBytes. A row is not divided.
  size_t message_bytes = kMessageBytes;
  std::shared_ptr<PushLog> log = nullptr;  // keeps what is pushed; null: nothing is kept
  int trainers = 1;                        // how many push to the shards, for the log
  // The format of rows and gradients. Those of a shard in this process are rounded alike.
  WireFormat format = WireFormat::kFloat32;
  bool rows_ahead = false;  // PullAhead asks the shards; else it pulls nothing
};

class PsClient final : public SparseParameters {
 public:
  PsClient(PsClientOptions options, const base::Clock& clock);
  ~PsClient() override;

  // Waits until every shard accepts connections. Errors: Unavailable naming the shard, Cancelled.
  absl::Status Connect(const WaitLimit& limit);
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override;
  // Rows of a shard in this process come with PullChanged.
  absl::StatusOr<RowsAhead> PullAhead(int64_t step, std::span<const TableKeys> tables,
                                      std::vector<std::vector<float>>& rows, const WaitLimit& limit) override;
  absl::Status PullChanged(int64_t step, std::span<const TableKeys> tables, const RowsAhead& ahead,
                           std::vector<std::vector<float>>& rows, const WaitLimit& limit) override;
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit& limit) override;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

// Selects the rows that FetchRows copies: those of shard `shard` of `shards`.
struct RowsQuery {
  std::string address;  // "ip:port" of the server that has the rows
  std::string token;
  std::shared_ptr<const rpc::MutualTls> tls = nullptr;  // null: plain text
  int64_t source_generation = 0;
  int64_t since_step = 0;  // only rows that changed after this step; 0: all
  int shard = 0;           // index of the receiving shard in the new generation
  int shards = 1;          // number of shards in the new generation
};

// The result of FetchRows. The source may train on meanwhile, so its step can change during the copy.
struct RowsCopied {
  int64_t first_step = 0;     // the source's step at the first piece
  int64_t last_step = 0;      // the source's step at the last piece
  int64_t state_samples = 0;  // samples in the state at last_step
  int64_t rows = 0;
};

// Copies rows of another shard into `store`. Errors: Unavailable (source lost), Cancelled, DeadlineExceeded.
absl::StatusOr<RowsCopied> FetchRows(const RowsQuery& query, RowStore& store, const base::Clock& clock,
                                     const WaitLimit& limit);

}  // namespace medley::worker
