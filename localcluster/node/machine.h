// What the machine has, which is what a node that is not simulated may offer.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace medley::localcluster {

struct Machine {
  int cpus = 1;                   // on which this process may run
  int64_t memory_bytes = 0;       // physical memory
  std::vector<std::string> gpus;  // of NVIDIA that this process may use, as CUDA_VISIBLE_DEVICES names them

  // "2 CPUs, 23.4 GiB of memory and no GPU".
  std::string ToString() const;
};

// Reads the number of CPUs and the memory from the kernel, and finds the GPUs in `devices`. `visible`: the value of
// CUDA_VISIBLE_DEVICES, null where it is not set.
Machine ThisMachine(const std::filesystem::path& devices = "/dev",
                    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"));

}  // namespace medley::localcluster
