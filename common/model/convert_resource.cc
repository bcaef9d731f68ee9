#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/offering.h"
#include "common/model/resource.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

namespace pb = scheduler::v1;

void OfferingToProto(const Offering& offering, pb::Offering& out) {
  out.set_provider(offering.provider);
  out.set_region(offering.region);
  out.set_zone(offering.zone);
  out.set_instance_type(offering.instance_type);
  out.set_capacity_type(offering.capacity_type);
  out.set_units_per_instance(offering.units_per_instance);
}

Offering OfferingFromProto(const pb::Offering& in) {
  return {in.provider(),      in.region(),        in.zone(),
          in.instance_type(), in.capacity_type(), in.units_per_instance() == 0 ? 1 : in.units_per_instance()};
}

}  // namespace

void ToProto(const Resource& resource, pb::Resource& out) {
  out.set_name(resource.name);
  out.set_class_(resource.cls == ResourceClass::kGpu ? "GPU" : "CPU");
  out.set_price_per_unit_hour(resource.price_per_unit_hour);
  out.set_limit(resource.limit);
  out.set_memory_bytes(resource.memory_bytes);
  if (resource.offering) OfferingToProto(*resource.offering, *out.mutable_offering());
  out.set_hardware(resource.hardware);
  out.set_processor_seconds_per_message(resource.processor_seconds_per_message);
  out.set_processor_seconds_per_byte(resource.processor_seconds_per_byte);
  out.set_processor_seconds_per_message_in_a_row(resource.processor_seconds_per_message_in_a_row);
  out.set_computed_bytes_per_message(resource.computed_bytes_per_message);
  out.set_cores(resource.cores);
  out.set_cpu_period_seconds(resource.cpu_period_seconds);
  if (resource.device_memory_bytes > 0) out.set_device_memory_bytes(resource.device_memory_bytes);
}

absl::StatusOr<Resource> FromProto(const pb::Resource& in, std::string_view path) {
  Resource resource;
  resource.name = in.name();
  if (in.class_() == "GPU") {
    resource.cls = ResourceClass::kGpu;
  } else if (in.class_() != "CPU" && !in.class_().empty()) {
    return base::InvalidArgument("{}.class: must be CPU or GPU, is '{}'", path, in.class_());
  }
  resource.price_per_unit_hour = in.price_per_unit_hour();
  resource.limit = in.limit();
  resource.memory_bytes = in.memory_bytes();
  if (in.has_offering()) resource.offering = OfferingFromProto(in.offering());
  resource.hardware = in.hardware();
  resource.processor_seconds_per_message = in.processor_seconds_per_message();
  resource.processor_seconds_per_byte = in.processor_seconds_per_byte();
  resource.processor_seconds_per_message_in_a_row = in.processor_seconds_per_message_in_a_row();
  resource.computed_bytes_per_message = in.computed_bytes_per_message();
  resource.cores = in.cores();
  resource.cpu_period_seconds = in.cpu_period_seconds();
  resource.device_memory_bytes = in.device_memory_bytes();
  return resource;
}

}  // namespace medley::model
