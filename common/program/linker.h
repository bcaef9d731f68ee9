// The implementation of Link: passes and what they exchange in link.cc, reductions and updates in link_updates.cc.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/program/lower.h"
#include "common/program/order.h"
#include "common/program/program.h"

namespace medley::program {

inline constexpr int kNoInstruction = -1;

// Links one program; used once.
class Linker {
 public:
  Linker(const Lowered& lowered, const Order& order, int64_t max_instructions, Program& program)
      : lowered_(lowered),
        order_(order),
        max_instructions_(max_instructions),
        program_(program),
        micros_(program.micro_batches) {}

  absl::Status Link();

 private:
  // Ids of an instruction for each micro-batch and replica (or pair); kNoInstruction where there is none yet.
  struct Ids {
    size_t width = 0;
    std::vector<int> ids;
    void Resize(int micros, size_t w) {
      width = w;
      ids.assign(static_cast<size_t>(micros) * w, kNoInstruction);
    }
    int& At(int micro, size_t i) { return ids[static_cast<size_t>(micro) * width + i]; }
  };

  const Block& block(int b) const { return program_.blocks[static_cast<size_t>(b)]; }
  const Layout& layout(int l) const { return program_.layouts[static_cast<size_t>(l)]; }
  const Flow& flow(int f) const { return program_.flows[static_cast<size_t>(f)]; }
  const Value& value(int v) const { return program_.values[static_cast<size_t>(v)]; }

  void Prepare();

  // An upper bound of the number of instructions.
  int64_t Estimate() const;

  // What an instruction needs: the instruction in a slot, which may be filled later (an asynchronous schedule starts a
  // pass before, in the same iteration, what another step needs of it), or one that is known.
  struct Need {
    const int* slot = nullptr;
    int instruction = kNoInstruction;
    int steps_back = 0;
  };
  void Needs(const int* slot) { needs_.push_back({slot, kNoInstruction, 0}); }
  void NeedsNow(int instruction) { needs_.push_back({nullptr, instruction, 0}); }

  int Add(Instruction instruction);
  void AddNeed(int instruction, Need need) { needs_of_[static_cast<size_t>(instruction)].push_back(need); }

  void Begin();

  void Forward(const Action& action);

  // A block of the layout needs the samples of replica `r` of a value.
  void NeedValue(int index, int to_layout, int r, int micro);
  void NeedFlow(int f, int r, int micro);

  // `need_source(r)` adds the dependency on what replica r of the flow's origin sends.
  template <typename NeedSource>
  void Move(int f, const Action& action, const NeedSource& need_source);

  int GradientAt(int value, int layout) const;

  // Needs the gradient of a value on replica `r` of a layout: the sum of its parts, or its only part.
  void NeedGradient(int g, int r, int micro);
  void NeedParts(int g, int r, int micro);
  void AddSums(int g, const Action& action);

  void Backward(const Action& action);

  // When all blocks of a layout have computed their parts of a value's gradient, sends it to where the value came from.
  void SendGradient(int input, int from_layout, const Action& action);

  // The last micro-batch; the list of the device keeps the order of the others.
  void NeedBackward(int b, int r) { Needs(&backward_[static_cast<size_t>(b)].At(micros_ - 1, static_cast<size_t>(r))); }

  void PushRows(const Action& action);

  void Reduce(int b, int shift);

  // The norm of all gradients needs all of them.
  Updates UpdatesAt() const { return program_.clips || !program_.shared.empty() ? Updates::kAtEnd : order_.updates; }
  // The reduced gradient of a block, or its only part.
  void NeedReduced(int b, int r);

  // For each shared parameter, on each device with it, after all reductions of the device: one collective at a time.
  void Share();

  // The index of a device in a layout; kNoInstruction: it is not in it.
  int RankOn(int in, int device) const;
  int ReplicaOn(int b, int device) const { return RankOn(block(b).layout, device); }

  void NeedShared(int b, int device);

  // After all reductions of a device.
  void Norm();

  void Update(int b, int shift);

  void Finish();

  // The buffers of a step are those of the step `open_steps` before. What a device computes follows from its batch and
  // from what it receives, so it is enough that these wait: of each list, what comes first of a step.
  void ReuseBuffers();

  void Resolve();

  const Lowered& lowered_;
  const Order& order_;
  const int64_t max_instructions_;
  Program& program_;
  const int micros_;
  std::vector<Need> needs_;                                      // of the next instruction
  std::vector<std::vector<Need>> needs_of_;                      // of each instruction
  std::vector<Ids> forward_, backward_;                          // by block; replicas
  std::vector<Ids> receive_;                                     // by flow; pairs
  std::vector<Ids> sum_;                                         // by gradient; replicas
  std::vector<std::vector<int>> parts_left_;                     // by gradient and micro-batch
  std::vector<std::vector<std::vector<size_t>>> to_;             // by flow and receiving replica: its pairs
  std::vector<std::vector<std::pair<int, int>>> gradient_at_;    // by value: layout, gradient
  std::vector<std::vector<std::pair<int, int>>> gradient_flow_;  // by value: layout, flow
  std::vector<std::pair<int, int>> ended_;  // blocks whose backward passes have ended, in this order, with shift
  std::vector<std::vector<int>> reduce_;    // by block and replica
  std::vector<std::vector<int>> share_;     // by shared parameter and device
  std::vector<int> norm_;                   // by device
  std::vector<std::vector<int>> update_;    // by block and replica: the last change of its parameters in a step
  std::vector<std::vector<std::vector<int>>> pull_;  // by block, table and replica
  std::vector<int> load_, report_;                   // by device
  std::vector<std::vector<int>> done_;               // by device: what a step consists of, for its Report
};

}  // namespace medley::program
