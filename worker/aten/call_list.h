// The nodes of a block of a cut program as calls through ATen's dispatcher, with autograd: compiled once, run for
// every micro-batch.
//
// The PyTorch that wrote the file and this LibTorch may differ: arguments are matched with the operator's schema by
// name, then by place; those that the file lacks take the schema's defaults; operators that this LibTorch lacks are
// replaced by others (adapted_calls.h). Dropout and batch norm follow the run's mode, not that of the export. Dropout's
// masks are those of random.h.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "worker/aten/torch.h"
#include "worker/cut/cut.h"
#include "worker/model/make_block.h"

namespace medley::worker::aten {

class DrawCounters;

// What calls may ask of a run.
struct RunContext {
  bool training = false;
  int64_t samples = 0;  // of the micro-batch
  uint64_t seed = 0;    // of the job
  int64_t step = 0;
  int64_t first_sample = 0;                   // of the micro-batch within the step's whole batch
  const DrawCounters* counters = nullptr;     // both in the device's memory, for a pass that it records
  Precision precision = Precision::kFloat32;  // of products, whose results are float32
  std::vector<c10::IValue> values;            // by slot
};

// For one call: its arguments in the order of a schema.
using Stack = std::vector<c10::IValue>;

class CallList {
 public:
  // Compiles nodes of the program, ascending, keeping the values `kept` until the end of a run. Its tensors are on
  // `place`. Errors: Unimplemented that names the operator and the module which uses it; InvalidArgument for arguments
  // that do not fit the operator.
  static absl::StatusOr<CallList> Compile(const cut::Cut& cut, const std::vector<int>& nodes,
                                          const std::vector<std::string>& kept, at::Device place);

  size_t slots() const { return slots_.size(); }
  // The slot of a value; -1 if no call uses or gives it.
  int SlotOf(const std::string& value) const;
  // Values that are neither results of calls nor numbers: the caller fills their slots before each run.
  const std::vector<std::string>& needed() const { return needed_; }

  // Errors: Internal with the operator, its module and its line for what LibTorch throws.
  absl::Status Run(RunContext& context) const;

  // How the call's result follows from its arguments; `call`: the number of the node.
  using Function = std::function<void(const RunContext& context, int call, int batch_axis, Stack& stack)>;

 private:
  struct Argument {
    enum class Kind { kConstant, kValue, kTensors, kOptionalTensors, kNumbers } kind = Kind::kConstant;
    c10::IValue constant;
    bool tensor = false;           // kValue: the operator takes a tensor, also for a number
    std::vector<int> slots;        // -1 in lists: the constant at that place
    std::vector<int64_t> numbers;  // kNumbers: where slots are -1
  };
  struct Call {
    int node = 0;
    int batch_axis = -1;  // of the first argument
    std::optional<c10::OperatorHandle> handle;
    Function function;  // instead of the handle
    std::vector<Argument> arguments;
    std::vector<int> results;  // slots; -1: not used
    bool returns_list = false;
    bool product = false;   // that follows the run's precision
    std::vector<int> last;  // slots whose last use this is
  };
  struct Number {
    int slot = 0;
    cut::Expression expression;
    int64_t value = 0;
    bool fixed = false;
  };

  int Slot(const std::string& value);
  absl::Status Add(int node);
  absl::StatusOr<Argument> Convert(const exported::Argument& from, const c10::Argument* schema);
  static c10::IValue Value(const Argument& argument, const RunContext& context);

  std::shared_ptr<const exported::Program> program_;
  std::string batch_;            // the symbol
  at::Device place_ = at::kCPU;  // of tensors that calls make
  std::vector<Call> calls_;
  std::vector<Number> numbers_;
  std::vector<std::string> needed_;
  std::map<std::string, int> slots_;
};

}  // namespace medley::worker::aten
