// A model from PyTorch in the ONNX format: the calls of its program, one after the other, as operators of ONNX. Pure,
// except that the program is read from the export's folder.
//
//   inputs: those of the model's forward, by their names and types: samples x shape
//   output: as in onnx.h
//
// Dropout and batch norm are those of evaluation. A call for which ONNX has no operator, or that is not known here,
// is refused with the operator, its module and its line.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "worker/cut/cut.h"
#include "worker/export/onnx_writer.h"
#include "worker/export/read_export.h"

namespace medley::worker {

// The bytes of the file. Errors: those of ReadExportedProgram; Unimplemented for a call; ResourceExhausted as ToOnnx.
absl::StatusOr<std::string> ProgramToOnnx(const LoadedModel& model);

// Adds what predictions are from `x`, samples x outputs: the outputs of the model.
void AddOnnxOutput(const ExportedModel& model, std::string x, OnnxWriter& graph);

// What a converter of a call (onnx_calls.h) sees: the arguments of the call, the names of values in the ONNX graph, and
// the sizes of tensors. The first error is kept, and then results mean nothing: status() tells. Not thread-safe.
class OnnxConversion {
 public:
  OnnxConversion(const cut::Cut& cut, OnnxWriter& graph) : cut_(cut), program_(*cut.program), graph_(graph) {}

  // --- The call that is converted.
  void Begin(const exported::Node& node) { node_ = &node; }
  const exported::Node& node() const { return *node_; }
  absl::Status status() const { return status_; }
  // Says that this call cannot be converted, and why.
  void Refuse(const std::string& why);

  // --- Its arguments, by the names of PyTorch's schema.
  bool Has(std::string_view name) const;                           // given, and not None
  std::string Value(std::string_view name);                        // a tensor, as it is
  std::string Value(std::string_view name, exported::ScalarType);  // a tensor or a number, as a tensor of this type
  std::vector<std::string> ValuesOf(std::string_view name);        // a list of tensors
  int64_t Int(std::string_view name, int64_t otherwise);
  double Number(std::string_view name, double otherwise);
  bool Bool(std::string_view name, bool otherwise);
  std::string Text(std::string_view name, std::string otherwise);
  std::vector<int64_t> Ints(std::string_view name);  // empty: absent; a number is a list of one
  std::string NameOf(std::string_view name) const;   // of the program's value; empty: no tensor
  // --- Tensors.
  const exported::TensorMeta& Meta(const std::string& value);  // of the program's value
  const exported::TensorMeta& MetaOf(std::string_view argument) { return Meta(NameOf(argument)); }
  const exported::TensorMeta& Result() { return Meta(node_->outputs.front()); }
  int64_t Rank(std::string_view argument) { return std::ssize(MetaOf(argument).sizes); }
  int64_t Fixed(const exported::SymInt& size);  // refuses a size that depends on the batch
  int64_t Axis(int64_t axis, int64_t rank) const { return axis < 0 ? axis + rank : axis; }
  // The sizes as a tensor. `reshape`: one of them may be -1.
  std::string Sizes(const std::vector<exported::SymInt>& sizes, bool reshape);

  // --- What is written.
  std::string New();  // the name of a value
  std::string Add(std::string_view type, const std::vector<std::string>& inputs,
                  std::initializer_list<OnnxAttribute> attributes = {});
  // For a tensor of the result's type, and a number.
  std::string With(std::string_view type, const std::string& a, double b) {
    return Add(type, {a, Scalar(b, Result().type)});
  }
  // An operator with several outputs.
  std::vector<std::string> AddSeveral(std::string_view type, const std::vector<std::string>& inputs, size_t outputs,
                                      const std::vector<OnnxAttribute>& attributes);
  std::string Constant(const std::vector<int64_t>& values);
  std::string Scalar(double value, exported::ScalarType type);  // without axes
  std::string Cast(const std::string& value, exported::ScalarType from, exported::ScalarType to);
  std::string Reshape(const std::string& value, const std::vector<exported::SymInt>& sizes) {
    return Add("Reshape", {value, Sizes(sizes, true)});
  }
  void Set(std::string value) { SetAt(0, std::move(value)); }
  void SetAt(size_t output, std::string value);
  // The name that the program's value has in ONNX.
  void Define(const std::string& value, std::string name) { names_[value] = std::move(name); }
  std::string Named(const std::string& value);
  // For sizes that depend on the batch: an input whose first axis it is.
  void SetBatchOf(std::string input) { batch_of_ = std::move(input); }

  const exported::Program& program() const { return program_; }

 private:
  const exported::Argument* Find(std::string_view name) const;
  std::string Samples();

  const cut::Cut& cut_;
  const exported::Program& program_;
  OnnxWriter& graph_;
  const exported::Node* node_ = nullptr;
  absl::Status status_;
  std::map<std::string, std::string> names_;  // by value of the program
  std::string batch_of_, samples_;
  int64_t count_ = 0;
};

// TensorProto.DataType; 0: ONNX has none.
int OnnxTypeOf(exported::ScalarType type);

}  // namespace medley::worker
