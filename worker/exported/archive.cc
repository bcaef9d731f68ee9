#include "worker/exported/archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/status.h"
#include "worker/exported/program_json.h"
#include "worker/exported/zip.h"

namespace medley::exported {
namespace {

// A file that is mapped as long as this lives.
class Mapping {
 public:
  Mapping(void* data, size_t size) : data_(data), size_(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, size_); }

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* const data_;
  const size_t size_;
};

absl::StatusOr<std::shared_ptr<const Mapping>> Map(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return base::NotFound("reading the model {}: it cannot be opened: {}", path,
                          std::generic_category().message(errno));
  struct stat status {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  void* data =
      regular ? ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  ::close(file);
  if (!regular) return base::InvalidArgument("reading the model {}: it is empty or no regular file", path);
  if (data == MAP_FAILED)
    return base::Internal("reading the model {}: it cannot be mapped: {}", path,
                          std::generic_category().message(error));
  return std::make_shared<const Mapping>(data, static_cast<size_t>(status.st_size));
}

// The folder in which all entries of a PT2 archive are: "model/"; empty if they have no common one.
std::string FolderOf(const Zip& zip) {
  const std::string& first = zip.entries().begin()->first;
  const size_t slash = first.find('/');
  if (slash == std::string::npos) return "";
  const std::string folder = first.substr(0, slash + 1);
  for (const auto& [name, entry] : zip.entries()) {
    if (!name.starts_with(folder)) return "";
  }
  return folder;
}

// The tensors of a JSON config and the files beside it (the layout since PyTorch 2.9).
absl::Status ReadConfig(const Zip& zip, const std::string& folder, const std::string& config,
                        const ReadOptions& options, Program& program) {
  if (zip.Find(folder + config) == nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string text,
                          zip.Read(folder + config, static_cast<size_t>(options.most_json_bytes)));
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrict(text, config));
  const auto tensors = json.is_object() ? json.find("config") : json.end();
  if (tensors == json.end() || !tensors->is_object()) return base::InvalidArgument("{}: it has no 'config'", config);
  std::map<std::string, int> storages;  // by entry
  for (const auto& [name, entry] : tensors->items()) {
    const auto path = entry.is_object() ? entry.find("path_name") : entry.end();
    const auto meta = entry.is_object() ? entry.find("tensor_meta") : entry.end();
    if (path == entry.end() || !path->is_string())
      return base::InvalidArgument("{}: '{}' has no 'path_name'", config, name);
    if (entry.value("use_pickle", false)) {
      return base::Unimplemented("the tensor '{}' of the archive is pickled in a way that is not read", name);
    }
    if (meta == entry.end() || meta->is_null()) continue;  // a custom object
    MEDLEY_ASSIGN_OR_RETURN(StoredTensor tensor, ParseStored(*meta, name));
    const std::string file = folder + config.substr(0, config.rfind('/') + 1) + path->get<std::string>();
    const Zip::Entry* stored = zip.Find(file);
    if (stored == nullptr || stored->deflated) {
      return base::InvalidArgument("the archive has no '{}', or has it compressed, for the tensor '{}'", file, name);
    }
    tensor.bytes = stored->stored;
    tensor.storage =
        storages.try_emplace(file, static_cast<int>(program.stored.size() + storages.size())).first->second;
    MEDLEY_RETURN_IF_ERROR(CheckStored(tensor, name));
    program.stored[name] = std::move(tensor);
  }
  return absl::OkStatus();
}

// Every parameter, buffer and constant of the signature has a tensor of its shape and type.
absl::Status CheckSignature(const Program& program) {
  for (const Input& input : program.inputs) {
    if (input.kind == InputKind::kUser) continue;
    const auto stored = program.stored.find(input.name);
    if (stored == program.stored.end()) return base::InvalidArgument("the archive has no tensor for '{}'", input.name);
    const TensorMeta& meta = program.tensors.at(input.value);
    bool same = meta.type == stored->second.type && meta.sizes.size() == stored->second.sizes.size();
    for (size_t i = 0; same && i < meta.sizes.size(); ++i) {
      same = meta.sizes[i].expression.empty() && meta.sizes[i].value == stored->second.sizes[i];
    }
    if (!same)
      return base::InvalidArgument("the stored tensor '{}' has another shape or type than the graph says", input.name);
  }
  return absl::OkStatus();
}

absl::StatusOr<Program> Read(const Zip& zip, const ReadOptions& options) {
  if (zip.entries().empty()) return base::InvalidArgument("the archive is empty");
  const std::string folder = FolderOf(zip);
  const auto most = static_cast<size_t>(options.most_json_bytes);
  constexpr char kOlder[] =
      "it has pickled weights, as PyTorch before 2.9 writes them: export it with PyTorch 2.9 or newer";
  if (zip.Find(folder + "serialized_exported_program.json") != nullptr) return base::Unimplemented("{}", kOlder);
  if (zip.Find(folder + "models/model.json") == nullptr) {
    return base::InvalidArgument("it is no archive of torch.export.save: it has no models/model.json");
  }
  if (zip.Find(folder + "byteorder") != nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string order, zip.Read(folder + "byteorder", 16));
    if (order != "little") return base::Unimplemented("the archive's numbers are in the byte order '{}'", order);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string json, zip.Read(folder + "models/model.json", most));
  MEDLEY_ASSIGN_OR_RETURN(Program program, ParseProgram(json, options));
  MEDLEY_RETURN_IF_ERROR(ReadConfig(zip, folder, "data/weights/model_weights_config.json", options, program));
  MEDLEY_RETURN_IF_ERROR(ReadConfig(zip, folder, "data/constants/model_constants_config.json", options, program));
  if (program.stored.empty() && zip.Find(folder + "data/weights/model_weights_config.json") == nullptr) {
    return base::Unimplemented("{}", kOlder);
  }
  MEDLEY_RETURN_IF_ERROR(CheckSignature(program));
  return program;
}

}  // namespace

absl::StatusOr<Program> ReadArchive(const std::string& path, const ReadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Mapping> mapping, Map(path));
  const auto annotate = [&](const absl::Status& status) { return base::Annotate(status, "reading the model " + path); };
  const absl::StatusOr<Zip> zip = Zip::Open(mapping->bytes());
  if (!zip.ok()) return annotate(zip.status());
  absl::StatusOr<Program> program = Read(*zip, options);
  if (!program.ok()) return annotate(program.status());
  program->mapping = mapping;
  return program;
}

}  // namespace medley::exported
