// The few messages of ONNX that a model needs, encoded by hand: the library of ONNX is not used. Not thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace medley::worker {

// One message in protobuf's wire format. Field numbers are those of ONNX 1.12.
class OnnxMessage {
 public:
  OnnxMessage& Int(int field, int64_t value);
  OnnxMessage& Float(int field, float value);
  OnnxMessage& Text(int field, std::string_view value);
  OnnxMessage& Sub(int field, const OnnxMessage& value) { return Text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);

  std::string bytes_;
};

// TensorProto.DataType
inline constexpr int kOnnxFloat = 1;
inline constexpr int kOnnxInt32 = 6;
inline constexpr int kOnnxInt64 = 7;
inline constexpr int kOnnxBool = 9;

struct OnnxAttribute {
  std::string_view name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<std::string>> value;
};

class OnnxWriter {
 public:
  explicit OnnxWriter(int opset) : opset_(opset) {}

  // Tensors of samples x shape.
  void Input(std::string_view name, int type, const std::vector<int64_t>& shape);
  void Output(std::string_view name, const std::vector<int64_t>& shape);

  void Tensor(std::string_view name, int type, const std::vector<int64_t>& shape, std::string_view bytes);
  void Ints(std::string_view name, const std::vector<int64_t>& values);  // one axis
  void Scalar(std::string_view name, float value);                       // of shape [1]
  // Adds a node and returns the name of its output.
  std::string Node(std::string_view type, std::span<const std::string> inputs, std::string output,
                   std::initializer_list<OnnxAttribute> attributes = {});
  std::string Node(std::string_view type, std::initializer_list<std::string> inputs, std::string output,
                   std::initializer_list<OnnxAttribute> attributes = {}) {
    return Node(type, std::span(inputs.begin(), inputs.size()), std::move(output), attributes);
  }
  // With several outputs. The inputs of the node that are not given are "".
  void Nodes(std::string_view type, std::span<const std::string> inputs, std::span<const std::string> outputs,
             std::span<const OnnxAttribute> attributes);
  void Metadata(std::string_view key, std::string_view value);
  size_t bytes() const { return graph_.bytes().size(); }
  // The bytes of the file.
  std::string Finish(std::string_view name);

 private:
  const int opset_;
  OnnxMessage graph_, metadata_;
};

}  // namespace medley::worker
