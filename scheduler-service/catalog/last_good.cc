#include "scheduler-service/catalog/last_good.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

using nlohmann::json;

constexpr char kMagic[] = "medley-prices 1 ";
constexpr int64_t kMaxSavedBytes = int64_t{256} << 20;

int64_t Micros(base::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
base::WallTime Time(const json& micros) {
  return base::WallTime(
      std::chrono::duration_cast<base::WallTime::duration>(std::chrono::microseconds(micros.get<int64_t>())));
}

json OfferingToJson(const model::Offering& o) {
  return json::array({o.provider, o.region, o.zone, o.instance_type, o.capacity_type, o.units_per_instance});
}
model::Offering OfferingFromJson(const json& j) {
  return {j.at(0), j.at(1), j.at(2), j.at(3), j.at(4), j.at(5).get<double>()};
}

json EntryToJson(const CatalogEntry& e) {
  json out = {{"instance", e.price_per_instance_hour},
              {"unit", e.price_per_unit_hour},
              {"source", e.source},
              {"observed", Micros(e.observed_at)},
              {"effective", Micros(e.effective_at)},
              {"quality", std::string(ToString(e.quality))},
              {"available", e.available},
              {"until", Micros(e.unavailable_until)},
              {"shape", {e.shape.vcpus, e.shape.memory_bytes, e.shape.gpu_model, e.shape.gpus, e.shape.gpu_fraction}},
              {"type", {e.resource_type, e.cls, e.limit, e.memory_bytes, e.hardware}}};
  if (e.offering) out["offering"] = OfferingToJson(*e.offering);
  return out;
}

// Throws json::exception for a missing field or a wrong type; the caller catches it.
CatalogEntry EntryFromJson(const json& j) {
  CatalogEntry e;
  if (j.contains("offering")) e.offering = OfferingFromJson(j.at("offering"));
  e.price_per_instance_hour = j.at("instance");
  e.price_per_unit_hour = j.at("unit");
  e.source = j.at("source");
  e.observed_at = Time(j.at("observed"));
  e.effective_at = Time(j.at("effective"));
  e.quality = ParseQuality(j.at("quality").get<std::string>()).value_or(Quality::kLive);
  e.available = j.at("available");
  e.unavailable_until = Time(j.at("until"));
  const json& s = j.at("shape");
  e.shape = {s.at(0).get<double>(), s.at(1).get<double>(), s.at(2), s.at(3).get<double>(), s.at(4).get<double>()};
  const json& t = j.at("type");
  e.resource_type = t.at(0);
  e.cls = t.at(1);
  e.limit = t.at(2);
  e.memory_bytes = t.at(3);
  e.hardware = t.at(4);
  return e;
}

LastGood FromJson(const json& j) {
  LastGood last;
  last.revision = j.at("revision");
  for (const auto& [name, source] : j.at("sources").items()) {
    AcceptedPrices& prices = last.sources[name];
    prices.complete_size = source.at("completeSize");
    prices.complete_at = Time(source.at("completeAt"));
    prices.configuration = source.value("configuration", "");
    for (const json& item : source.at("known")) {
      CatalogEntry entry = EntryFromJson(item);
      prices.known[KeyOf(entry)] = std::move(entry);
    }
  }
  for (const json& item : j.at("published")) {
    CatalogEntry entry = EntryFromJson(item.at(1));
    last.published[KeyOf(entry)] = {entry, Time(item.at(0))};
  }
  return last;
}

}  // namespace

LastGood CaptureLastGood(const PriceBook& book, int64_t revision) {
  LastGood last;
  last.revision = revision;
  for (size_t i = 0; i < book.sources().size(); ++i) {
    AcceptedPrices prices = book.accepted(i);
    prices.unconfirmed.clear();
    prices.answered.clear();
    prices.configuration = book.sources()[i].configuration;
    last.sources[book.sources()[i].name] = std::move(prices);
  }
  last.published = book.published();
  return last;
}

void RestoreLastGood(LastGood last, PriceBook& book) {
  for (size_t i = 0; i < book.sources().size(); ++i) {
    const auto found = last.sources.find(book.sources()[i].name);
    if (found == last.sources.end()) continue;
    if (found->second.configuration != book.sources()[i].configuration) found->second.complete_size = 0;
    book.Restore(i, std::move(found->second));
  }
  book.RestorePublished(std::move(last.published));
}

std::string EncodeLastGood(const LastGood& last) {
  json j = {{"revision", last.revision}, {"sources", json::object()}, {"published", json::array()}};
  for (const auto& [name, prices] : last.sources) {
    json known = json::array();
    for (const auto& [key, entry] : prices.known) known.push_back(EntryToJson(entry));
    j["sources"][name] = {{"completeSize", prices.complete_size},
                          {"completeAt", Micros(prices.complete_at)},
                          {"configuration", prices.configuration},
                          {"known", std::move(known)}};
  }
  for (const auto& [key, published] : last.published) {
    j["published"].push_back(json::array({Micros(published.at), EntryToJson(published.entry)}));
  }
  const std::string body = j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return kMagic + base::HashHex(body) + "\n" + body;
}

absl::StatusOr<LastGood> DecodeLastGood(std::string_view text) {
  const std::string_view magic(kMagic);
  const size_t end = text.find('\n');
  if (text.substr(0, magic.size()) != magic || end == std::string_view::npos) {
    return base::DataLoss("not a last-good price file");
  }
  const std::string_view body = text.substr(end + 1);
  if (text.substr(magic.size(), end - magic.size()) != base::HashHex(body)) return base::DataLoss("checksum mismatch");
  try {
    return FromJson(json::parse(body));
  } catch (const json::exception& error) {
    return base::DataLoss("{}", error.what());
  }
}

absl::Status SaveLastGood(const std::filesystem::path& path, const LastGood& last) {
  return base::WriteFileAtomic(path, EncodeLastGood(last));
}

absl::StatusOr<LastGood> LoadLastGood(const std::filesystem::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxSavedBytes));
  return DecodeLastGood(text);
}

}  // namespace medley::sched
