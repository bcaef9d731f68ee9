// Places of embedding tables to protos and back, for the other conversions.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "common/base/status.h"
#include "common/model/table_place.h"
#include "medley/plan/v1/plan.pb.h"

namespace medley::model {

inline plan::v1::TablePlace ToProto(TablePlace place) {
  switch (place) {
    case TablePlace::kUnspecified:
      break;
    case TablePlace::kDevice:
      return plan::v1::TABLE_PLACE_DEVICE;
    case TablePlace::kCache:
      return plan::v1::TABLE_PLACE_CACHE;
    case TablePlace::kHost:
      return plan::v1::TABLE_PLACE_HOST;
  }
  return plan::v1::TABLE_PLACE_UNSPECIFIED;
}

inline absl::StatusOr<TablePlace> FromProto(plan::v1::TablePlace place, std::string_view path) {
  switch (place) {
    case plan::v1::TABLE_PLACE_UNSPECIFIED:
      return TablePlace::kUnspecified;
    case plan::v1::TABLE_PLACE_DEVICE:
      return TablePlace::kDevice;
    case plan::v1::TABLE_PLACE_CACHE:
      return TablePlace::kCache;
    case plan::v1::TABLE_PLACE_HOST:
      return TablePlace::kHost;
    default:
      return base::InvalidArgument("{}.place: unknown value {}", path, static_cast<int>(place));
  }
}

// Only where the place is said: the message is unset elsewhere.
template <typename Message>
void TablesToProto(const Tables& tables, Message& out) {
  if (tables.place == TablePlace::kUnspecified) return;
  plan::v1::Tables& to = *out.mutable_tables();
  to.set_place(ToProto(tables.place));
  to.set_cache_bytes(tables.cache_bytes);
  to.set_hits(tables.hits);
}

inline absl::StatusOr<Tables> FromProto(const plan::v1::Tables& in, std::string_view path) {
  Tables tables{.place = TablePlace::kUnspecified, .cache_bytes = in.cache_bytes(), .hits = in.hits()};
  MEDLEY_ASSIGN_OR_RETURN(tables.place, FromProto(in.place(), path));
  return tables;
}

}  // namespace medley::model
