// Generates the OpenAPI 3.1 document of the service: schemas and descriptions come from the protobuf descriptors and
// their comments, paths from the table of routes. Pure.
#pragma once

#include <string>
#include <vector>

#include "scheduler-service/serve_rest/routes.h"

namespace medley::sched {

std::string MakeOpenApi(const std::vector<Route>& routes);

}  // namespace medley::sched
