# Debian 12 packages; `./dev setup` installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(EXPAT REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core pull)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# Debian's gloo has no usable CMake package, so find its library and headers.
find_library(GLOO_LIBRARY gloo REQUIRED)
find_path(GLOO_INCLUDE gloo/allreduce.h REQUIRED)
add_library(medley_gloo INTERFACE)
target_include_directories(medley_gloo SYSTEM INTERFACE ${GLOO_INCLUDE})
target_link_libraries(medley_gloo INTERFACE ${GLOO_LIBRARY} Threads::Threads)

# LibTorch: Debian's 1.13, or with -DMEDLEY_TORCH=DIR a newer one: the folder torch of an installed wheel of PyTorch, or an
# unpacked LibTorch. Only worker/model, worker/aten and worker/torchscript may link it (tests/lint/check_layers.py).
set(MEDLEY_TORCH "" CACHE PATH "A LibTorch of PyTorch 2.7 or newer instead of Debian's: a folder with include/ and lib/")
add_library(medley_torch INTERFACE)
if(MEDLEY_TORCH STREQUAL "")
  find_library(TORCH_LIBRARY torch REQUIRED)
  find_library(TORCH_CPU_LIBRARY torch_cpu REQUIRED)
  find_library(C10_LIBRARY c10 REQUIRED)
  find_path(TORCH_INCLUDE torch/csrc/api/include/torch/torch.h REQUIRED)
  target_link_libraries(medley_torch INTERFACE ${TORCH_LIBRARY} ${TORCH_CPU_LIBRARY} ${C10_LIBRARY} glog gflags)
else()
  set(TORCH_INCLUDE ${MEDLEY_TORCH}/include)
  foreach(needed include/torch/csrc/api/include/torch/version.h lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so)
    if(NOT EXISTS ${MEDLEY_TORCH}/${needed})
      message(FATAL_ERROR "MEDLEY_TORCH: ${MEDLEY_TORCH} has no ${needed}: it must be the folder torch of an installed "
                          "wheel of PyTorch, or an unpacked LibTorch")
    endif()
  endforeach()
  file(STRINGS ${MEDLEY_TORCH}/include/torch/csrc/api/include/torch/version.h TORCH_NUMBERS
       REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  string(REGEX MATCHALL "[0-9]+" TORCH_NUMBERS "${TORCH_NUMBERS}")
  list(JOIN TORCH_NUMBERS "." TORCH_VERSION)
  if(TORCH_VERSION VERSION_LESS 2.7)
    message(FATAL_ERROR "MEDLEY_TORCH: ${MEDLEY_TORCH} has PyTorch ${TORCH_VERSION}; 2.7 is the first whose libraries "
                        "have the C++ ABI of Debian 12")
  endif()
  message(STATUS "LibTorch ${TORCH_VERSION} of ${MEDLEY_TORCH}")
  # The wheel's libraries let symbols out of the oneDNN and of the libstdc++ that are linked into them: Debian's oneDNN
  # fails, and std::filesystem::remove_all crashes, unless Debian's libraries come first.
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  target_link_options(medley_torch INTERFACE -Wl,--push-state,--no-as-needed,-lstdc++,${DNNL_LIBRARY},--pop-state)
  target_link_libraries(medley_torch INTERFACE ${MEDLEY_TORCH}/lib/libtorch.so ${MEDLEY_TORCH}/lib/libtorch_cpu.so
                                               ${MEDLEY_TORCH}/lib/libc10.so)
  target_link_options(medley_torch INTERFACE -Wl,-rpath,${MEDLEY_TORCH}/lib)
endif()

# CUDA and NCCL, with -DMEDLEY_CUDA=ON: the wheels nvidia-* beside a wheel of PyTorch with CUDA. No compiler of CUDA is needed,
# so CMake's own targets, which look for one, do not fit. Only worker/device may link it.
option(MEDLEY_CUDA "Compute on GPUs; needs MEDLEY_TORCH of a wheel with CUDA (./dev setup cuda)" OFF)
add_library(medley_cuda INTERFACE)
if(MEDLEY_CUDA)
  if(MEDLEY_TORCH STREQUAL "")
    message(FATAL_ERROR "MEDLEY_CUDA needs -DMEDLEY_TORCH=DIR of a wheel of PyTorch with CUDA: `./dev setup cuda` installs "
                        "one for the preset cuda")
  endif()
  file(REAL_PATH ${MEDLEY_TORCH} torch_folder)
  get_filename_component(nvidia ${torch_folder}/../nvidia ABSOLUTE)
  foreach(needed ${torch_folder}/lib/libtorch_cuda.so ${torch_folder}/lib/libc10_cuda.so
          ${nvidia}/cuda_runtime/include/cuda_runtime_api.h ${nvidia}/cuda_runtime/lib/libcudart.so.12
          ${nvidia}/cuda_nvcc/include/crt/host_defines.h ${nvidia}/cuda_cccl/include/nv/target ${nvidia}/nccl/include/nccl.h ${nvidia}/nccl/lib/libnccl.so.2)
    if(NOT EXISTS ${needed})
      message(FATAL_ERROR "MEDLEY_CUDA: there is no ${needed}: ${MEDLEY_TORCH} must be of a wheel of PyTorch for CUDA 12, with "
                          "the wheels that cmake/cuda-wheels.txt lists")
    endif()
  endforeach()
  target_include_directories(medley_cuda SYSTEM INTERFACE ${nvidia}/cuda_runtime/include ${nvidia}/cuda_nvcc/include
                                                          ${nvidia}/cuda_cccl/include ${nvidia}/nccl/include)
  target_link_libraries(medley_cuda INTERFACE ${nvidia}/cuda_runtime/lib/libcudart.so.12 ${nvidia}/nccl/lib/libnccl.so.2)
  target_link_options(medley_cuda INTERFACE -Wl,-rpath,${nvidia}/cuda_runtime/lib:${nvidia}/nccl/lib)
  # In the image worker-cuda (deploy/docker/rootfs) the wheels are in /opt/wheels.
  target_link_options(medley_torch INTERFACE
    -Wl,-rpath,/opt/wheels/torch/lib:/opt/wheels/nvidia/cuda_runtime/lib:/opt/wheels/nvidia/nccl/lib)
  # LibTorch finds its operators for CUDA only if the library is loaded, though nothing names a symbol of it.
  target_link_options(medley_torch INTERFACE
    -Wl,--push-state,--no-as-needed,${torch_folder}/lib/libtorch_cuda.so,--pop-state)
endif()
target_include_directories(medley_torch SYSTEM INTERFACE ${TORCH_INCLUDE} ${TORCH_INCLUDE}/torch/csrc/api/include)

# oneDNN: LibTorch links it already. Its sgemm supports processors that Debian's OpenBLAS does not recognise
# and treats as a Pentium 4.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
add_library(medley_dnnl INTERFACE)
target_include_directories(medley_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(medley_dnnl INTERFACE ${DNNL_LIBRARY})
