// The implementation of Divide (cut.h): what is known of values in classify.cc, operations in cut.cc.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/cut/batch_place.h"
#include "worker/cut/cut.h"
#include "worker/cut/tables.h"

namespace medley::worker::cut {

inline constexpr int kNowhere = -1;

// "a.b.c" with depth 2: "a.b".
std::string FirstComponents(const std::string& path, int depth);
// Whether the path of a module is `module` or below it; every path is below "".
bool Within(const std::string& path, const std::string& module);

// Divides one program; used once.
class Divider {
 public:
  Divider(std::shared_ptr<const exported::Program> program, const Options& options)
      : owner_(std::move(program)), program_(*owner_), options_(options) {}

  absl::StatusOr<Cut> Run();

 private:
  // What is known of a value.
  struct Value {
    int node = kNowhere;  // that defines it; kNowhere: an input
    const exported::Input* input = nullptr;
    bool trained = false;     // follows from parameters, statistics, float inputs or chance
    bool from_batch = false;  // follows from an input of the model
    std::string storage;    // the value whose memory it shares, or may share: itself, or the first of a chain of views
    std::vector<int> uses;  // nodes
  };

  absl::Status FindBatch();
  absl::Status FindResult();
  absl::Status CheckModules() const;
  absl::Status CheckSymbols() const;
  void FindShared();
  const std::string& FirstName(const std::string& name) const;
  void Classify();
  void FindUsed();
  void FindEmbeddings();
  bool UsesOwned(int node) const;
  void Group();
  std::string KeyOf(int node) const;
  void MergeForbidden();
  void Join(int first, int last, const std::string& why);
  absl::Status Build();
  void NameTables();
  std::optional<int> BatchAxis(const std::string& value) const;
  absl::StatusOr<int64_t> FloatsPerSample(const std::string& value) const;
  bool IsOwned(const exported::Input& input) const {
    return input.kind == exported::InputKind::kParameter || statistics_.contains(input.name);
  }
  const exported::Node& NodeAt(int node) const { return program_.nodes[static_cast<size_t>(node)]; }
  bool Numeric(int node) const {
    return std::ranges::all_of(NodeAt(node).outputs,
                               [&](const std::string& name) { return program_.numbers.contains(name); }) &&
           !NodeAt(node).outputs.empty();
  }

  const std::shared_ptr<const exported::Program> owner_;
  const exported::Program& program_;
  const Options options_;
  Cut out_;
  std::map<std::string, Value> values_;
  std::map<std::string, BatchPlace> places_;
  std::set<std::string> statistics_;  // names of buffers
  std::vector<bool> used_;            // by node
  std::vector<bool> light_;           // by node: each operation that needs it computes it
  std::vector<int> heavy_;            // nodes, ascending
  std::vector<bool> begins_;          // by position in heavy_: begins an operation
  std::map<int, int> place_;          // of a heavy node in heavy_
  std::map<int, Table> tables_;       // by node
};

}  // namespace medley::worker::cut
