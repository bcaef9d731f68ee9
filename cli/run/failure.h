// What `medley run` says at the end of a failed run: the cause first, once, then where to look.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace medley::cli {

// `failures`: a message each, the cause first. The first is printed after "medley: ", its further sentences and the
// other failures below it, each sentence once; `logs` (files to look into) last. Pure. Empty: no failure.
std::vector<std::string> FailureLines(const std::vector<std::string>& failures,
                                      const std::vector<std::filesystem::path>& logs);

// The logs of the pods that the message names, else of the job's coordinators, as the process node keeps them below
// `run_folder`; the newest last, at most three. Empty: there is none, or the folder cannot be read.
std::vector<std::filesystem::path> LogsOf(const std::filesystem::path& run_folder, const std::string& message);

}  // namespace medley::cli
