// The trainer's side of the parameter servers, and of rows that move between shards.
//
// Keys are cut by ShardOf; every shard is asked every step, in parallel, also for nothing: it counts its trainers.
// Thread-safe for one puller and one pusher. Waits are bounded by the caller's limit and by `timeout`.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/ps/row_store.h"

namespace medley::worker {

struct PsClientOptions {
  int64_t generation = 0;
  int trainer = 0;                  // rank within the stage
  std::vector<std::string> shards;  // "ip:port" by shard
  std::string token;
  base::nanoseconds timeout{base::seconds(60)};
};

class PsClient final : public SparseParameters {
 public:
  PsClient(PsClientOptions options, const base::Clock& clock);
  ~PsClient() override;

  // Waits until every shard answers connections. Errors: Unavailable naming the shard, Cancelled.
  absl::Status Connect(const WaitLimit& limit);
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override;
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit& limit) override;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

// Which rows to fetch, and for whom.
struct RowsQuery {
  std::string address;  // of the source
  std::string token;
  int64_t source_generation = 0;
  int64_t since_step = 0;  // 0: all
  int shard = 0;           // of the asker, in the new map of `shards`
  int shards = 1;
};

// What came: the source's step at the first piece and at the last.
struct RowsCopied {
  int64_t first_step = 0;
  int64_t last_step = 0;
  int64_t state_samples = 0;  // at last_step
  int64_t rows = 0;
};

// Streams rows of another shard into `store`. Errors: Unavailable (source lost), Cancelled, DeadlineExceeded.
absl::StatusOr<RowsCopied> FetchRows(const RowsQuery& query, RowStore& store, const base::Clock& clock,
                                     const WaitLimit& limit);

}  // namespace medley::worker
