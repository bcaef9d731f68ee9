#include "reproductions/heterog/policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "reproductions/torch_net/parameters.h"

namespace medley::reproductions::heterog {
namespace {

using at::Tensor;
using torch_net::Dense;
using torch_net::Parameters;
using torch_net::ToIndex;
using torch_net::ToTensor;

// Changes with the numbers that the networks are fed with, and with their structure.
constexpr std::string_view kVersion = "medley graph agent 1";

struct Norm {
  Tensor gain, bias;
  Tensor operator()(const Tensor& x) const { return at::layer_norm(x, {x.size(-1)}, gain, bias); }
};

Norm MakeNorm(Parameters& parameters, int64_t units) {
  const Tensor gain = parameters.Ones(units);
  return {gain, parameters.Zeros(units)};
}

// [rows, heads, units of a head]
Tensor ByHead(const Tensor& x, int64_t heads) { return x.reshape({x.size(0), heads, -1}); }

// The edges of a graph as tensors.
struct Edges {
  Tensor from, to;
};

// One layer of graph attention. Added to its input and normalised, which the paper does not say: without it, twelve
// layers make all vectors of a graph alike.
class GraphAttention {
 public:
  GraphAttention(Parameters& parameters, int64_t units, int64_t heads)
      : heads_(heads),
        weight_(parameters.Matrix(units, units)),
        score_to_(parameters.Matrix(heads, units / heads)),
        score_from_(parameters.Matrix(heads, units / heads)),
        norm_(MakeNorm(parameters, units)) {}

  Tensor operator()(const Tensor& x, const Edges& edges) const {
    constexpr double kSlope = 0.2;  // of the leaky ReLU, as in Velickovic and others
    constexpr double kMostScore = 20;
    const int64_t nodes = x.size(0);
    const Tensor own = ByHead(at::linear(x, weight_), heads_);
    const Tensor to = at::sum(own * score_to_, -1), from = at::sum(own * score_from_, -1);
    const Tensor scores =
        at::leaky_relu(to.index_select(0, edges.to) + from.index_select(0, edges.from), kSlope);  // [edges, heads]
    // Bounded, so that no node's weights are all too small to add them up.
    const Tensor parts = at::exp(kMostScore * at::tanh(scores / kMostScore));
    const Tensor sums = at::zeros({nodes, heads_}, at::kFloat).index_add(0, edges.to, parts);
    const Tensor weights = parts / sums.index_select(0, edges.to);
    const Tensor sent = weights.unsqueeze(-1) * own.index_select(0, edges.from);
    const Tensor heard = at::zeros_like(own).index_add(0, edges.to, sent);
    return norm_(x + at::elu(heard.reshape({nodes, -1})));
  }

 private:
  int64_t heads_;
  Tensor weight_, score_to_, score_from_;
  Norm norm_;
};

// One layer of Transformer-XL: attention with relative positions over a segment and the one before, then a dense layer.
// Unlike in a language model, a group also sees those behind it.
class StrategyLayer {
 public:
  StrategyLayer(Parameters& parameters, int64_t units, int64_t heads)
      : heads_(heads),
        query_(parameters.Matrix(units, units)),
        key_(parameters.Matrix(units, units)),
        value_(parameters.Matrix(units, units)),
        position_(parameters.Matrix(units, units)),
        content_bias_(parameters.Zeros(units)),
        position_bias_(parameters.Zeros(units)),
        output_(parameters.MakeDense(units, units)),
        wide_(parameters.MakeDense(units, 2 * units)),
        narrow_(parameters.MakeDense(2 * units, units)),
        before_attention_(MakeNorm(parameters, units)),
        before_dense_(MakeNorm(parameters, units)) {}

  // `memory`: the input of this layer for the segment before, or no rows.
  Tensor operator()(const Tensor& x, const Tensor& memory) const {
    const int64_t rows = x.size(0), before = memory.size(0), columns = before + rows;
    const Tensor all = before_attention_(at::cat({memory, x}, 0));
    const Tensor query = at::linear(all.slice(0, before), query_);
    const auto heads = [&](const Tensor& y) { return ByHead(y, heads_).transpose(0, 1); };  // [heads, rows, units]
    const Tensor keys = heads(at::linear(all, key_)), values = heads(at::linear(all, value_));
    const Tensor positions = heads(at::linear(Positions(rows, columns, x.size(1)), position_));
    const Tensor by_content = at::bmm(heads(query + content_bias_), keys.transpose(1, 2));
    // The score of every distance, then that of each pair.
    const Tensor by_distance = at::bmm(heads(query + position_bias_), positions.transpose(1, 2));
    const Tensor index = (at::arange(rows).unsqueeze(1) + before - at::arange(columns).unsqueeze(0) + rows - 1)
                             .unsqueeze(0)
                             .expand({heads_, rows, columns});
    const Tensor scores = (by_content + at::gather(by_distance, 2, index)) / std::sqrt(x.size(1) / heads_);
    const Tensor heard = at::bmm(at::softmax(scores, -1), values).transpose(0, 1).reshape({rows, -1});
    const Tensor attended = x + output_(heard);
    return attended + narrow_(at::relu(wide_(before_dense_(attended))));
  }

