// Recurrent layers and cells. PyTorch and ONNX have the same formulas, with the gates in another order.
#include <map>
#include <utility>

#include "worker/export/onnx_calls.h"

namespace medley::worker {
namespace {

using exported::SymInt;

struct RecurrentKind {
  std::string_view type;             // of ONNX
  std::vector<int64_t> order;        // the gates of PyTorch, by their numbers, in the order of ONNX
  std::string_view activation = {};  // of RNN
};

const RecurrentKind& LstmKind() {
  static const RecurrentKind kLstm = {"LSTM", {0, 3, 1, 2}};  // i f g o -> i o f g
  return kLstm;
}
const RecurrentKind& GruKind() {
  static const RecurrentKind kGru = {"GRU", {1, 0, 2}};  // r z n -> z r n
  return kGru;
}
const RecurrentKind& TanhKind() {
  static const RecurrentKind kTanh = {"RNN", {0}, "Tanh"};
  return kTanh;
}
const RecurrentKind& ReluKind() {
  static const RecurrentKind kRelu = {"RNN", {0}, "Relu"};
  return kRelu;
}

std::string Permuted(OnnxConversion& to, const std::string& x, std::vector<int64_t> order) {
  return to.Add("Transpose", {x}, {{"perm", std::move(order)}});
}

std::string Joined(OnnxConversion& to, const std::vector<std::string>& parts, int64_t axis) {
  return parts.size() == 1 ? parts.front() : to.Add("Concat", parts, {{"axis", axis}});
}

std::string Rows(OnnxConversion& to, const std::string& x, int64_t begin, int64_t end) {
  return to.Add("Slice", {x, to.Constant({begin}), to.Constant({end}), to.Constant({0})});
}

// The weights of one layer, for one or two directions, as ONNX takes them.
struct LayerWeights {
  std::string input, recurrent, bias;  // bias "": none
};

LayerWeights WeightsOf(OnnxConversion& to, const RecurrentKind& kind, const std::vector<std::string>& values,
                       size_t first, size_t directions, bool biases, int64_t hidden) {
  std::vector<int64_t> rows;
  for (const int64_t gate : kind.order) {
    for (int64_t i = 0; i < hidden; ++i) rows.push_back(gate * hidden + i);
  }
  const std::string order = to.Constant(rows), front = to.Constant({0});
  const auto turned = [&](size_t at) {
    return to.Add("Gather", {to.Named(values[at]), order}, {{"axis", int64_t{0}}});
  };
  std::vector<std::string> input, recurrent, bias;
  for (size_t d = 0; d < directions; ++d) {
    const size_t at = first + d * (biases ? 4 : 2);
    input.push_back(to.Add("Unsqueeze", {turned(at), front}));
    recurrent.push_back(to.Add("Unsqueeze", {turned(at + 1), front}));
    if (biases) bias.push_back(to.Add("Unsqueeze", {Joined(to, {turned(at + 2), turned(at + 3)}, 0), front}));
  }
  return {Joined(to, input, 0), Joined(to, recurrent, 0), biases ? Joined(to, bias, 0) : ""};
}

// aten::lstm.input, gru.input, rnn_tanh.input, rnn_relu.input: (output, h_n), of an LSTM also c_n.
void Recurrent(OnnxConversion& to, const RecurrentKind& kind) {
  const bool lstm = kind.type == "LSTM";
  if (!to.Has("input")) return to.Refuse("packed sequences are not known");
  if (to.Rank("input") != 3) return to.Refuse("its input needs an axis of samples");
  const bool biases = to.Bool("has_biases", true), samples_first = to.Bool("batch_first", false);
  const auto layers = static_cast<size_t>(to.Int("num_layers", 1));
  const size_t directions = to.Bool("bidirectional", false) ? 2 : 1;
  const std::vector<std::string> weights = to.ValuesOf("params"), states = to.ValuesOf("hx");
  const size_t each = directions * (biases ? 4 : 2);
  if (weights.size() != layers * each) return to.Refuse("projections (proj_size) are not known");
  if (states.size() != (lstm ? 2u : 1u)) return to.Refuse("it has another number of states");
  const std::vector<SymInt>& recurrent = to.Meta(weights[1]).sizes;
  if (recurrent.size() != 2) return to.Refuse("its weights are no matrices");
  const int64_t hidden = to.Fixed(recurrent[1]);

  std::string x = to.Value("input");
  if (samples_first) x = Permuted(to, x, {1, 0, 2});
  std::vector<std::string> last, cells;  // of each layer
  for (size_t layer = 0; layer < layers; ++layer) {
    const LayerWeights w = WeightsOf(to, kind, weights, layer * each, directions, biases, hidden);
    const auto begin = static_cast<int64_t>(layer * directions), end = static_cast<int64_t>((layer + 1) * directions);
    std::vector<std::string> inputs = {x, w.input, w.recurrent, w.bias, ""};  // "": all sequences have the same length
    for (const std::string& state : states) inputs.push_back(Rows(to, to.Named(state), begin, end));
    std::vector<OnnxAttribute> attributes = {{"hidden_size", hidden},
                                             {"direction", std::string(directions == 2 ? "bidirectional" : "forward")}};
    // As in PyTorch, the reset gate applies to the product.
    if (kind.type == "GRU") attributes.push_back({"linear_before_reset", int64_t{1}});
    if (!kind.activation.empty()) {
      attributes.push_back({"activations", std::vector<std::string>(directions, std::string(kind.activation))});
    }
    const std::vector<std::string> out = to.AddSeveral(kind.type, inputs, lstm ? 3 : 2, attributes);
    // steps x directions x samples x hidden -> steps x samples x (directions * hidden)
    x = to.Add("Reshape",
               {Permuted(to, out[0], {0, 2, 1, 3}), to.Constant({0, 0, static_cast<int64_t>(directions) * hidden})});
    last.push_back(out[1]);
    if (lstm) cells.push_back(out[2]);
  }
  to.SetAt(0, samples_first ? Permuted(to, x, {1, 0, 2}) : x);
  to.SetAt(1, Joined(to, last, 0));
  if (lstm) to.SetAt(2, Joined(to, cells, 0));
}

void Lstm(OnnxConversion& to) { Recurrent(to, LstmKind()); }
void Gru(OnnxConversion& to) { Recurrent(to, GruKind()); }
void RnnTanh(OnnxConversion& to) { Recurrent(to, TanhKind()); }
void RnnRelu(OnnxConversion& to) { Recurrent(to, ReluKind()); }

// --- Cells: one step, of samples x features.

std::string Product(OnnxConversion& to, const std::string& x, std::string_view weight, std::string_view bias) {
  const std::string product = to.Add("MatMul", {x, Permuted(to, to.Value(weight), {1, 0})});
  return to.Has(bias) ? to.Add("Add", {product, to.Value(bias)}) : product;
}

// The columns of gate `gate`.
std::string Gate(OnnxConversion& to, const std::string& gates, int64_t gate, int64_t hidden) {
  return to.Add("Slice", {gates, to.Constant({gate * hidden}), to.Constant({(gate + 1) * hidden}), to.Constant({1})});
}

int64_t HiddenOf(OnnxConversion& to) {
  const std::vector<SymInt>& sizes = to.MetaOf("w_hh").sizes;
  if (sizes.size() == 2 && to.Rank("input") == 2) return to.Fixed(sizes[1]);
  to.Refuse("its input needs an axis of samples");
  return 0;
}

void LstmCell(OnnxConversion& to) {
  const int64_t hidden = HiddenOf(to);
  const std::vector<std::string> states = to.ValuesOf("hx");
  if (states.size() != 2) return to.Refuse("it has another number of states");
  const std::string gates =
      to.Add("Add", {Product(to, to.Value("input"), "w_ih", "b_ih"), Product(to, to.Named(states[0]), "w_hh", "b_hh")});
  const auto open = [&](int64_t gate) { return to.Add("Sigmoid", {Gate(to, gates, gate, hidden)}); };
  const std::string fresh = to.Add("Mul", {open(0), to.Add("Tanh", {Gate(to, gates, 2, hidden)})});
  const std::string cell = to.Add("Add", {to.Add("Mul", {open(1), to.Named(states[1])}), fresh});
  to.SetAt(0, to.Add("Mul", {open(3), to.Add("Tanh", {cell})}));
  to.SetAt(1, cell);
}

void GruCell(OnnxConversion& to) {
  const int64_t hidden = HiddenOf(to);
  const std::string x = Product(to, to.Value("input"), "w_ih", "b_ih"), state = to.Value("hx");
  const std::string h = Product(to, state, "w_hh", "b_hh");
  const auto open = [&](int64_t gate) {
    return to.Add("Sigmoid", {to.Add("Add", {Gate(to, x, gate, hidden), Gate(to, h, gate, hidden)})});
  };
  const std::string kept = to.Add("Mul", {open(0), Gate(to, h, 2, hidden)});
  const std::string fresh = to.Add("Tanh", {to.Add("Add", {Gate(to, x, 2, hidden), kept})});
  // n + z * (h - n)
  to.Set(to.Add("Add", {fresh, to.Add("Mul", {open(1), to.Add("Sub", {state, fresh})})}));
}

void RnnCell(OnnxConversion& to, std::string_view activation) {
  HiddenOf(to);
  const std::string sum =
      to.Add("Add", {Product(to, to.Value("input"), "w_ih", "b_ih"), Product(to, to.Value("hx"), "w_hh", "b_hh")});
  to.Set(to.Add(activation, {sum}));
}
void RnnTanhCell(OnnxConversion& to) { RnnCell(to, "Tanh"); }
void RnnReluCell(OnnxConversion& to) { RnnCell(to, "Relu"); }

}  // namespace

OnnxConverter FindOnnxRecurrentConverter(std::string_view call) {
  static const std::map<std::string_view, OnnxConverter> kKnown = {
      {"lstm", Lstm},          {"gru", Gru},          {"rnn_tanh", RnnTanh},          {"rnn_relu", RnnRelu},
      {"lstm_cell", LstmCell}, {"gru_cell", GruCell}, {"rnn_tanh_cell", RnnTanhCell}, {"rnn_relu_cell", RnnReluCell},
  };
  const auto found = kKnown.find(call);
  return found == kKnown.end() ? nullptr : found->second;
}

}  // namespace medley::worker
