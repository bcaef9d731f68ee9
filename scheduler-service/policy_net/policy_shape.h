// Sizes of a recurrent policy, and where its parameters lie in one flat vector.
//
// Every step t sees x_t = (features f_t, one-hot of the previous action a_{t-1}; none before the first step):
//   LSTM:  (i, f, g, o) = Wx f_t + Wa[a_{t-1}] + Wh h_{t-1} + b
//          c_t = s(f) c_{t-1} + s(i) tanh(g),  h_t = s(o) tanh(c_t)
//   Elman: h_t = tanh(Wx f_t + Wa[a_{t-1}] + Wh h_{t-1} + b)
// and gives p(a_t | a_1..a_{t-1}) = softmax(Wo h_t + Ws[a_{t-1}] + bo) over the actions that the step allows. The order
// of gates is PyTorch's. Source: HeterPS, section 5.2 and figure 3. Ours: the previous action makes the policy truly
// conditional, and its short way Ws to the outputs lets a new policy begin with schedules of few stages.
#pragma once

#include <cstddef>

namespace medley::policy_net {

enum class CellKind { kLstm, kElman };

struct PolicyShape {
  CellKind cell = CellKind::kLstm;
  int features = 0;  // of a step
  int actions = 0;
  int hidden = 0;
  bool operator==(const PolicyShape&) const = default;

  int GateRows() const { return (cell == CellKind::kLstm ? 4 : 1) * hidden; }
};

// Offsets of the blocks, each a column-major matrix.
struct ParameterLayout {
  explicit ParameterLayout(const PolicyShape& shape)
      : wx(0),
        wa(wx + Product(shape.GateRows(), shape.features)),
        wh(wa + Product(shape.GateRows(), shape.actions)),
        b(wh + Product(shape.GateRows(), shape.hidden)),
        wo(b + Product(shape.GateRows(), 1)),
        bo(wo + Product(shape.actions, shape.hidden)),
        ws(bo + Product(shape.actions, 1)),
        size(ws + Product(shape.actions, shape.actions)) {}

  size_t wx;    // [gate rows x features]
  size_t wa;    // [gate rows x actions]
  size_t wh;    // [gate rows x hidden]
  size_t b;     // [gate rows]
  size_t wo;    // [actions x hidden]
  size_t bo;    // [actions]
  size_t ws;    // [actions x actions]
  size_t size;  // of all

 private:
  static size_t Product(int rows, int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); }
};

}  // namespace medley::policy_net