 private:
  // Sines and cosines of the distances -(rows - 1) to columns - 1 (Vaswani and others 2017).
  static Tensor Positions(int64_t rows, int64_t columns, int64_t units) {
    const Tensor distances = at::arange(-(rows - 1), columns, at::kFloat).unsqueeze(1);
    const Tensor rates = at::exp(at::arange(0, units, 2, at::kFloat) * (-std::log(1e4) / static_cast<double>(units)));
    const Tensor angles = distances * rates.unsqueeze(0);
    return at::cat({at::sin(angles), at::cos(angles)}, 1);
  }

  int64_t heads_;
  Tensor query_, key_, value_, position_, content_bias_, position_bias_;
  Dense output_, wide_, narrow_;
  Norm before_attention_, before_dense_;
};

}  // namespace

class AgentPolicy::Networks {
 public:
  Networks(const AgentSettings& settings, uint64_t seed)
      : settings_(settings), parameters_(base::Mix64(seed)), rng_(seed) {
    MEDLEY_CHECK(settings.units % settings.attention_heads == 0 && settings.units % settings.strategy_heads == 0 &&
                     settings.units % 2 == 0,
                 "the units of the agent must be a multiple of its heads");
    at::set_num_threads(1);  // the matrices are small
    const int64_t units = settings.units;
    operation_ = parameters_.MakeDense(kOperationWidth, units);
    for (int i = 0; i < settings.attention_layers; ++i) {
      attention_.emplace_back(parameters_, units, settings.attention_heads);
    }
    group_ = parameters_.MakeDense(units + kGroupWidth, units);
    for (int i = 0; i < settings.strategy_layers; ++i) {
      strategy_.emplace_back(parameters_, units, settings.strategy_heads);
    }
    norm_ = MakeNorm(parameters_, units);
    replicas_ = parameters_.MakeDense(units, 4);
    on_device_ = parameters_.MakeDense(units, units);
    device_ = parameters_.MakeDense(kDeviceWidth, units);
    pair_ = parameters_.MakeDense(kPairWidth, units);
    score_ = parameters_.MakeDense(units, 1);
  }

  std::vector<AgentDraw> Draw(const AgentFeatures& features, int count, std::vector<AgentDraw> given, bool likeliest) {
    const at::AutoGradMode mode(!likeliest);
    const Tensor log = at::log_softmax(Logits(features), -1);  // [groups, actions]
    const auto* values = log.data_ptr<float>();
    const int64_t groups = log.size(0), actions = log.size(1);
    std::vector<AgentDraw> draws(static_cast<size_t>(count));
    std::vector<int64_t> chosen;
    for (AgentDraw& draw : draws) {
      for (int64_t g = 0; g < groups; ++g) {
        const float* row = values + g * actions;
        const int64_t action = likeliest ? std::max_element(row, row + actions) - row : Choose(row, actions);
        draw.push_back(static_cast<int>(action));
        chosen.push_back(action);
      }
    }
    log_probability_ = entropy_ = Tensor();
    if (likeliest) return draws;
    for (AgentDraw& draw : given) {
      chosen.insert(chosen.end(), draw.begin(), draw.end());
      draws.push_back(std::move(draw));
    }
    const int64_t all = std::ssize(draws);
    const Tensor index = ToIndex(chosen, {all, groups, 1});
    const Tensor each = at::gather(log.unsqueeze(0).expand({all, groups, actions}), 2, index).squeeze(2);
    log_probability_ = at::sum(each, 1);
    entropy_ = -at::mean(at::sum(at::exp(log) * log, -1));
    return draws;
  }

