#include "scheduler-service/cost/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "common/base/status.h"
#include "common/model/pool_links.h"
#include "common/program/pipeline_waits.h"

namespace medley::sched {
namespace {

const model::LayerProfile* FindProfile(const model::Layer& layer, const std::string& type) {
  for (const model::LayerProfile& p : layer.profiles) {
    if (p.resource_type == type) return &p;
  }
  return nullptr;
}

constexpr double kMostCopySeconds = 1e100;  // keeps what depends on links finite

size_t At(int i) { return static_cast<size_t>(i); }

double Range(const std::vector<double>& sums, int first, int last) { return sums[At(last + 1)] - sums[At(first)]; }

// One unit sums nothing, and a ring of k moves 2 (k - 1) / k of what each of the two replicas does that the profiler
// measures; so the processor time s of that is 2 s - 2 s / k. No unit more makes a stage slower: where that would, the
// layer does not divide. Rows of servers move for any number of units.
StageTerms ComputeOf(const model::LayerProfile& p, bool rows) {
  const double moving = rows ? 0 : std::min(p.sync_processor_seconds, p.compute_seconds);
  StageTerms terms;
  terms.compute_parallel = std::max(0.0, p.compute_parallel * p.compute_seconds - 2 * moving);
  if (moving == 0) {
    terms.compute_serial = (1 - p.compute_parallel) * p.compute_seconds;
  } else {
    terms.compute_serial = std::max(0.0, p.compute_seconds - moving - terms.compute_parallel);
  }
  return terms;
}

// The real number k of units for which serial + parallel / k = `seconds`; infinite when no k is enough.
double RealUnits(double serial, double parallel, double seconds) {
  if (parallel <= 0) return serial <= seconds ? 0 : kInfinity;
  return seconds > serial ? parallel / (seconds - serial) : kInfinity;
}

// Both directions of each pair of types; empty if no link between them is known.
std::vector<Hop> HopsOf(const model::PlanRequest& request) {
  if (request.links.empty()) return {};
  std::vector<std::string> types;
  for (const model::Resource& resource : request.resources) types.push_back(resource.name);
  const auto links = model::PoolLinks(types, request.links);
  std::vector<Hop> hops(links.size());
  bool any = false;
  for (size_t i = 0; i < links.size(); ++i) {
    const size_t back = i % types.size() * types.size() + i / types.size();
    if (!links[i] || !links[back]) continue;
    hops[i] = {true, std::min(links[i]->latency_seconds + links[back]->latency_seconds, kMostCopySeconds),
               std::min(1 / links[i]->bytes_per_second + 1 / links[back]->bytes_per_second, kMostCopySeconds)};
    any = true;
  }
  return any ? hops : std::vector<Hop>();
}

// True if the units of a stage sum the layer's gradient.
bool IsSummed(const model::Layer& layer, const model::LayerProfile& p) {
  return layer.weight_bytes > 0 && !layer.sparse && p.server_seconds <= 0 && p.sync_seconds > 0;
}

// What an allreduce on the type takes whatever its size: as measured for the smallest number of units and, of these,
// the smallest size, by the fastest algorithm. No more than the synchronisation of any layer, which has it.
double GroupSeconds(const model::PlanRequest& request, const std::string& type) {
  const model::AllreduceMeasurement* least = nullptr;
  const auto rank = [](const model::AllreduceMeasurement& m) { return std::tuple(m.ranks, m.bytes, m.seconds); };
  for (const model::AllreduceMeasurement& one : request.allreduces) {
    const bool counts = one.resource_type == type && one.ranks >= 2 && one.seconds > 0;
    if (counts && (least == nullptr || rank(one) < rank(*least))) least = &one;
  }
  if (least == nullptr) return 0;
  double seconds = least->seconds;
  for (const model::Layer& layer : request.model.layers) {
    const model::LayerProfile* p = FindProfile(layer, type);
    if (p != nullptr && IsSummed(layer, *p)) seconds = std::min(seconds, p->sync_seconds);
  }
  return seconds;
}

}  // namespace

absl::StatusOr<Problem> Problem::Compile(model::PlanRequest request) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  for (size_t i = 0; i < request.resources.size(); ++i) {
    if (request.resources[i].price_per_unit_hour > 0) continue;
    return base::InvalidArgument("resources[{}].pricePerUnitHour: '{}' has no price", i, request.resources[i].name);
  }
  return Problem(std::move(request));
}

