#include "scheduler-service/catalog/config.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include <set>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "scheduler-service/catalog/file_feed.h"

namespace medley::sched {
namespace {

using document::Reader;

constexpr int64_t kMaxConfigBytes = int64_t{4} << 20;

double Positive(const Reader& node, const std::string& field, double otherwise) {
  const double value = node.Number(field, otherwise);
  if (!(value > 0)) node.Fail(field, fmt::format("must be greater than 0, is {}", value));
  return value;
}

double NotNegative(const Reader& node, const std::string& field, double otherwise) {
  const double value = node.Number(field, otherwise);
  if (!(value >= 0)) node.Fail(field, fmt::format("must not be negative, is {}", value));
  return value;
}

// Bytes as a Kubernetes quantity ("16Gi") or a plain number.
double Bytes(const Reader& node, const std::string& field) {
  const std::string text = node.String(field, "");
  if (text.empty()) return 0;
  const auto bytes = base::ParseBytes(text);
  if (!bytes.ok()) node.Fail(field, base::Message(bytes.status()));
  return bytes.ok() ? static_cast<double>(*bytes) : 0;
}

std::string OneOf(const Reader& node, const std::string& field, const std::string& otherwise,
                  const std::vector<std::string>& values) {
  std::string value = node.String(field, otherwise);
  for (const std::string& known : values) {
    if (value == known) return value;
  }
  node.Fail(field, fmt::format("must be one of {}, is '{}'", fmt::join(values, ", "), value));
  return otherwise;
}

absl::Status ReadHysteresis(const Reader& root, HysteresisOptions& out) {
  const Reader node = root.Child("hysteresis");
  out.relative = NotNegative(node, "relative", out.relative);
  out.absolute = NotNegative(node, "absolute", out.absolute);
  out.at_once = NotNegative(node, "atOnce", out.at_once);
  out.min_interval = node.Duration("minInterval", out.min_interval);
  return node.Finish();
}

absl::Status ReadAcceptance(const Reader& root, AcceptanceOptions& out) {
  const Reader node = root.Child("acceptance");
  out.max_step = node.Number("maxStep", out.max_step);
  if (!(out.max_step > 1)) node.Fail("maxStep", "must be greater than 1");
  out.min_share_of_last = NotNegative(node, "minShareOfLast", out.min_share_of_last);
  if (out.min_share_of_last > 1) node.Fail("minShareOfLast", "must be at most 1");
  out.max_spot_of_on_demand = Positive(node, "maxSpotOfOnDemand", out.max_spot_of_on_demand);
  out.forget_after = node.Duration("forgetAfter", out.forget_after);
  return node.Finish();
}

absl::Status ReadSelector(const Reader& parent, Selector& out) {
  parent.Require({"match"});
  const Reader node = parent.Child("match");
  out.provider = node.Strings("provider", {});
  out.region = node.Strings("region", {});
  out.zone = node.Strings("zone", {});
  out.instance_type = node.Strings("instanceType", {});
  out.capacity_type = node.Strings("capacityType", {});
  out.gpu_model = node.Strings("gpuModel", {});
  out.source = node.Strings("source", {});
  out.resource_type = node.Strings("resourceType", {});
  return node.Finish();
}

absl::Status ReadMachine(const Reader& node, MachineShapes& out) {
  Shape shape;
  const std::string provider = node.RequiredString("provider");
  const std::string type = node.RequiredString("instanceType");
  shape.vcpus = NotNegative(node, "vcpus", 0);
  shape.memory_bytes = Bytes(node, "memory");
  shape.gpu_model = node.String("gpuModel", "");
  shape.gpus = NotNegative(node, "gpus", 0);
  shape.gpu_fraction = Positive(node, "gpuFraction", 1);
  if (shape.gpu_fraction > 1) node.Fail("gpuFraction", "must be at most 1");
  if (!out.try_emplace({provider, type}, shape).second) node.Fail("instanceType", "appears twice");
  return node.Finish();
}

absl::Status ReadOverride(const Reader& node, Override& out) {
  MEDLEY_RETURN_IF_ERROR(ReadSelector(node, out.match));
  node.Read("weight", out.weight);
  out.price = NotNegative(node, "price", 0);
  const std::string adjustment = node.String("priceAdjustment", "");
  if (adjustment.empty() == (out.price == 0)) {
    node.Fail("price", "must be greater than 0, unless priceAdjustment is set; set exactly one of them");
  } else if (!adjustment.empty() && !ParseAdjustment(adjustment, out)) {
    node.Fail("priceAdjustment", fmt::format("must have the form \"-10%\" or \"+0.05\", is '{}'", adjustment));
  }
  return node.Finish();
}

absl::Status ReadResource(const Reader& node, ResourceRule& out) {
  MEDLEY_RETURN_IF_ERROR(ReadSelector(node, out.match));
  out.name = node.RequiredString("name");
  out.cls = OneOf(node, "class", "GPU", {"CPU", "GPU"});
  const std::string unit = OneOf(node, "unit", out.cls == "GPU" ? "gpu" : "core", {"gpu", "core", "instance"});
  out.unit = unit == "gpu" ? UnitKind::kGpu : unit == "core" ? UnitKind::kCore : UnitKind::kInstance;
  const std::string pricing = OneOf(node, "pricing", "whole", {"whole", "split"});
  out.pricing = pricing == "whole" ? UnitPricing::kWhole : UnitPricing::kSplit;
  node.Read("limit", out.limit);
  if (out.limit < 0) node.Fail("limit", "must not be negative");
  out.memory_bytes = Bytes(node, "memory");
  out.hardware = node.String("hardware", "");
  out.units_per_instance = NotNegative(node, "unitsPerInstance", 0);
  return node.Finish();
}

// Reads the fields that all feeds have in common; the feed's factory reads the others.
absl::Status ReadFeed(Reader node, const FeedFactories& factories, std::set<std::string>& names, ConfiguredFeed& out) {
  out.configuration = base::HashHex(node.tree().dump());
  const std::string name = node.RequiredString("name");
  const std::string type = node.RequiredString("type");
  if (!name.empty() && !names.insert(name).second) node.Fail("name", fmt::format("'{}' appears twice", name));
  node.Read("priority", out.priority);
  for (const auto& [field, value] :
       {std::pair{"period", &out.period}, {"ttl", &out.ttl}, {"onDemandTtl", &out.on_demand_ttl}}) {
    if (node.Has(field)) *value = node.Duration(field, base::nanoseconds(0));
  }
  if (out.period && *out.period < std::chrono::milliseconds(10)) node.Fail("period", "must be at least 10ms");
  if (node.Has("authoritative")) out.authoritative = node.Bool("authoritative", false);
  const auto factory = factories.find(type);
  if (!type.empty() && factory == factories.end()) {
    std::vector<std::string> known;
    for (const auto& [each, unused] : factories) known.push_back(each);
    node.Fail("type", fmt::format("must be one of {}, is '{}'", fmt::join(known, ", "), type));
  }
  if (type.empty() || factory == factories.end()) return node.Finish();
  MEDLEY_ASSIGN_OR_RETURN(out.feed, factory->second(name, std::move(node)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CatalogConfig> ParseCatalogConfig(std::string_view text, FeedFactories factories) {
  factories.try_emplace("file", MakeFileFeedFrom);
  MEDLEY_ASSIGN_OR_RETURN(const Reader root, Reader::Parse(text));
  CatalogConfig config;
  BookOptions& book = config.poller.book;
  config.poller.last_good = root.String("lastGood", "");
  config.poller.tick = root.Duration("tick", config.poller.tick);
  if (config.poller.tick < std::chrono::milliseconds(10)) root.Fail("tick", "must be at least 10ms");
  MEDLEY_RETURN_IF_ERROR(ReadHysteresis(root, book.hysteresis));
  MEDLEY_RETURN_IF_ERROR(ReadAcceptance(root, book.acceptance));
  std::set<std::string> names;
  for (const Reader& node : root.List("feeds")) {
    MEDLEY_RETURN_IF_ERROR(ReadFeed(node, factories, names, config.feeds.emplace_back()));
  }
  for (const Reader& node : root.List("machines")) MEDLEY_RETURN_IF_ERROR(ReadMachine(node, book.machines));
  for (const Reader& node : root.List("overrides")) {
    MEDLEY_RETURN_IF_ERROR(ReadOverride(node, book.overrides.emplace_back()));
  }
  std::set<std::string> types;
  for (const Reader& node : root.List("resources")) {
    MEDLEY_RETURN_IF_ERROR(ReadResource(node, book.resources.emplace_back()));
    if (!types.insert(book.resources.back().name).second) {
      return base::InvalidArgument("{}.name: '{}' appears twice", node.path(), book.resources.back().name);
    }
  }
  MEDLEY_RETURN_IF_ERROR(root.Finish());
  if (config.feeds.empty()) return base::InvalidArgument("feeds: must not be empty");
  return config;
}

absl::StatusOr<CatalogConfig> LoadCatalogConfig(const std::filesystem::path& path, const FeedFactories& factories) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxConfigBytes));
  auto config = ParseCatalogConfig(text, factories);
  if (!config.ok()) return base::Annotate(config.status(), path.string());
  return config;
}

CatalogConfig OneFileConfig(const std::filesystem::path& path, base::nanoseconds period) {
  CatalogConfig config;
  ConfiguredFeed& feed = config.feeds.emplace_back();
  feed.feed = MakeFileFeed("file", path, period);
  return config;
}

}  // namespace medley::sched
