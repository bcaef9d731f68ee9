#include "localcluster/node/launch_plan.h"

#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/env_expansion.h"
#include "localcluster/node/env_policy.h"
#include "localcluster/node/termination_log.h"

namespace medley::localcluster {
namespace {

std::string WithoutTag(const std::string& image) {
  const size_t slash = image.rfind('/');
  const size_t from = slash == std::string::npos ? 0 : slash;
  const size_t end = image.find_first_of(":@", from);
  return image.substr(0, end);
}

std::vector<std::string> Strings(const kube::Json& array) {
  std::vector<std::string> strings;
  for (const kube::Json& value : array) {
    if (value.is_string()) strings.push_back(value.get<std::string>());
  }
  return strings;
}

}  // namespace

absl::StatusOr<std::filesystem::path> FindProgram(const std::map<std::string, std::filesystem::path>& images,
                                                  const std::string& image) {
  const std::string untagged = WithoutTag(image);
  for (const std::string& name : {image, untagged, untagged.substr(untagged.rfind('/') + 1)}) {
    if (const auto it = images.find(name); it != images.end()) return it->second;
  }
  std::string known;
  for (const auto& [name, path] : images) known += (known.empty() ? "" : ", ") + name;
  return base::NotFound("image '{}' is not in this node's table of images: {}", image, known);
}

absl::Status CheckProgram(const std::string& command, const std::filesystem::path& program, const std::string& image) {
  if (std::filesystem::path(command).filename() == program.filename()) return absl::OkStatus();
  return base::PermissionDenied("command '{}' is not the program '{}' of image '{}'", command,
                                program.filename().string(), image);
}

absl::StatusOr<SpawnSpec> PlanLaunch(const kube::Object& pod, const kube::Json& container,
                                     const std::filesystem::path& program, const LaunchContext& context,
                                     const DataSource& source) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ContainerMounts(container, context.volumes));
  MEDLEY_ASSIGN_OR_RETURN(const auto declared, ContainerEnv(pod, container, context.facts, source));
  for (const auto& [name, value] : declared) MEDLEY_RETURN_IF_ERROR(CheckVariableName(name));
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto it = declared.find(std::string(name));
    return it == declared.end() ? std::nullopt : std::optional(it->second);
  };
  std::vector<Mount> paths = mounts;
  paths.push_back({"", TerminationMessagePath(container), context.termination_log.string()});
  const auto real = [&](const std::string& text) { return RewritePaths(ExpandVariables(text, lookup), paths); };

  SpawnSpec spec;
  spec.confined = true;
  spec.program = program.string();
  const std::vector<std::string> command = Strings(kube::GetArray(container, "command"));
  if (!command.empty()) {
    MEDLEY_RETURN_IF_ERROR(CheckProgram(command[0], program, kube::GetString(container, "image")));
  }
  spec.arguments.push_back(program.string());
  for (size_t i = 1; i < command.size(); ++i) spec.arguments.push_back(real(command[i]));
  for (const std::string& argument : Strings(kube::GetArray(container, "args")))
    spec.arguments.push_back(real(argument));

  std::map<std::string, std::string> variables = context.inherited;
  variables["PATH"] = kProgramPath;
  variables["HOSTNAME"] = pod.key().name;
  variables["HOME"] = context.folder.string();
  for (const Mount& mount : mounts) variables[MountVariable(mount.volume)] = mount.real_path;
  for (const auto& [name, value] : declared) variables[name] = RewritePaths(value, paths);
  variables["MEDLEY_CONTAINER_ID"] = context.container_id;
  variables["CUDA_VISIBLE_DEVICES"] = context.visible_gpus;
  for (const auto& [name, value] : variables) spec.environment.push_back(name + "=" + value);

  const std::string folder = kube::GetString(container, "workingDir");
  spec.working_folder = folder.empty() ? context.folder.string() : real(folder);
  return spec;
}

}  // namespace medley::localcluster
