#include "operator/recommend/given_units.h"

#include <vector>

#include "common/base/secrets.h"
#include "operator/recommend/ask.h"
#include "operator/recommend/steps.h"

namespace medley::ops::recommend {
namespace {

std::vector<std::string> Signatures(const RecordKeys& keys, const std::string& uid, const GivenUnits& given) {
  return keys.Derive({"recommendation", uid, given.pool, std::to_string(given.nodes)});
}

}  // namespace

std::string SignGiven(const RecordKeys& keys, const std::string& uid, const GivenUnits& given) {
  return Signatures(keys, uid, given).front();
}

std::optional<GivenUnits> ReadGiven(const RecordKeys& keys, const kube::Object& job) {
  const kube::Json answer = kube::Json::parse(job.annotation(kChosenAnnotation), nullptr, false);
  if (!answer.is_object()) return std::nullopt;
  const kube::Json pool = answer.value("pool", kube::Json()), nodes = answer.value("nodes", kube::Json());
  if (!pool.is_string() || !nodes.is_number_integer() || nodes < 1 || nodes > kMostNodes) return std::nullopt;
  GivenUnits given{pool.get<std::string>(), nodes.get<int>()};
  const std::string by = job.annotation(kChosenByAnnotation);
  bool good = false;
  for (const std::string& signature : Signatures(keys, job.uid(), given))
    good = base::SameSecret(by, signature) || good;
  if (!good) return std::nullopt;
  return given;
}

}  // namespace medley::ops::recommend
