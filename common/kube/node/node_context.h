// What the parts of one process node share. All borrowed; all thread-safe.
#pragma once

#include <functional>

#include "common/kube/node/address_pool.h"
#include "common/kube/node/container_env.h"
#include "common/kube/node/enforcer.h"
#include "common/kube/node/log_index.h"
#include "common/kube/node/process_node.h"
#include "common/kube/node/process_records.h"
#include "common/kube/node/supervisor.h"

namespace medley::kube {

struct NodeContext {
  Client& client;
  base::Clock& clock;
  const ProcessNodeOptions& options;
  Supervisor& supervisor;
  Enforcer& enforcer;
  AddressPool& addresses;
  LogIndex& logs;
  const ProcessRecords& records;
  std::map<std::string, std::string> inherited;  // variables
  std::function<void(const Key& pod)> wake;      // look at the pod again; never blocks
};

}  // namespace medley::kube
