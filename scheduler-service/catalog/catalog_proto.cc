#include "scheduler-service/catalog/catalog_proto.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

void SetTime(base::WallTime time, google::protobuf::Timestamp& out) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  out.set_seconds(micros / 1'000'000);
  out.set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
}

base::WallTime GetTime(const google::protobuf::Timestamp& in) {
  const auto since = std::chrono::seconds(in.seconds()) + std::chrono::nanoseconds(in.nanos());
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(since));
}

void SetTime(const std::string& text, google::protobuf::Timestamp& out) {
  // The text comes from a Timestamp or a clock, so it always parses.
  if (!model::TimeToProto(text, out).ok()) out.Clear();
}

void OfferingToProto(const model::Offering& offering, pb::Offering& out) {
  out.set_provider(offering.provider);
  out.set_region(offering.region);
  out.set_zone(offering.zone);
  out.set_instance_type(offering.instance_type);
  out.set_capacity_type(offering.capacity_type);
  out.set_units_per_instance(offering.units_per_instance);
}

model::Offering OfferingFromProto(const pb::Offering& in) {
  return {in.provider(),      in.region(),        in.zone(),
          in.instance_type(), in.capacity_type(), in.units_per_instance() > 0 ? in.units_per_instance() : 1};
}

void EntryToProto(const CatalogEntry& entry, pb::CatalogEntry& to) {
  if (entry.offering) OfferingToProto(*entry.offering, *to.mutable_offering());
  to.set_resource_type(entry.resource_type);
  to.set_price_per_instance_hour(entry.price_per_instance_hour);
  to.set_price_per_unit_hour(entry.UnitPrice());
  to.set_source(entry.source);
  if (entry.observed_at != base::WallTime()) SetTime(entry.observed_at, *to.mutable_observed_at());
  to.set_available(entry.available);
  to.set_class_(entry.cls);
  to.set_limit(entry.limit);
  to.set_memory_bytes(entry.memory_bytes);
  to.set_quality(std::string(ToString(entry.quality)));
  to.set_vcpus(entry.shape.vcpus);
  to.set_instance_memory_bytes(entry.shape.memory_bytes);
  to.set_gpu_model(entry.shape.gpu_model);
  to.set_gpus(entry.shape.gpus * entry.shape.gpu_fraction);
  to.set_hardware(entry.hardware);
}

}  // namespace

void CatalogToProto(const Catalog& catalog, pb::Catalog& out) {
  out.Clear();
  out.set_revision(catalog.revision);
  if (!catalog.price_time.empty()) SetTime(catalog.price_time, *out.mutable_price_time());
  for (const CatalogEntry& entry : catalog.entries) EntryToProto(entry, *out.add_entries());
}

void PricesToProto(const std::vector<PriceSeries>& series, int64_t revision, base::WallTime now,
                   pb::ListPricesResponse& out) {
  out.Clear();
  out.set_catalog_revision(revision);
  for (const PriceSeries& from : series) {
    pb::PriceSeries& to = *out.add_series();
    EntryToProto(from.current, *to.mutable_current());
    to.set_relative_change(from.relative_change);
    if (from.current.observed_at != base::WallTime()) {
      to.set_age_seconds(std::max(0.0, base::ToSeconds(now - from.current.observed_at)));
    }
    for (const PricePoint& point : from.points) {
      pb::PricePoint& at = *to.add_points();
      SetTime(point.time, *at.mutable_time());
      at.set_price_per_unit_hour(point.price_per_unit_hour);
      at.set_price_per_instance_hour(point.price_per_instance_hour);
      at.set_catalog_revision(point.revision);
      at.set_quality(std::string(ToString(point.quality)));
    }
  }
}

std::vector<CatalogEntry> EntriesFromProto(const pb::Catalog& in) {
  std::vector<CatalogEntry> entries;
  for (const pb::CatalogEntry& from : in.entries()) {
    CatalogEntry entry;
    if (from.has_offering()) entry.offering = OfferingFromProto(from.offering());
    entry.resource_type = from.resource_type();
    entry.price_per_instance_hour = from.price_per_instance_hour();
    entry.price_per_unit_hour = from.price_per_unit_hour();
    entry.source = from.source();
    if (from.has_observed_at()) entry.observed_at = GetTime(from.observed_at());
    entry.available = !from.has_available() || from.available();
    entry.cls = from.class_();
    entry.limit = from.limit();
    entry.memory_bytes = from.memory_bytes();
    entry.quality = ParseQuality(from.quality()).value_or(Quality::kStatic);
    entry.shape = {from.vcpus(), from.instance_memory_bytes(), from.gpu_model(), from.gpus(), 1};
    entry.hardware = from.hardware();
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<CatalogEntry>> EntriesFromText(std::string_view text) {
  pb::Catalog message;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
  return EntriesFromProto(message);
}

}  // namespace medley::sched
