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
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)

# Arrow C++ of the wheel that ./dev setup parquet installs; without it there is no target medley-columns.
find_path(MEDLEY_ARROW libarrow.so.2600 PATHS ${CMAKE_SOURCE_DIR}/build/wheels-arrow/pyarrow NO_DEFAULT_PATH
          DOC "The folder pyarrow of cmake/arrow-wheels.txt")
if(MEDLEY_ARROW)
  add_library(medley_arrow INTERFACE)
  target_include_directories(medley_arrow SYSTEM INTERFACE ${MEDLEY_ARROW}/include)
  target_link_libraries(medley_arrow INTERFACE ${MEDLEY_ARROW}/libparquet.so.2600 ${MEDLEY_ARROW}/libarrow.so.2600)
endif()

# LibTorch: Debian's 1.13, or with -DMEDLEY_TORCH=DIR a newer one: the folder torch of an installed wheel of PyTorch, or an
# unpacked LibTorch. Only worker/aten and worker/torchscript may link it (tests/lint/check_layers.py).
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
  foreach(needed lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so)
    if(NOT EXISTS ${MEDLEY_TORCH}/${needed})
      message(FATAL_ERROR "MEDLEY_TORCH: ${MEDLEY_TORCH} has no ${needed}: it must be the folder torch of an installed "
                          "wheel of PyTorch, or an unpacked LibTorch")
    endif()
  endforeach()
  # PyTorch 2.10 moved the macros to a header of their own.
  find_file(TORCH_VERSION_HEADER NAMES torch/headeronly/version.h torch/csrc/api/include/torch/version.h
            PATHS ${TORCH_INCLUDE} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(STRINGS ${TORCH_VERSION_HEADER} TORCH_NUMBERS REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  string(REGEX MATCHALL "[0-9]+" TORCH_NUMBERS "${TORCH_NUMBERS}")
  list(LENGTH TORCH_NUMBERS count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "MEDLEY_TORCH: ${TORCH_VERSION_HEADER} does not state a version of PyTorch")
  endif()
  list(JOIN TORCH_NUMBERS "." TORCH_VERSION)
  if(TORCH_VERSION VERSION_LESS 2.7)
    message(FATAL_ERROR "MEDLEY_TORCH: ${MEDLEY_TORCH} has PyTorch ${TORCH_VERSION}; 2.7 is the first whose libraries "
                        "have the C++ ABI of Debian 12")
  endif()
  message(STATUS "LibTorch ${TORCH_VERSION} of ${MEDLEY_TORCH}")
  # The wheel's libraries let symbols out of the oneDNN, protobuf and libstdc++ that are linked into them: Debian's oneDNN
  # fails, its protobuf calls functions of another version, and std::filesystem::remove_all crashes, unless Debian's
  # libraries come first. tests/gpu/pack checks whose symbols a program gets.
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  find_library(protobuf protobuf REQUIRED NO_CACHE)
  target_link_options(medley_torch INTERFACE -Wl,--push-state,--no-as-needed,-lstdc++,${DNNL_LIBRARY},${protobuf},--pop-state)
  target_link_libraries(medley_torch INTERFACE ${MEDLEY_TORCH}/lib/libtorch.so ${MEDLEY_TORCH}/lib/libtorch_cpu.so
                                               ${MEDLEY_TORCH}/lib/libc10.so)
  target_link_options(medley_torch INTERFACE -Wl,-rpath,${MEDLEY_TORCH}/lib)
  # Its headers' checks name their file, which is nobody's business elsewhere (tests/gpu/pack).
  target_compile_options(medley_torch INTERFACE -fmacro-prefix-map=${TORCH_INCLUDE}/=)
endif()

# CUDA and NCCL, with -DMEDLEY_CUDA=ON: the wheels nvidia-* beside a wheel of PyTorch with CUDA. No compiler of CUDA is needed,
# so CMake's own targets, which look for one, do not fit. Only worker/device and worker/aten/cuda may include it.
option(MEDLEY_CUDA "Compute on GPUs; needs MEDLEY_TORCH of a wheel with CUDA (./dev setup cuda)" OFF)
add_library(medley_cuda INTERFACE)
if(MEDLEY_CUDA)
  if(MEDLEY_TORCH STREQUAL "")
    message(FATAL_ERROR "MEDLEY_CUDA needs -DMEDLEY_TORCH=DIR of a wheel of PyTorch with CUDA: `./dev setup cuda` installs "
                        "one for the preset cuda")
  endif()
  file(REAL_PATH ${MEDLEY_TORCH} torch_folder)
  get_filename_component(nvidia ${torch_folder}/../nvidia ABSOLUTE)
  # The wheels for CUDA 13 share one folder, nvidia/cu13; those for CUDA 12 have one folder each.
  set(cuda_layouts cu13 cuda_runtime cuda_nvcc cuda_cccl nccl)
  list(TRANSFORM cuda_layouts PREPEND ${nvidia}/)
  set(cuda_hint "${MEDLEY_TORCH} must be of a wheel of PyTorch for CUDA, with the wheels that cmake/cuda-wheels.txt lists")
  function(medley_find_in_wheels OUT KIND)  # KIND: file or path (the folder that a header is found in)
    if(KIND STREQUAL "path")
      find_path(found NAMES ${ARGN} PATHS ${cuda_layouts} PATH_SUFFIXES include include/cccl NO_DEFAULT_PATH NO_CACHE)
    else()
      find_file(found NAMES ${ARGN} PATHS ${cuda_layouts} ${torch_folder} PATH_SUFFIXES lib NO_DEFAULT_PATH NO_CACHE)
    endif()
    if(NOT found)
      list(JOIN ARGN " or " names)
      message(FATAL_ERROR "MEDLEY_CUDA: there is no ${names} in ${nvidia} or ${torch_folder}: ${cuda_hint}")
    endif()
    set(${OUT} ${found} PARENT_SCOPE)
  endfunction()
  medley_find_in_wheels(runtime_include path cuda_runtime_api.h)
  medley_find_in_wheels(crt_include path crt/host_defines.h)
  medley_find_in_wheels(cccl_include path nv/target)
  medley_find_in_wheels(nccl_include path nccl.h)
  medley_find_in_wheels(cudart file libcudart.so.13 libcudart.so.12)
  medley_find_in_wheels(nccl file libnccl.so.2)
  medley_find_in_wheels(torch_cuda file libtorch_cuda.so)
  medley_find_in_wheels(c10_cuda file libc10_cuda.so)
  target_include_directories(medley_cuda SYSTEM INTERFACE ${runtime_include} ${crt_include} ${cccl_include} ${nccl_include})
  target_link_libraries(medley_cuda INTERFACE ${cudart} ${nccl})
  set(cuda_folders)  # relative to the folder of the wheels
  foreach(library ${cudart} ${nccl})
    cmake_path(GET library PARENT_PATH folder)
    target_link_options(medley_cuda INTERFACE -Wl,-rpath,${folder})
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${nvidia}/..)
    list(APPEND cuda_folders ${folder})
  endforeach()
  # In the image worker-cuda (deploy/docker/rootfs) the wheels are in /opt/wheels.
  list(TRANSFORM cuda_folders PREPEND :/opt/wheels/)
  list(JOIN cuda_folders "" cuda_folders)
  target_link_options(medley_cuda INTERFACE -Wl,-rpath,/opt/wheels/torch/lib${cuda_folders})
  target_link_options(medley_torch INTERFACE -Wl,-rpath,/opt/wheels/torch/lib${cuda_folders})
  # LibTorch finds its operators for CUDA only if the library is loaded, though nothing names a symbol of it.
  target_link_options(medley_torch INTERFACE
    -Wl,--push-state,--no-as-needed,${torch_cuda},${c10_cuda},--pop-state)
endif()
target_include_directories(medley_torch SYSTEM INTERFACE ${TORCH_INCLUDE} ${TORCH_INCLUDE}/torch/csrc/api/include)

# oneDNN: LibTorch links it already. Its sgemm supports processors that Debian's OpenBLAS does not recognise
# and treats as a Pentium 4.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
add_library(medley_dnnl INTERFACE)
target_include_directories(medley_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(medley_dnnl INTERFACE ${DNNL_LIBRARY} gomp)
