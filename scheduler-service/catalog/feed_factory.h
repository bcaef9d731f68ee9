// How feeds come out of the configuration: by type, through functions that main brings together, so that catalog/ knows
// no feed but `file`.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "scheduler-service/catalog/config_node.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

// Reads the fields of its type from `options` and calls options.Finish(). The common fields (name, type, priority,
// period, ttl, onDemandTtl, authoritative) are read already. Errors: InvalidArgument with the field's path.
using FeedFactory = std::function<absl::StatusOr<std::unique_ptr<Feed>>(const std::string& name, ConfigNode options)>;
using FeedFactories = std::map<std::string, FeedFactory>;  // by type: "file", "prometheus", ...

}  // namespace medley::sched
