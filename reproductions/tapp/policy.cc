#include "reproductions/tapp/policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/rng.h"
#include "reproductions/torch_net/parameters.h"

namespace medley::reproductions::tapp {
namespace {

using at::Tensor;
using torch_net::Dense;
using torch_net::Parameters;
using torch_net::ToIndex;
using torch_net::ToTensor;

// A recurrent layer: long short-term memory. Rows are draws.
struct Cell {
  Tensor from_input, from_hidden, bias;
  struct State {
    Tensor hidden, cell;
  };
  State operator()(const Tensor& x, const State& before) const {
    const Tensor gates = at::linear(x, from_input, bias) + at::linear(before.hidden, from_hidden);
    const auto parts = at::chunk(gates, 4, 1);
    const Tensor cell = at::sigmoid(parts[1]) * before.cell + at::sigmoid(parts[0]) * at::tanh(parts[2]);
    return {at::sigmoid(parts[3]) * at::tanh(cell), cell};
  }
};

Cell MakeCell(Parameters& parameters, int64_t inputs, int64_t units) {
  const Tensor from_input = parameters.Matrix(4 * units, inputs);
  return {from_input, parameters.Matrix(4 * units, units), parameters.Zeros(4 * units)};
}

}  // namespace

class TappPolicy::Networks {
 public:
  Networks(std::vector<LayerFeatures> layers, int devices, const TappSettings& settings, uint64_t seed)
      : settings_(settings), layers_(std::move(layers)), devices_(devices), parameters_(base::Mix64(seed)), rng_(seed) {
    at::set_num_threads(1);  // the matrices are small
    const auto count = static_cast<int64_t>(layers_.size());
    std::vector<float> kinds, rest;
    for (const LayerFeatures& layer : layers_) {
      for (int k = 0; k < kLayerKinds; ++k) kinds.push_back(layer.kind == k ? 1.0F : 0.0F);
      rest.insert(rest.end(), layer.metrics.begin(), layer.metrics.end());
      rest.insert(rest.end(), layer.next.begin(), layer.next.end());
    }
    kinds_ = ToTensor(kinds, {count, kLayerKinds});
    rest_ = ToTensor(rest, {count, kMetricWidth + kNextWidth});
    groups_ = settings.partition == TappSettings::Partition::kGroups ? std::max(settings.groups, 1)
                                                                     : static_cast<int>(layers_.size());
    const int64_t outputs = settings.partition == TappSettings::Partition::kGroups ? groups_ : 2;
    names_ = parameters_.Matrix(kLayerKinds, kNameWidth);
    to_hidden_ = parameters_.MakeDense(kLayerWidth, settings.partition_units);
    to_group_ = parameters_.MakeDense(settings.partition_units, outputs);
    if (settings.partition == TappSettings::Partition::kCuts) {
      // At first there are about as many groups as half of the devices: of more, most would have none.
      const double cuts = std::max(1.0, devices_ / 2.0),
                   places = std::max<double>(cuts + 1, static_cast<double>(count));
      at::NoGradGuard guard;
      to_group_.bias[1] = std::atanh(std::max(-0.9, std::log(cuts / (places - cuts)) / settings.tanh_constant));
    }
    encoder_low_ = MakeCell(parameters_, kNameWidth + kMetricWidth + groups_, settings.units);
    encoder_high_ = MakeCell(parameters_, settings.units, settings.units);
    decoder_ = MakeCell(parameters_, settings.units + devices_ + 2, settings.units);
    to_device_ = parameters_.MakeDense(2 * static_cast<int64_t>(settings.units), devices_ + 1);
  }