  void Learn(const std::vector<double>& advantages) {
    if (!log_probability_.defined() || log_probability_.size(0) != std::ssize(advantages)) return;
    const Tensor weights = ToTensor({advantages.begin(), advantages.end()}, {std::ssize(advantages)});
    parameters_.AddGradient(-at::mean(weights * log_probability_) - settings_.entropy * entropy_);
    log_probability_ = entropy_ = Tensor();
  }
  void Step() { parameters_.Step(settings_.learning_rate, settings_.clip); }

  std::string Save() const { return parameters_.Save(kVersion); }
  absl::Status Load(std::string_view bytes) { return parameters_.Load(bytes, kVersion); }

 private:
  Tensor Logits(const AgentFeatures& features) const {
    const Edges edges{ToIndex(features.from, {std::ssize(features.from)}),
                      ToIndex(features.to, {std::ssize(features.to)})};
    Tensor nodes = at::relu(operation_(ToTensor(features.operation, {features.operations, kOperationWidth})));
    for (const GraphAttention& layer : attention_) nodes = layer(nodes, edges);
    // The mean and not the paper's sum: groups may have one operation or hundreds.
    const Tensor group_of = ToIndex(features.group_of, {features.operations});
    const Tensor sums = at::zeros({features.groups, settings_.units}, at::kFloat).index_add(0, group_of, nodes);
    const Tensor counts = at::zeros({features.groups}, at::kFloat)
                              .index_add(0, group_of, at::ones({features.operations}, at::kFloat))
                              .unsqueeze(1);
    const Tensor numbers = ToTensor(features.group, {features.groups, kGroupWidth});
    const Tensor groups = norm_(Strategy(at::relu(group_(at::cat({sums / at::clamp_min(counts, 1), numbers}, 1)))));
    const Tensor devices = device_(ToTensor(features.device, {features.devices, kDeviceWidth})).unsqueeze(0);
    const Tensor pairs = pair_(ToTensor(features.pair, {features.groups, features.devices, kPairWidth}));
    const Tensor placed = score_(at::tanh(on_device_(groups).unsqueeze(1) + devices + pairs)).squeeze(2);
    return settings_.most_logit * at::tanh(at::cat({placed, replicas_(groups)}, 1) / settings_.most_logit);
  }

  // Segment by segment; what a layer was fed with is the memory of the next segment, without its gradient.
  Tensor Strategy(const Tensor& groups) const {
    std::vector<Tensor> memory(strategy_.size(), groups.slice(0, 0, 0));
    std::vector<Tensor> out;
    for (int64_t first = 0; first < groups.size(0); first += settings_.segment) {
      Tensor x = groups.slice(0, first, std::min(first + settings_.segment, groups.size(0)));
      for (size_t i = 0; i < strategy_.size(); ++i) {
        const Tensor fed = x;
        x = strategy_[i](x, memory[i]);
        memory[i] = at::detach(fed);
      }
      out.push_back(x);
    }
    return at::cat(out, 0);
  }

  int64_t Choose(const float* log, int64_t count) {
    double left = rng_.Uniform();
    for (int64_t i = 0; i < count; ++i) {
      left -= std::exp(log[i]);
      if (left < 0) return i;
    }
    return count - 1;
  }

  const AgentSettings settings_;
  Parameters parameters_;
  base::Rng rng_;
  Dense operation_, group_, replicas_, on_device_, device_, pair_, score_;
  std::vector<GraphAttention> attention_;
  std::vector<StrategyLayer> strategy_;
  Norm norm_;
  Tensor log_probability_, entropy_;  // of the last draws
};

AgentSettings AgentSettings::Paper() {
  AgentSettings out;
  out.attention_layers = 12;
  out.attention_heads = out.strategy_heads = 8;
  out.strategy_layers = 8;
  out.units = 128;
  return out;
}

AgentPolicy::AgentPolicy(const AgentSettings& settings, uint64_t seed)
    : networks_(std::make_unique<Networks>(settings, seed)) {}
AgentPolicy::~AgentPolicy() = default;

std::vector<AgentDraw> AgentPolicy::Draw(const AgentFeatures& features, int count, std::vector<AgentDraw> given) {
  return networks_->Draw(features, std::max(count, 1), std::move(given), false);
}
AgentDraw AgentPolicy::MostLikely(const AgentFeatures& features) {
  return networks_->Draw(features, 1, {}, true).front();
}
void AgentPolicy::Learn(const std::vector<double>& advantages) { networks_->Learn(advantages); }
void AgentPolicy::Step() { networks_->Step(); }
std::string AgentPolicy::Save() const { return networks_->Save(); }
absl::Status AgentPolicy::Load(std::string_view bytes) { return networks_->Load(bytes); }

}  // namespace medley::reproductions::heterog
