// The folder of one `medley run`: it holds the credentials of the local cluster.
#pragma once

#include <absl/status/status.h>

#include <filesystem>

namespace medley::cli {

// Creates the folder so that only its owner may enter it. Keeps the mode of one that exists. Errors: PermissionDenied
// if it belongs to another user or every user may write to it, who could then exchange the kubeconfig.
absl::Status MakeRunFolder(const std::filesystem::path& folder);

}  // namespace medley::cli