  // `likeliest`: no chance, and nothing is kept to learn from.
  std::vector<TappDraw> Run(int count, bool likeliest) {
    const at::AutoGradMode mode(!likeliest);
    likeliest_ = likeliest;
    log_probability_ = at::zeros({count}, at::kFloat);
    entropy_ = at::zeros({count}, at::kFloat);
    choices_ = at::zeros({count}, at::kFloat);
    std::vector<TappDraw> draws(static_cast<size_t>(count));
    const Tensor names = at::matmul(kinds_, names_);
    Partition(at::cat({names, rest_}, 1), draws);
    Allocate(names, draws);
    return draws;
  }

  void Learn(const std::vector<double>& advantages) {
    if (!log_probability_.defined() || log_probability_.size(0) != std::ssize(advantages)) return;
    const std::vector<float> values(advantages.begin(), advantages.end());
    const Tensor weights = ToTensor(values, {std::ssize(values)});
    const Tensor entropy = entropy_ / at::clamp_min(choices_, 1);
    parameters_.AddGradient(-at::mean(weights * log_probability_ + settings_.entropy * entropy));
    parameters_.Step(settings_.learning_rate, settings_.clip);
    log_probability_ = Tensor();
  }

 private:
  // Draws one of the entries of a row of logarithms of probabilities.
  int64_t Choose(const float* log, int64_t count) {
    if (likeliest_) return std::max_element(log, log + count) - log;
    double left = rng_.Uniform();
    int64_t chosen = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (log[i] < kNeverLog) continue;
      chosen = i;
      left -= std::exp(log[i]);
      if (left < 0) break;
    }
    return chosen;
  }
  Tensor LogProbabilities(const Tensor& raw, const Tensor& mask) const {
    return at::log_softmax(settings_.tanh_constant * at::tanh(raw) + mask, -1);
  }
  static Tensor Entropy(const Tensor& log) { return -at::sum(at::exp(log) * log, -1); }

  void Partition(const Tensor& layers, std::vector<TappDraw>& draws) {
    const bool cuts = settings_.partition == TappSettings::Partition::kCuts;
    const Tensor log = LogProbabilities(to_group_(at::relu(to_hidden_(layers))), at::zeros({1}, at::kFloat));
    const auto* values = log.data_ptr<float>();
    const int64_t count = std::ssize(layers_), options = log.size(1), first = cuts ? 1 : 0;  // layer 0 begins group 0
    std::vector<int64_t> chosen;
    for (TappDraw& draw : draws) {
      if (cuts) draw.group_of_layer.push_back(0);
      for (int64_t l = first; l < count; ++l) {
        chosen.push_back(Choose(values + l * options, options));
        const auto own = static_cast<int>(chosen.back());
        draw.group_of_layer.push_back(cuts ? draw.group_of_layer.back() + own : own);
      }
    }
    if (first == count) return;
    const int64_t drawn = std::ssize(draws), each = count - first;
    const Tensor own = log.slice(0, first).unsqueeze(0).expand({drawn, each, options});
    const Tensor index = ToIndex(chosen, {drawn, each, 1});
    log_probability_ = log_probability_ + at::sum(at::gather(own, 2, index).squeeze(2), 1);
    entropy_ = entropy_ + at::sum(Entropy(log.slice(0, first)));
    choices_ = choices_ + static_cast<double>(each);
  }

  // The groups that have layers, in the order of their first layers.
  static std::vector<int> Present(const std::vector<int>& group_of_layer) {
    std::vector<int> present;
    for (const int group : group_of_layer) {
      if (std::ranges::find(present, group) == present.end()) present.push_back(group);
    }
    return present;
  }

