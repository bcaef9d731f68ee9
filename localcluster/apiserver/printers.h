// Table columns of the built-in kinds, as the real server prints them. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

struct PrinterColumn {
  std::string name;
  std::string type;
  int priority = 0;  // above 0: shown only with -o wide
  std::function<kube::Json(const kube::Json& object)> cell;
};

PrinterColumn NameColumn();
// Kinds without columns of their own have Name and Age.
std::vector<PrinterColumn> BuiltinColumns(const ResourceInfo& info, base::WallTime now);

// The time since an RFC 3339 time, such as "5m"; "<unknown>" if `time` is not valid.
std::string Age(const std::string& time, base::WallTime now);

}  // namespace medley::localcluster::apiserver