Problem::Problem(model::PlanRequest request) {
  const auto data = std::make_shared<Data>();
  data->request = std::move(request);
  data->layers = static_cast<int>(data->request.model.layers.size());
  if (!data->request.planner.asynchronous()) data->micro_batches = data->request.training.micro_batches;
  data->prefix.resize(data->request.resources.size());
  for (size_t t = 0; t < data->prefix.size(); ++t) {
    Fill(data->request, static_cast<int>(t), data->prefix[t]);
    if (data->request.resources[t].name == data->request.server_type) data->server_type = static_cast<int>(t);
  }
  data->hops = HopsOf(data->request);
  data_ = data;
}

Problem Problem::ForStages(int stages) const {
  Problem other = *this;
  const double micros = data_->micro_batches;
  other.fill_ = data_->micro_batches > 0 ? (micros + stages - 1) / micros : 1;
  other.waits_ = program::WaitsForCopies(request().planner.schedule, data_->micro_batches, stages);
  return other;
}

void Problem::Fill(const model::PlanRequest& request, int t, Prefix& prefix) {
  const model::Resource& resource = request.resources[At(t)];
  const size_t n = request.model.layers.size() + 1;
  for (auto* sums : {&prefix.compute_serial, &prefix.compute_parallel, &prefix.sync_serial, &prefix.sync_parallel,
                     &prefix.server_seconds, &prefix.server_weight, &prefix.local_weight, &prefix.transfer_serial,
                     &prefix.transfer_parallel, &prefix.end_parallel, &prefix.dense_weight}) {
    sums->assign(n, 0);
  }
  for (auto* sums : {&prefix.missing, &prefix.served, &prefix.summed}) sums->assign(n, 0);
  prefix.group_seconds = GroupSeconds(request, resource.name);
  constexpr double kDirections = 2;  // the activation, and its gradient
  prefix.end_messages = kDirections * std::max(1, request.training.micro_batches);
  prefix.message = model::MessageCostOf(resource);
  // Servers' processor time is that of one core; a unit that serves may have less than one, or several.
  const auto server = std::ranges::find(request.resources, request.server_type, &model::Resource::name);
  const double cores = server != request.resources.end() && server->cores > 0 ? server->cores : 1;
  const bool inside = request.rows == model::RowsPlace::kTrainers;
  const bool on_device = request.rows == model::RowsPlace::kDevice;
  const double own_cores = resource.cores > 0 ? resource.cores : 1;
  static const model::LayerProfile kNone;
  for (size_t i = 0; i + 1 < n; ++i) {
    const model::Layer& layer = request.model.layers[i];
    const model::LayerProfile* found = FindProfile(layer, resource.name);
    const model::LayerProfile& p = found != nullptr ? *found : kNone;
    const bool table = p.server_seconds > 0, served = table && !on_device;
    const bool measured = table && p.tables && resource.device_memory_bytes > 0;
    const auto add = [i](auto& sums, auto value) { sums[i + 1] = sums[i] + value; };
    add(prefix.missing, found == nullptr || (on_device && table && !measured) ? 1 : 0);
    if (measured) {
      prefix.tables.push_back(static_cast<int>(i));
      prefix.measured.push_back(&*p.tables);
    }
    add(prefix.served, served ? 1 : 0);
    StageTerms compute = ComputeOf(p, served || layer.sparse);
    if (inside) compute.compute_parallel += p.server_seconds / own_cores;
    if (on_device && table) compute = {.compute_serial = measured ? p.tables->seconds : 0};
    add(prefix.compute_serial, compute.compute_serial);
    add(prefix.compute_parallel, compute.compute_parallel);
    const bool summed = prefix.group_seconds > 0 && IsSummed(layer, p);
    const double sync = on_device && table ? 0 : p.sync_seconds - (summed ? prefix.group_seconds : 0);
    add(prefix.summed, summed ? 1 : 0);
    add(prefix.sync_serial, (1 - p.comm_parallel) * sync);
    add(prefix.sync_parallel, p.comm_parallel * sync);
    add(prefix.server_seconds, on_device ? 0.0 : p.server_seconds / cores);
    add(prefix.server_weight, served ? layer.weight_bytes : 0.0);
    add(prefix.dense_weight, layer.sparse ? 0.0 : layer.weight_bytes);
    add(prefix.local_weight, table && !inside ? 0.0 : layer.weight_bytes);
    const bool last = i + 2 == n;
    prefix.transfer_serial[i] = last ? 0 : (1 - p.comm_parallel) * p.transfer_seconds;
    prefix.transfer_parallel[i] = last ? 0 : p.comm_parallel * p.transfer_seconds;
    prefix.end_parallel[i] =
        kDirections * layer.output_bytes * request.training.profile_batch_size * resource.processor_seconds_per_byte;
  }
}

