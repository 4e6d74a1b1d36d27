# How all of Hone is compiled: warnings, and sanitizers where a preset asks for them.

# Overridden methods and matchers leave arguments unused by design, in our code and in what TableGen writes.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)

# Packages name more libraries than are used, and each costs time at every start.
add_link_options(LINKER:--as-needed)

# What one clone compiled serves all: ccache sees paths inside the sources as relative ones, and knows a precompiled header, which
# holds absolute paths, by a sum of what it is made from (hone_precompiled_headers). CMake would also name the header's source, as an
# absolute path.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
set(HONE_CCACHE CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros)
set(HONE_SANITIZE "" CACHE STRING "Sanitizers for all of Hone, as -fsanitize= takes them")
if(HONE_SANITIZE)
  # Debug information would name the build folder, which no other build could then use.
  list(APPEND HONE_CCACHE CCACHE_NOHASHDIR=1)
  add_compile_options(-ffile-compilation-dir=.)
endif()
foreach(language C CXX)
  if(CMAKE_${language}_COMPILER_LAUNCHER STREQUAL "ccache")
    set(CMAKE_${language}_COMPILER_LAUNCHER
      env ${HONE_CCACHE} ccache)
  endif()
endforeach()

option(HONE_FUZZ "Build the fuzz targets with libFuzzer" OFF)
if(HONE_SANITIZE)
  # LLVM's own libraries are not instrumented: their types have no type information that -fsanitize=vptr could check.
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(HONE_SANITIZE MATCHES "undefined")
    # Kernels prefetch past the end of operands, and add offsets to the null pointers of empty ones, which they do not read. What is not
    # a kernel calls compiled programs, whose functions have no hash of their type before them that -fsanitize=function could check.
    add_compile_options($<IF:$<BOOL:$<TARGET_PROPERTY:HONE_KERNELS>>,-fno-sanitize=pointer-overflow,-fno-sanitize=function>)
  endif()
  if(HONE_FUZZ)
    # Kernels read no files: without coverage their objects are those of the preset asan, and come from ccache.
    add_compile_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:HONE_KERNELS>>>:-fsanitize=fuzzer-no-link>)
  endif()
  add_link_options(-fsanitize=${HONE_SANITIZE} -fno-sanitize=vptr)
endif()
