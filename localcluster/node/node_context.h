// What the parts of a process node share. All members are borrowed and thread-safe.
#pragma once

#include <functional>

#include "localcluster/node/address_pool.h"
#include "localcluster/node/container_env.h"
#include "localcluster/node/enforcer.h"
#include "localcluster/node/gpu_pool.h"
#include "localcluster/node/log_index.h"
#include "localcluster/node/process_node.h"
#include "localcluster/node/process_records.h"
#include "localcluster/node/supervisor.h"

namespace medley::localcluster {

struct NodeContext {
  kube::Client& client;
  base::Clock& clock;
  const ProcessNodeOptions& options;
  Supervisor& supervisor;
  Enforcer& enforcer;
  AddressPool& addresses;
  GpuPool& gpus;
  LogIndex& logs;
  const ProcessRecords& records;
  std::map<std::string, std::string> inherited;    // environment variables for every process
  std::function<void(const kube::Key& pod)> wake;  // requeues the pod; never blocks
};

}  // namespace medley::localcluster