bool Problem::Profiled(int layer, int t) const {
  const Prefix& p = prefix(t);
  return p.missing[At(layer + 1)] == p.missing[At(layer)];
}

bool Problem::Allowed(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  if (p.missing[At(last + 1)] != p.missing[At(first)]) return false;
  if (rows_on_device()) {
    const model::Tables tables = TablesIn(first, last, t);
    if (tables.place == model::TablePlace::kHost || (tables.OnDevice() && min_units() > 1)) return false;
  }
  const double memory = type(t).memory_bytes;
  return memory <= 0 || LocalBytes(first, last, t) <= memory * (1 + kTolerance);
}

StageTerms Problem::Terms(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  StageTerms terms = WithoutCopies(first, last, t);
  terms.comm_serial += fill_ * p.transfer_serial[At(last)];
  terms.comm_parallel += fill_ * p.transfer_parallel[At(last)];
  return terms;
}

StageTerms Problem::LeastTerms(int first, int last, int t) const {
  return has_hops() ? WithoutCopies(first, last, t) : Terms(first, last, t);
}

StageTerms Problem::TermsBefore(StageTerms least, int first, const Hop& hop) const {
  if (!hop.known) return least;
  return WithCopy(least, first - 1, hop);
}

StageTerms Problem::TermsAfter(StageTerms least, int last, int t, const Hop& hop) const {
  if (hop.known) return WithCopy(least, last, hop);
  least.comm_serial += fill_ * prefix(t).transfer_serial[At(last)];
  least.comm_parallel += fill_ * prefix(t).transfer_parallel[At(last)];
  return least;
}

// The units divide the bytes that pass the boundary, and each message of theirs has the whole latency.
StageTerms Problem::WithCopy(StageTerms terms, int layer_before, const Hop& hop) const {
  const double bytes = request().model.layers[At(layer_before)].output_bytes * batch();
  const double seconds = std::min(bytes * hop.seconds_per_byte, kMostCopySeconds);
  terms.compute_serial += waits_ * std::max(1, request().training.micro_batches) * hop.latency;
  terms.compute_parallel += waits_ * seconds;
  terms.comm_parallel += fill_ * seconds;
  return terms;
}

PlacedTerms Problem::TermsIn(std::span<const StageChoice> stages, size_t i) const {
  const StageChoice& s = stages[i];
  PlacedTerms placed;
  if (!has_hops()) {
    placed.ends[0] = Terms(s.first, s.last, s.type);
    return placed;
  }
  const StageTerms least = LeastTerms(s.first, s.last, s.type);
  const bool before = i > 0, after = i + 1 < stages.size();
  placed.count = before && after ? 2 : 1;
  placed.ends[0] = before ? TermsBefore(least, s.first, HopBetween(stages[i - 1].type, s.type)) : least;
  if (after) placed.ends[before ? 1 : 0] = TermsAfter(least, s.last, s.type, HopBetween(s.type, stages[i + 1].type));
  return placed;
}

StageTerms Problem::WithoutCopies(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  StageTerms terms{Range(p.compute_serial, first, last), Range(p.compute_parallel, first, last),
                   Range(p.sync_serial, first, last), Range(p.sync_parallel, first, last)};
  if (p.summed[At(last + 1)] != p.summed[At(first)]) terms.comm_serial += p.group_seconds;
  const bool before = first > 0, after = last + 1 < layers();
  const double messages = p.end_messages * ((before ? 1 : 0) + (after ? 1 : 0));
  const double bytes = model::BytesBetweenMessages(Range(p.dense_weight, first, last),
                                                   std::max(1, request().training.micro_batches), messages);
  const double end_serial = p.end_messages * p.message.Seconds(bytes);
  if (before) {
    terms.compute_serial += end_serial;
    terms.compute_parallel += p.end_parallel[At(first - 1)];
  }
  if (after) {
    terms.compute_serial += end_serial;
    terms.compute_parallel += p.end_parallel[At(last)];
  }
  if (const model::Tables tables = TablesIn(first, last, t); tables.OnDevice()) {
    terms.compute_serial += MissSeconds(first, last, t, tables);
    terms.most_units = 1;
  }
  terms.compute_serial *= fill_;
  terms.compute_parallel *= fill_;
  return terms;
}

StageTerms Problem::ComputeTerms(int layer, int t) const {
  const Prefix& p = prefix(t);
  return {fill_ * Range(p.compute_serial, layer, layer), fill_ * Range(p.compute_parallel, layer, layer), 0, 0};
}