  // Vectors of groups, [draw, group, number], zeros behind the last group of a draw.
  Tensor VectorsOfGroups(const std::vector<TappDraw>& draws, const std::vector<std::vector<int>>& present, size_t most,
                         const Tensor& names) const {
    const size_t layers = layers_.size(), width = static_cast<size_t>(groups_);
    std::vector<float> members(draws.size() * most * layers, 0), next(draws.size() * most * width, 0);
    for (size_t b = 0; b < draws.size(); ++b) {
      const std::vector<int>& group_of_layer = draws[b].group_of_layer;
      for (size_t g = 0; g < present[b].size(); ++g) {
        const auto size = static_cast<float>(std::ranges::count(group_of_layer, present[b][g]));
        for (size_t l = 0; l < layers; ++l) {
          if (group_of_layer[l] != present[b][g]) continue;
          members[(b * most + g) * layers + l] = 1 / size;
          for (const int consumer : layers_[l].consumers) {
            const int other = group_of_layer[static_cast<size_t>(consumer)];
            if (other != present[b][g]) next[(b * most + g) * width + static_cast<size_t>(other)] = 1;
          }
        }
      }
    }
    const int64_t drawn = std::ssize(draws), groups = static_cast<int64_t>(most);
    const Tensor means = ToTensor(members, {drawn, groups, std::ssize(layers_)});
    return at::cat({at::matmul(means, names), at::matmul(means, rest_.slice(1, 0, kMetricWidth)),
                    ToTensor(next, {drawn, groups, groups_})},
                   2);
  }

  // Where one draw is in the decoder.
  struct Place {
    size_t group = 0;
    int left = 0;    // devices that are free
    int before = 0;  // the entry chosen before
    bool done = false;
    std::vector<bool> free;
  };

  void Allocate(const Tensor& names, std::vector<TappDraw>& draws) {
    std::vector<std::vector<int>> present;
    size_t most = 0;
    for (const TappDraw& draw : draws) {
      present.push_back(Present(draw.group_of_layer));
      most = std::max(most, present.back().size());
    }
    const int64_t drawn = std::ssize(draws);
    const Tensor vectors = VectorsOfGroups(draws, present, most, names);
    const Tensor zero = at::zeros({drawn, settings_.units}, at::kFloat);
    Cell::State low{zero, zero}, high{zero, zero};
    std::vector<Tensor> encoded;
    std::vector<float> absent(draws.size() * most, 0);  // added to the scores of the attention
    for (size_t g = 0; g < most; ++g) {
      std::vector<float> here;
      for (size_t b = 0; b < draws.size(); ++b) {
        here.push_back(g < present[b].size() ? 1.0F : 0.0F);
        if (g >= present[b].size()) absent[b * most + g] = kNever;
      }
      const Tensor mask = ToTensor(here, {drawn, 1});
      const Cell::State new_low = encoder_low_(vectors.select(1, static_cast<int64_t>(g)), low);
      low = Kept(mask, new_low, low);
      high = Kept(mask, encoder_high_(low.hidden, high), high);
      encoded.push_back(high.hidden);
    }
    Decode(at::stack(encoded, 1), ToTensor(absent, {drawn, static_cast<int64_t>(most)}), high, present, draws);
  }
  static Cell::State Kept(const Tensor& mask, const Cell::State& changed, const Cell::State& before) {
    return {mask * changed.hidden + (1 - mask) * before.hidden, mask * changed.cell + (1 - mask) * before.cell};
  }

