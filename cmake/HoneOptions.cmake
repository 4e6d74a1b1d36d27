# How all of Hone is compiled: warnings, and sanitizers where a preset asks for them.

# Overridden methods and matchers leave arguments unused by design, in our code and in what TableGen writes.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)

# Precompiled headers are compared by content, so that ccache can keep what was compiled with them.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
if(CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache")
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ccache)
endif()

set(HONE_SANITIZE "" CACHE STRING "Sanitizers for all of Hone, as -fsanitize= takes them")
option(HONE_FUZZ "Build the fuzz targets with libFuzzer" OFF)
if(HONE_SANITIZE)
  # LLVM's own libraries are not instrumented: their types have no type information that -fsanitize=vptr could check.
  add_compile_options(-fsanitize=${HONE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(HONE_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
  add_link_options(-fsanitize=${HONE_SANITIZE} -fno-sanitize=vptr)
endif()