StageTerms Problem::LayerTerms(int layer, int t) const {
  StageTerms terms = ComputeTerms(layer, t);
  terms.comm_serial = Range(prefix(t).sync_serial, layer, layer);
  terms.comm_parallel = Range(prefix(t).sync_parallel, layer, layer);
  return terms;
}

bool Problem::PullsRows(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  return p.served[At(last + 1)] != p.served[At(first)];
}

ServerLoad Problem::Servers(int first, int last, int t) const {
  if (rows_in_trainers() || !PullsRows(first, last, t)) return {};
  const Prefix& p = prefix(t);
  return {Range(p.server_seconds, first, last), request().training.state_factor * Range(p.server_weight, first, last),
          true};
}

double Problem::LocalBytes(int first, int last, int t) const {
  return request().training.state_factor * Range(prefix(t).local_weight, first, last);
}

double Problem::Throughput(const StageTerms& terms, int given) const {
  const int units = std::min(given, terms.most_units);
  const double seconds = std::max(terms.ComputeSeconds(units), terms.CommSeconds(units));
  return seconds > 0 ? batch() / seconds : kInfinity;
}

double Problem::Throughput(const PlacedTerms& terms, int units) const {
  double least = kInfinity;
  for (const StageTerms& end : terms.all()) least = std::min(least, Throughput(end, units));
  return least;
}

int Problem::MinUnits(const PlacedTerms& terms, double x, int most) const {
  int units = 0;
  for (const StageTerms& end : terms.all()) {
    const int here = MinUnits(end, x, most);
    if (here == 0) return 0;
    units = std::max(units, here);
  }
  return units;
}

int Problem::MinUnits(const StageTerms& terms, double x, int most) const {
  const int least = min_units();
  if (most < least || Throughput(terms, most) < x) return 0;
  if (Throughput(terms, least) >= x) return least;
  // The result is in (low, high]. The closed formula is exact except for rounding, so probe its neighbours first.
  int low = least, high = most;
  const double seconds = batch() / x;
  const double guess = std::ceil(std::max(RealUnits(terms.compute_serial, terms.compute_parallel, seconds),
                                          RealUnits(terms.comm_serial, terms.comm_parallel, seconds)));
  for (const double probe : {guess, guess - 1, guess + 1}) {
    if (!(probe > low && probe < high)) continue;
    const int k = static_cast<int>(probe);
    (Throughput(terms, k) >= x ? high : low) = k;
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (Throughput(terms, middle) >= x ? high : low) = middle;
  }
  return high;
}

double Problem::UnitRateBound(const PlacedTerms& placed, double x) const {
  // k >= parallel / (B/x - serial), so k / x >= parallel / (B - x serial), which grows with x.
  const auto rate = [&](double serial, double parallel) {
    if (parallel <= 0) return 0.0;
    const double rest = batch() - x * serial;
    return rest > 0 ? parallel / rest : kInfinity;
  };
  double bound = 0;
  for (const StageTerms& terms : placed.all()) {
    bound = std::max(
        {bound, rate(terms.compute_serial, terms.compute_parallel), rate(terms.comm_serial, terms.comm_parallel)});
  }
  return bound * (1 - 1e-12);  // remains a lower bound despite rounding
}

int Problem::ServerUnits(const ServerLoad& load, double x) const {
  if (!load.any) return 0;
  const auto ceiling = [](double quotient) { return std::ceil(quotient * (1 - 1e-12)); };
  double units = std::max(1.0, ceiling(x * load.seconds / batch()));
  if (request().server_memory_bytes > 0) {
    units = std::max(units, ceiling(load.bytes / request().server_memory_bytes));
  }
  return units < 1e9 ? static_cast<int>(units) : 1'000'000'000;
}

double Problem::RequiredThroughput() const {
  const model::Constraints& c = request().constraints;
  double required = c.min_throughput * (1 - kTolerance);
  if (c.deadline_seconds > 0) {
    required = std::max(required, total_samples() / (c.deadline_seconds * (1 + kTolerance)));
  }
  return required;
}

std::vector<StageChoice> StagesOf(const std::vector<int>& schedule) {
  std::vector<StageChoice> stages;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const int layer = static_cast<int>(i);
    if (!stages.empty() && stages.back().type == schedule[i]) {
      stages.back().last = layer;
    } else {
      stages.push_back({layer, layer, schedule[i], 0});
    }
  }
  return stages;
}

}  // namespace medley::sched
