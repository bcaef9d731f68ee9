#include <cmath>
#include <set>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/hardware.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

namespace pb = scheduler::v1;

const std::set<std::string> kPrecisions = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"};

absl::Status CheckFigure(const Hardware& hardware, const std::string& field, double value, const std::string& path) {
  if (!std::isfinite(value) || value <= 0) {
    return base::InvalidArgument("{}.{}: must be finite and greater than 0, is {}", path, field, value);
  }
  const auto source = hardware.sources.find(field);
  if (source != hardware.sources.end() && !source->second.empty()) return absl::OkStatus();
  return base::InvalidArgument("{}.sources: has no source for {}", path, field);
}

absl::Status Check(const Hardware& hardware, const std::string& path) {
  if (hardware.name.empty()) return base::InvalidArgument("{}.name: must not be empty", path);
  if (hardware.flops.count("fp32") == 0) return base::InvalidArgument("{}.flops.fp32: must be given", path);
  for (const auto& [precision, value] : hardware.flops) {
    if (kPrecisions.count(precision) == 0) {
      return base::InvalidArgument("{}.flops.{}: must be one of fp64, fp32, tf32, fp16, bf16, fp8, int8{}", path,
                                   precision, base::DidYouMean(precision, {kPrecisions.begin(), kPrecisions.end()}));
    }
    MEDLEY_RETURN_IF_ERROR(CheckFigure(hardware, "flops." + precision, value, path));
  }
  MEDLEY_RETURN_IF_ERROR(CheckFigure(hardware, "memoryBytes", hardware.memory_bytes, path));
  MEDLEY_RETURN_IF_ERROR(CheckFigure(hardware, "memoryBytesPerSecond", hardware.memory_bytes_per_second, path));
  MEDLEY_RETURN_IF_ERROR(CheckFigure(hardware, "networkBytesPerSecond", hardware.network_bytes_per_second, path));
  return CheckFigure(hardware, "launchSeconds", hardware.launch_seconds, path);
}

}  // namespace

void ToProto(const Hardware& hardware, pb::Hardware& out) {
  out.Clear();
  out.set_name(hardware.name);
  out.set_class_(hardware.cls == ResourceClass::kGpu ? "GPU" : "CPU");
  out.set_description(hardware.description);
  out.mutable_flops()->insert(hardware.flops.begin(), hardware.flops.end());
  out.set_memory_bytes(hardware.memory_bytes);
  out.set_memory_bytes_per_second(hardware.memory_bytes_per_second);
  out.set_network_bytes_per_second(hardware.network_bytes_per_second);
  out.set_launch_seconds(hardware.launch_seconds);
  out.mutable_sources()->insert(hardware.sources.begin(), hardware.sources.end());
}

absl::StatusOr<Hardware> FromProto(const pb::Hardware& in, std::string_view path) {
  Hardware out;
  out.name = in.name();
  if (in.class_() == "GPU") {
    out.cls = ResourceClass::kGpu;
  } else if (in.class_() != "CPU") {
    return base::InvalidArgument("{}.class: must be CPU or GPU, is '{}'", path, in.class_());
  }
  out.description = in.description();
  out.flops = {in.flops().begin(), in.flops().end()};
  out.memory_bytes = in.memory_bytes();
  out.memory_bytes_per_second = in.memory_bytes_per_second();
  out.network_bytes_per_second = in.network_bytes_per_second();
  out.launch_seconds = in.launch_seconds();
  out.sources = {in.sources().begin(), in.sources().end()};
  return out;
}

absl::Status Validate(const std::vector<Hardware>& hardware) {
  if (hardware.empty()) return base::InvalidArgument("hardware: must not be empty");
  std::set<std::string> names;
  for (size_t i = 0; i < hardware.size(); ++i) {
    const std::string path = fmt::format("hardware[{}]", i);
    MEDLEY_RETURN_IF_ERROR(Check(hardware[i], path));
    if (!names.insert(hardware[i].name).second) {
      return base::InvalidArgument("{}.name: '{}' appears twice", path, hardware[i].name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Hardware>> ParseHardware(std::string_view text) {
  pb::ListHardwareResponse message;
  MEDLEY_RETURN_IF_ERROR(ParseText(text, message));
  std::vector<Hardware> found;
  for (int i = 0; i < message.hardware_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(Hardware hardware, FromProto(message.hardware(i), fmt::format("hardware[{}]", i)));
    found.push_back(std::move(hardware));
  }
  MEDLEY_RETURN_IF_ERROR(Validate(found));
  return found;
}

}  // namespace medley::model
