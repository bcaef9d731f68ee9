#include "worker/pipeline/testing/memory_fabric.h"

#include <algorithm>
#include <numeric>

#include "common/base/status.h"

namespace medley::worker::testing {
namespace {

absl::Status WaitFailed(const WaitLimit& limit, std::string_view what) {
  if (limit.stop.stop_requested()) return base::Cancelled("the wait for {} was stopped", what);
  return base::DeadlineExceeded("{} did not arrive in time", what);
}

}  // namespace

class MemoryChannel final : public FlowChannel {
 public:
  MemoryChannel(MemoryFabric& fabric, int self) : fabric_(fabric), self_(self) {}
  absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit&) override {
    return fabric_.Put({tag, self_, peer}, data);
  }
  absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) override {
    return fabric_.Take({tag, peer, self_}, data, limit);
  }

 private:
  MemoryFabric& fabric_;
  const int self_;
};

std::unique_ptr<FlowChannel> MemoryFabric::End(int device) { return std::make_unique<MemoryChannel>(*this, device); }

int64_t MemoryFabric::floats_sent() const {
  base::MutexLock lock(mutex_);
  return floats_sent_;
}

absl::Status MemoryFabric::Put(const Key& key, std::span<const float> data) {
  base::MutexLock lock(mutex_);
  floats_sent_ += std::ssize(data);
  if (!messages_.emplace(key, std::vector<float>(data.begin(), data.end())).second) {
    return base::AlreadyExists("a second message was sent with the same tag");
  }
  arrived_.NotifyAll();
  return absl::OkStatus();
}

absl::Status MemoryFabric::Take(const Key& key, std::span<float> data, const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  if (!arrived_.WaitUntil(mutex_, limit.stop, limit.deadline, [&] { return messages_.contains(key); })) {
    return WaitFailed(limit, "a message");
  }
  const auto node = messages_.extract(key);
  if (node.mapped().size() != data.size()) {
    return base::DataLoss("got a message of {} floats, expected {}", node.mapped().size(), data.size());
  }
  std::ranges::copy(node.mapped(), data.begin());
  return absl::OkStatus();
}

class MemoryReducer final : public DenseReducer {
 public:
  MemoryReducer(MemorySum& sum, int replica) : sum_(sum), replica_(replica) {}
  absl::Status SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                      const WaitLimit& limit) override {
    std::vector<int> members(static_cast<size_t>(sum_.replicas_));
    std::iota(members.begin(), members.end(), 0);
    if (group.levels.size() == 1) {
      for (const std::vector<int>& one : group.levels.front().groups) {
        if (std::ranges::find(one, replica_) != one.end()) members = one;
      }
    }
    return sum_.Sum({step, block, members}, replica_, values, limit);
  }

 private:
  MemorySum& sum_;
  const int replica_;
};

std::unique_ptr<DenseReducer> MemorySum::End(int replica) { return std::make_unique<MemoryReducer>(*this, replica); }

absl::Status MemorySum::Sum(const Key& key, int replica, std::span<float> values, const WaitLimit& limit) {
  const auto all = std::ssize(std::get<2>(key));
  base::MutexLock lock(mutex_);
  Round& round = rounds_[key];
  round.parts.emplace(replica, std::vector<float>(values.begin(), values.end()));
  if (std::ssize(round.parts) == all) {
    round.sum.assign(values.size(), 0);
    for (const auto& [number, part] : round.parts) {
      for (size_t i = 0; i < part.size(); ++i) round.sum[i] += part[i];
    }
    changed_.NotifyAll();
  }
  if (!changed_.WaitUntil(mutex_, limit.stop, limit.deadline, [&] { return std::ssize(round.parts) == all; })) {
    return WaitFailed(limit, "a sum");
  }
  std::ranges::copy(round.sum, values.begin());
  if (++round.taken == all) rounds_.erase(key);
  return absl::OkStatus();
}

class SharedTablesEnd final : public SparseParameters {
 public:
  SharedTablesEnd(SharedTables& shared, int replica) : shared_(shared), replica_(replica) {}
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override {
    return shared_.tables_.Pull(step, tables, rows, limit);
  }
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit&) override {
    SharedTables::Pushed pushed;
    pushed.tables.assign(tables.begin(), tables.end());
    for (const std::span<const float> gradient : gradients) {
      pushed.gradients.emplace_back(gradient.begin(), gradient.end());
    }
    return shared_.Push(step, replica_, std::move(pushed), samples);
  }

 private:
  SharedTables& shared_;
  const int replica_;
};

std::unique_ptr<SparseParameters> SharedTables::End(int replica) {
  return std::make_unique<SharedTablesEnd>(*this, replica);
}

absl::Status SharedTables::Push(int64_t step, int replica, Pushed pushed, int64_t samples) {
  base::MutexLock lock(mutex_);
  std::map<int, Pushed>& parts = steps_[step];
  parts.emplace(replica, std::move(pushed));
  if (std::ssize(parts) < replicas_) return absl::OkStatus();
  std::map<int, TableKeys> by_operation;
  std::map<int, std::map<uint64_t, std::vector<float>>> rows;
  for (const auto& [number, part] : parts) {
    for (size_t t = 0; t < part.tables.size(); ++t) {
      const TableKeys& table = part.tables[t];
      by_operation[table.operation] = {table.operation, table.columns, {}};
      const auto columns = static_cast<size_t>(table.columns);
      for (size_t k = 0; k < table.keys.size(); ++k) {
        std::vector<float>& row = rows[table.operation][table.keys[k]];
        row.resize(columns);
        for (size_t i = 0; i < columns; ++i) row[i] += part.gradients[t][k * columns + i];
      }
    }
  }
  std::vector<TableKeys> tables;
  std::vector<std::vector<float>> sums;
  for (auto& [operation, table] : by_operation) {
    std::vector<float>& sum = sums.emplace_back();
    for (const auto& [key, row] : rows[operation]) {
      table.keys.push_back(key);
      sum.insert(sum.end(), row.begin(), row.end());
    }
    tables.push_back(std::move(table));
  }
  const std::vector<std::span<const float>> gradients(sums.begin(), sums.end());
  steps_.erase(step);
  return tables_.Push(step, tables, gradients, samples, {});
}

}  // namespace medley::worker::testing
