// What a trainer is given when it starts. Plain values; what they point to is borrowed.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"
#include "worker/collective/group.h"
#include "worker/device/device.h"
#include "worker/model/make_block.h"
#include "worker/ps/client.h"
#include "worker/trainer/session.h"

namespace medley::worker {

// The values that all generations of a trainer share.
struct TrainerContext {
  const model::JobSpec* spec = nullptr;
  const Graph* graph = nullptr;  // set by Trainer when it has read the training data
  // Copies what lies in an object store to this machine, and lets `spec` name the copies; called before its data are
  // read, with no other call at the same time. Unset: nothing lies there.
  std::function<absl::Status(const std::stop_token& stop)> copy_data = {};
  Optimizer optimizer;
  SessionOptions session;              // member, instance, token, coordinator
  std::string ip;                      // address on which tensors of peers arrive
  std::optional<GroupTls> tensor_tls;  // nullopt: tensors travel in plain text
  bool share_memory = true;            // gradients are added in memory shared with trainers on this machine
  Volume checkpoint_root;
  CheckpointOwner owner;                    // of the checkpoints that it writes
  std::shared_ptr<ComputeThreads> threads;  // for the worker thread; null: none beside it
  std::shared_ptr<device::Device> device;   // that computes; null: the CPU
  BlockMaker make_block = MakeModelBlock;
  std::shared_ptr<PushLog> push_log = nullptr;  // for servers that are lost; null: nothing is kept
  bool plain_nccl = false;                      // between machines, though the job's tensors are encrypted
  bool rows_ahead = false;                      // from servers, a step ahead (PsClientOptions)
  // The shard of rows that this process keeps where a plan has them in trainers; null: the model has no tables.
  ParameterServer* own_rows = nullptr;
  base::Clock* clock = nullptr;
  base::nanoseconds step_timeout{base::seconds(90)};
};

}  // namespace medley::worker
