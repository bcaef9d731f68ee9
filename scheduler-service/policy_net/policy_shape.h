// The sizes of a recurrent policy, and the layout of its parameters in one flat vector.
//
// The input of step t is x_t = (features f_t, one-hot of the previous action a_{t-1}; the first step has no previous
// action):
//   LSTM:  (i, f, g, o) = Wx f_t + Wa[a_{t-1}] + Wh h_{t-1} + b
//          c_t = s(f) c_{t-1} + s(i) tanh(g),  h_t = s(o) tanh(c_t)
//   Elman: h_t = tanh(Wx f_t + Wa[a_{t-1}] + Wh h_{t-1} + b)
// where s is the logistic function. The output is p(a_t | a_1..a_{t-1}) = softmax(Wo h_t + Ws[a_{t-1}] + bo) over the
// actions that the step allows. The gates have PyTorch's order. Source: HeterPS, section 5.2 and figure 3. Our
// additions: the previous action as an input makes the policy conditional on it, and the direct connection Ws from the
// previous action to the output lets an untrained policy prefer schedules with few stages.
#pragma once

#include <cstddef>

namespace medley::sched::policy_net {

enum class CellKind { kLstm, kElman };

struct PolicyShape {
  CellKind cell = CellKind::kLstm;
  int features = 0;  // per step
  int actions = 0;
  int hidden = 0;
  bool operator==(const PolicyShape&) const = default;

  int GateRows() const { return (cell == CellKind::kLstm ? 4 : 1) * hidden; }
};

// The offsets of the parameter blocks. Each block is a column-major matrix.
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
  size_t size;  // number of all parameters

 private:
  static size_t Product(int rows, int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); }
};

}  // namespace medley::sched::policy_net
