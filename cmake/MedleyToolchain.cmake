# Settings for all targets: language, warnings, sanitizers, ccache, linker.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")

# __FILE__ in messages starts at the root of the sources: programs say nothing of the machine that built them. ccache
# leaves the value of this option out of its hashes.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC would collect garbage from 128 MiB on, which costs a seventh of the compile time; a batch allocates a few hundred MiB
  # in all. The value is in KiB.
  add_compile_options(--param=ggc-min-heapsize=2097152)
endif()

option(MEDLEY_WERROR "Warnings are errors" OFF)
set(MEDLEY_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers and __TIME__ need the sloppiness. NOHASHDIR lets checkouts share the cache. Depend mode avoids a
  # run of the preprocessor on a cache miss. Without include_file_mtime and include_file_ctime, ccache keeps no object of
  # a file that was edited while it was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(medley_warnings INTERFACE)
target_compile_options(medley_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  $<$<BOOL:${MEDLEY_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A batch of sources is one translation unit. GCC therefore treats each source as a header and would warn about types
  # in anonymous namespaces.
  target_compile_options(medley_warnings INTERFACE -Wno-subobject-linkage)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports these falsely for std::string's operator+ (GCC bug 105651). ASan finds real errors of these kinds.
  target_compile_options(medley_warnings INTERFACE
    -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

if(MEDLEY_SANITIZE)
  add_compile_options(-fsanitize=${MEDLEY_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MEDLEY_SANITIZE})
  if(MEDLEY_SANITIZE STREQUAL "thread")
    # Protobuf's headers would give its maps two more members, which Debian's library does not know. What libstdc++ needs
    # to know is kept.
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()
