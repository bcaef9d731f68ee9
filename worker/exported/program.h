// A model as torch.export.save wrote it: a graph of ATen calls over named values, and the tensors that belong to it.
//
// Plain values, read from an archive (archive.h) that nobody trusts: every name, index and size has been checked, so
// that users of a Program need not. Nothing of it has been executed. No torch.
//
// Source of the fields: torch._export.serde.schema of PyTorch 2.5 to 2.9.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace medley::worker::exported {

// By the numbers of the file's schema.
enum class ScalarType : uint8_t {
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kComplex32 = 9,
  kComplex64 = 10,
  kComplex128 = 11,
  kBool = 12,
  kBFloat16 = 13,
};
size_t BytesOf(ScalarType type);
std::string_view NameOf(ScalarType type);  // "float32"

// A size: a number, or an expression over symbols as SymPy writes it ("s0", "4*s0", "s0//2").
struct SymInt {
  int64_t value = 0;       // where `expression` is empty
  std::string expression;  // not empty: depends on the batch
  bool operator==(const SymInt&) const = default;
};

struct TensorMeta {
  ScalarType type = ScalarType::kFloat32;
  std::vector<SymInt> sizes;
  bool requires_grad = false;
  bool operator==(const TensorMeta&) const = default;
};

struct None {
  bool operator==(const None&) const = default;
};
// The value that a graph input or a node defines: a tensor, or a symbolic number (Program::tensors has the former).
struct ValueRef {
  std::string name;
  bool operator==(const ValueRef&) const = default;
};
struct MemoryFormat {
  int number = 0;  // of the schema: 1 contiguous, 2 channels last, 3 channels last 3d, 4 preserve
  bool operator==(const MemoryFormat&) const = default;
};
struct Layout {
  int number = 0;
  bool operator==(const Layout&) const = default;
};
struct Device {
  std::string type;
  int index = -1;
  bool operator==(const Device&) const = default;
};
using IntOrRef = std::variant<int64_t, ValueRef>;

// An argument of a call.
using Argument =
    std::variant<None, ValueRef, std::vector<ValueRef>, std::vector<std::optional<ValueRef>>, int64_t,
                 std::vector<int64_t>, std::vector<IntOrRef>, double, std::vector<double>, bool, std::vector<bool>,
                 std::string, std::vector<std::string>, ScalarType, MemoryFormat, Layout, Device>;
// A symbolic int argument that refers to a node is a ValueRef; one that is a number is an int64_t.

struct NamedArgument {
  std::string name;
  Argument value;
  bool keyword = false;
  bool operator==(const NamedArgument&) const = default;
};

struct Node {
  std::string target;  // "aten.linear.default": without "torch.ops."; or "_operator.mul" on symbolic numbers
  std::vector<NamedArgument> inputs;
  // The values that it defines. A call that returns a list has all of them; one that returns nothing has none; "" for a
  // result that the file leaves out.
  std::vector<std::string> outputs;
  bool returns_list = false;  // its one result is a list of tensors, `outputs`
  std::string module_path;    // "encoder.layers.0.norm1"; "" at the top
  std::string module_type;    // "torch.nn.modules.normalization.LayerNorm"
  std::string source;         // "make.py:12, in forward: x = self.norm(x)", the innermost line; may be empty
  bool operator==(const Node&) const = default;
};

enum class InputKind { kUser, kParameter, kBuffer, kConstant };
struct Input {
  InputKind kind = InputKind::kUser;
  std::string value;  // the name of the value in the graph
  std::string name;   // of the parameter or buffer in the module: "encoder.layers.0.norm1.weight"; of an input: the
                      // name of the argument of forward
  bool persistent = true;  // kBuffer
};

enum class OutputKind { kUser, kLoss, kBufferMutation, kUserInputMutation };
struct Output {
  OutputKind kind = OutputKind::kUser;
  std::string value;
  std::string target;  // kBufferMutation: the name of the buffer
};

// The bytes of a parameter, buffer or constant. Several may share a storage.
struct StoredTensor {
  ScalarType type = ScalarType::kFloat32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // in elements
  int storage = 0;               // tensors of the same storage share memory
  // The storage. Points into a mapping of the file that Program::mapping keeps, unaligned.
  std::span<const std::byte> bytes;
  bool requires_grad = false;
  // The entry of the archive that has the storage, and its checksum (CRC-32), which CheckContents (archive.h) compares.
  std::span<const std::byte> entry;
  uint32_t checksum = 0;
};

// Inclusive; nullopt: unbounded.
struct Range {
  std::optional<int64_t> least, most;
};

struct Program {
  std::string writer;  // PyTorch version, "2.9.1+cpu"; "" unknown
  int schema_major = 0, schema_minor = 0;
  std::map<std::string, int64_t> opset;  // "aten" -> 10
  std::vector<Input> inputs;
  std::vector<Node> nodes;  // in an order in which each uses only values that are defined before it
  std::vector<Output> outputs;
  std::map<std::string, TensorMeta> tensors;   // by value
  std::map<std::string, SymInt> numbers;       // by value: symbolic ints
  std::map<std::string, Range> ranges;         // by symbol
  std::map<std::string, StoredTensor> stored;  // by Input::name of parameters, buffers and constants
  bool in_file = false;                        // the bytes of stored tensors are of a mapped file, not of memory
  std::string digest;                          // of the archive's directory: other contents have another one
  std::shared_ptr<const void> mapping;
};

}  // namespace medley::worker::exported
