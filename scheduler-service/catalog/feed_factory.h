// Creates feeds from the configuration, by type. The program passes the factories in, so catalog/ depends on no feed
// except `file`.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/document/reader.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

// Reads the fields of its feed type from `options` and calls options.Finish(). The common fields (name, type, priority,
// period, ttl, onDemandTtl, authoritative) have been read before. Errors: InvalidArgument with the field's path.
using FeedFactory =
    std::function<absl::StatusOr<std::unique_ptr<Feed>>(const std::string& name, document::Reader options)>;
using FeedFactories = std::map<std::string, FeedFactory>;  // by type: "file", "prometheus", ...

}  // namespace medley::sched
