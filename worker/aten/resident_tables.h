// Whole embedding tables in the memory of the device that computes with them: LocalTables (worker/pipeline) without
// copies of rows. A step gathers its rows there, adds their gradients there, and updates them there; the host sends
// keys.
//
// Tables that do not fit are in the host's memory, and the rows that are used often on the device, with their optimizer
// state (row_slots.h). Rows that a step lacks there are copied by Pull, while the step before is computed: a row that
// is not on the device is in no open step, so the host's values are those of every version that can still be asked for.
// Every row is updated on the device, and returns to the host when another one takes its place. So no value depends on
// what is cached.
//
// The host gets a table only when it asks for it (Weights, State), for checkpoints and transfers. Errors of functions
// that return no status come from the next pull or push. Values are those of LocalTables but for the rounding of single
// operations. Thread-safe, as WholeTables.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/aten/place.h"
#include "worker/aten/row_slots.h"
#include "worker/aten/torch.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker::aten {

class ResidentTables final : public WholeTables {
 public:
  // Bytes that these tables take on the device, with their optimizer state.
  static double Bytes(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer);

  // Errors: those of the device. `kept_updates` >= 0: how many updates can be undone. `cache_bytes` > 0: the tables are
  // in the host's memory, and the device has rows of as many bytes, more only where open steps need them.
  static absl::StatusOr<std::unique_ptr<ResidentTables>> Create(const std::vector<ParameterSpec>& tables,
                                                                const Optimizer& optimizer, uint64_t seed,
                                                                int kept_updates, const Place& place,
                                                                double cache_bytes = 0);
  ~ResidentTables() override;

  // Rows on the device, keys x columns, and their places in the tables there.
  struct Gathered {
    at::Tensor rows, places;
  };
  // The rows of distinct keys, ascending, after update `version`, for both passes of `step`; 0: for inference. Errors:
  // OutOfRange for a version that is not kept.
  absl::StatusOr<Gathered> Gather(size_t table, std::span<const uint64_t> keys, int64_t version, int64_t step);
  // What the push of `step` will apply to the rows that were gathered for it: keys x columns on the device; undefined:
  // zeros.
  void SetGradients(int64_t step, size_t table, const at::Tensor& places, const at::Tensor& sums);

  // How often a row that a step pulled was on the device, the bytes of rows that it has room for, and those that were
  // copied for the rest, there and back. Whole tables find every row, and `bytes` is 0.
  struct CacheCounts {
    int64_t hits = 0, misses = 0;
    double bytes = 0;
    int64_t bytes_in = 0, bytes_out = 0;
  };
  CacheCounts Cached() const;

  // Brings rows that are not on the device there, then waits until the version before `step` has been applied; gives no
  // rows.
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override;
  // Applies what SetGradients has given; `gradients` are ignored.
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit& limit) override;

  int64_t AppliedStep() const override;
  int64_t UndoLimit() const override;
  absl::Status UndoTo(int64_t step) override;
  std::span<float> Weights(int operation) override;
  std::span<float> State(int operation) override;
  absl::Status Failure() const override;
  void SetAppliedStep(int64_t step) override;

 private:
  // Rows on the device, with their optimizer state.
  struct Rows {
    at::Tensor weights;
    std::array<at::Tensor, 2> state;  // as many as the optimizer has floats for each weight
  };
  // The rows that one update replaced.
  struct Replaced {
    std::vector<uint64_t> keys;  // ascending
    at::Tensor places;
    Rows rows;
  };
  struct Gradients {
    int64_t step = -1;
    at::Tensor places, sums;
  };
  struct Table {
    ParameterSpec spec;
    Rows rows;
    std::optional<RowSlots> slots;  // of `rows`; nullopt: the place of a row is its key
    std::deque<Replaced> replaced;  // by the updates from undo_limit_ + 1 to step_
    Gradients gradients;
    bool asked = false;                           // the host has asked for the next two, and may have written to them
    std::vector<float> host_weights, host_state;  // empty where only the device has the table
  };

  ResidentTables(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer, int kept_updates,
                 const Place& place, double cache_bytes);
  Table& Find(int operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Rows Taken(const Rows& rows, const at::Tensor& places) const;
  void PutBack(const Rows& rows, const at::Tensor& places, Rows& to) const;
  // Where the rows are on the device, after those that are not there were brought. `step` as RowSlots::Fetch.
  absl::StatusOr<at::Tensor> PlacesOf(Table& table, std::span<const uint64_t> keys, int64_t step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Bring(Table& table, std::span<const uint64_t> keys, const RowSlots::Fetched& fetched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteBack(Table& table, std::span<const RowSlots::Evicted> rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayHitRate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t RowBytes(const Table& table, size_t rows) const;
  absl::Status Apply(Table& table, const TableKeys& keys, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Use>
  void ForEachRow(Table& table, size_t s, const Use& use, std::vector<float>& part) const;
  absl::Status ToHost(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FromHost(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Optimizer optimizer_;
  const size_t state_floats_;
  const int kept_updates_;
  const Place place_;
  mutable base::Mutex mutex_;
  base::CondVar applied_;
  std::vector<Table> tables_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t undo_limit_ ABSL_GUARDED_BY(mutex_) = 0;
  CacheCounts counts_ ABSL_GUARDED_BY(mutex_);
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker::aten
