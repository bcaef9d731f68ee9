#include "scheduler-service/cost/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/status.h"

namespace medley::sched {
namespace {

const model::LayerProfile* FindProfile(const model::Layer& layer, const std::string& type) {
  for (const model::LayerProfile& p : layer.profiles) {
    if (p.resource_type == type) return &p;
  }
  return nullptr;
}

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
  data_ = data;
}

Problem Problem::ForStages(int stages) const {
  Problem other = *this;
  const double micros = data_->micro_batches;
  other.fill_ = fills() ? (micros + stages - 1) / micros : 1;
  return other;
}

void Problem::Fill(const model::PlanRequest& request, int t, Prefix& prefix) {
  const model::Resource& resource = request.resources[At(t)];
  const size_t n = request.model.layers.size() + 1;
  for (auto* sums : {&prefix.compute_serial, &prefix.compute_parallel, &prefix.sync_serial, &prefix.sync_parallel,
                     &prefix.server_seconds, &prefix.server_weight, &prefix.local_weight, &prefix.transfer_serial,
                     &prefix.transfer_parallel, &prefix.end_parallel}) {
    sums->assign(n, 0);
  }
  prefix.missing.assign(n, 0);
  prefix.served.assign(n, 0);
  constexpr double kDirections = 2;  // the activation, and its gradient
  prefix.end_serial =
      kDirections * std::max(1, request.training.micro_batches) * resource.processor_seconds_per_message;
  // Servers' processor time is that of one core; a unit that serves may have less than one, or several.
  const auto server = std::ranges::find(request.resources, request.server_type, &model::Resource::name);
  const double cores = server != request.resources.end() && server->cores > 0 ? server->cores : 1;
  static const model::LayerProfile kNone;
  for (size_t i = 0; i + 1 < n; ++i) {
    const model::Layer& layer = request.model.layers[i];
    const model::LayerProfile* found = FindProfile(layer, resource.name);
    const model::LayerProfile& p = found != nullptr ? *found : kNone;
    const bool served = p.server_seconds > 0;
    const auto add = [i](auto& sums, auto value) { sums[i + 1] = sums[i] + value; };
    add(prefix.missing, found == nullptr ? 1 : 0);
    add(prefix.served, served ? 1 : 0);
    const StageTerms compute = ComputeOf(p, served || layer.sparse);
    add(prefix.compute_serial, compute.compute_serial);
    add(prefix.compute_parallel, compute.compute_parallel);
    add(prefix.sync_serial, (1 - p.comm_parallel) * p.sync_seconds);
    add(prefix.sync_parallel, p.comm_parallel * p.sync_seconds);
    add(prefix.server_seconds, p.server_seconds / cores);
    add(prefix.server_weight, served ? layer.weight_bytes : 0.0);
    add(prefix.local_weight, served ? 0.0 : layer.weight_bytes);
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
  const double memory = type(t).memory_bytes;
  return memory <= 0 || LocalBytes(first, last, t) <= memory * (1 + kTolerance);
}

StageTerms Problem::Terms(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  StageTerms terms{Range(p.compute_serial, first, last), Range(p.compute_parallel, first, last),
                   Range(p.sync_serial, first, last) + fill_ * p.transfer_serial[At(last)],
                   Range(p.sync_parallel, first, last) + fill_ * p.transfer_parallel[At(last)]};
  if (first > 0) {
    terms.compute_serial += p.end_serial;
    terms.compute_parallel += p.end_parallel[At(first - 1)];
  }
  if (last + 1 < layers()) {
    terms.compute_serial += p.end_serial;
    terms.compute_parallel += p.end_parallel[At(last)];
  }
  terms.compute_serial *= fill_;
  terms.compute_parallel *= fill_;
  return terms;
}

StageTerms Problem::ComputeTerms(int layer, int t) const {
  const Prefix& p = prefix(t);
  return {fill_ * Range(p.compute_serial, layer, layer), fill_ * Range(p.compute_parallel, layer, layer), 0, 0};
}

ServerLoad Problem::Servers(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  if (p.served[At(last + 1)] == p.served[At(first)]) return {};
  return {Range(p.server_seconds, first, last), request().training.state_factor * Range(p.server_weight, first, last),
          true};
}

double Problem::LocalBytes(int first, int last, int t) const {
  return request().training.state_factor * Range(prefix(t).local_weight, first, last);
}

double Problem::Throughput(const StageTerms& terms, int units) const {
  const double seconds = std::max(terms.ComputeSeconds(units), terms.CommSeconds(units));
  return seconds > 0 ? batch() / seconds : kInfinity;
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

double Problem::UnitRateBound(const StageTerms& terms, double x) const {
  // k >= parallel / (B/x - serial), so k / x >= parallel / (B - x serial), which grows with x.
  const auto rate = [&](double serial, double parallel) {
    if (parallel <= 0) return 0.0;
    const double rest = batch() - x * serial;
    return rest > 0 ? parallel / rest : kInfinity;
  };
  const double bound =
      std::max(rate(terms.compute_serial, terms.compute_parallel), rate(terms.comm_serial, terms.comm_parallel));
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
