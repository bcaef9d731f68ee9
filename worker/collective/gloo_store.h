// gloo's view of a KeyValueStore. Internal to worker/collective; used by one thread during Connect.
//
// Waits for the store's own timeout, not gloo's: members come when their data is read, long before they connect.
// gloo reports by exceptions: StoreError carries the store's status through gloo's frames to Group::Connect.
#pragma once

#include <gloo/rendezvous/store.h>

#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/key_value_store.h"

namespace medley::worker {

struct StoreError : std::runtime_error {
  explicit StoreError(absl::Status s) : std::runtime_error(base::Message(s)), status(std::move(s)) {}
  absl::Status status;
};

class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(KeyValueStore& store, std::string prefix, base::milliseconds timeout, std::stop_token stop)
      : store_(store), prefix_(std::move(prefix)), timeout_(timeout), stop_(std::move(stop)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const absl::Status status = store_.Put(prefix_ + key, std::string(data.begin(), data.end()));
    if (!status.ok()) throw StoreError(status);
  }
  std::vector<char> get(const std::string& key) override {
    const auto values = store_.Get({prefix_ + key}, timeout_, stop_);
    if (!values.ok()) throw StoreError(values.status());
    return {values->front().begin(), values->front().end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(prefix_ + key);
    const auto values = store_.Get(full, timeout_, stop_);
    if (!values.ok()) throw StoreError(values.status());
  }

 private:
  KeyValueStore& store_;
  const std::string prefix_;
  const base::milliseconds timeout_;
  const std::stop_token stop_;
};

}  // namespace medley::worker