  void Decode(const Tensor& memory, const Tensor& absent, Cell::State state,
              const std::vector<std::vector<int>>& present, std::vector<TappDraw>& draws) {
    const int64_t drawn = std::ssize(draws), most = memory.size(1), entries = devices_ + 1;
    std::vector<Place> places(
        draws.size(), {0, devices_, devices_ + 1, false, std::vector<bool>(static_cast<size_t>(devices_), true)});
    for (TappDraw& draw : draws) draw.devices_of_group.resize(static_cast<size_t>(groups_));
    for (bool any = true; any;) {
      std::vector<float> at_group(static_cast<size_t>(drawn * most), 0),
          before(static_cast<size_t>(drawn * (devices_ + 2)), 0), mask(static_cast<size_t>(drawn * entries), 0), active;
      for (size_t b = 0; b < draws.size(); ++b) {
        const Place& place = places[b];
        at_group[b * static_cast<size_t>(most) + std::min(place.group, present[b].size() - 1)] = 1;
        before[b * static_cast<size_t>(devices_ + 2) + static_cast<size_t>(place.before)] = 1;
        active.push_back(place.done ? 0.0F : 1.0F);
        if (!place.done) Forbid(place, present[b], draws[b], &mask[b * static_cast<size_t>(entries)]);
      }
      const Tensor group = at::bmm(ToTensor(at_group, {drawn, 1, most}), memory).squeeze(1);
      state = decoder_(at::cat({group, ToTensor(before, {drawn, devices_ + 2})}, 1), state);
      const Tensor scores = at::bmm(memory, state.hidden.unsqueeze(2)).squeeze(2) / std::sqrt(settings_.units);
      const Tensor context = at::bmm(at::softmax(scores + absent, 1).unsqueeze(1), memory).squeeze(1);
      const Tensor log =
          LogProbabilities(to_device_(at::cat({state.hidden, context}, 1)), ToTensor(mask, {drawn, entries}));
      std::vector<int64_t> chosen;
      any = false;
      for (size_t b = 0; b < draws.size(); ++b) {
        chosen.push_back(0);
        if (places[b].done) continue;
        chosen.back() = Choose(log.data_ptr<float>() + static_cast<int64_t>(b) * entries, entries);
        Take(static_cast<int>(chosen.back()), present[b], places[b], draws[b]);
        any = any || !places[b].done;
      }
      const Tensor counts = ToTensor(active, {drawn});
      log_probability_ = log_probability_ + counts * at::gather(log, 1, ToIndex(chosen, {drawn, 1})).squeeze(1);
      entropy_ = entropy_ + counts * Entropy(log);
      choices_ = choices_ + counts;
    }
  }

  // Devices that are given away, or kept for later groups; the end, while the group has no device.
  void Forbid(const Place& place, const std::vector<int>& present, const TappDraw& draw, float* mask) const {
    const bool own = !draw.devices_of_group[static_cast<size_t>(present[place.group])].empty();
    const int later = static_cast<int>(present.size() - place.group) - 1;
    for (int d = 0; d < devices_; ++d) {
      if (!place.free[static_cast<size_t>(d)] || (own && place.left <= later)) mask[d] = kNever;
    }
    if (!own) mask[devices_] = kNever;
  }

  void Take(int entry, const std::vector<int>& present, Place& place, TappDraw& draw) const {
    place.before = entry;
    if (entry == devices_) {
      ++place.group;
    } else {
      draw.devices_of_group[static_cast<size_t>(present[place.group])].push_back(entry);
      place.free[static_cast<size_t>(entry)] = false;
      --place.left;
    }
    place.done = place.group >= present.size() || place.left == 0;
  }

  static constexpr float kNever = -1e9F, kNeverLog = -1e8F;

  const TappSettings settings_;
  const std::vector<LayerFeatures> layers_;
  const int devices_;
  int groups_ = 1;
  Parameters parameters_;
  base::Rng rng_;
  Tensor kinds_, rest_;  // of layers
  Tensor names_;
  Dense to_hidden_, to_group_, to_device_;
  Cell encoder_low_, encoder_high_, decoder_;
  // By draw, of those being made or to learn from.
  Tensor log_probability_, entropy_, choices_;
  bool likeliest_ = false;
};

TappPolicy::TappPolicy(std::vector<LayerFeatures> layers, int devices, const TappSettings& settings, uint64_t seed)
    : networks_(std::make_unique<Networks>(std::move(layers), devices, settings, seed)) {}
TappPolicy::~TappPolicy() = default;

std::vector<TappDraw> TappPolicy::Draw(int count) { return networks_->Run(std::max(count, 1), false); }
TappDraw TappPolicy::MostLikely() { return networks_->Run(1, true).front(); }
void TappPolicy::Learn(const std::vector<double>& advantages) { networks_->Learn(advantages); }

}  // namespace medley::reproductions::tapp
