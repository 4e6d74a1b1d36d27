# Two kinds of code live in this project and never include each other: the compiler (MLIR, no exceptions) and the
# runtime (no LLVM). One function a kind. A folder is a library: its sources are not listed.

# hone_add_library(NAME [SOURCES...]): of the folder's sources, where none are named.
function(hone_add_library name)
  set(sources ${ARGN})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(${name} STATIC ${sources})
endfunction()

# hone_precompiled_headers(NAME STATIC|EXECUTABLE HEADERS headers... [DEPENDS targets...] [INCLUDES folders...] [LINKS libs...]):
# headers that many sources read, parsed once for the targets that hone_reuse_headers() is called for, which must be compiled with
# the same options; sources still include what they need. ccache knows them by a sum of their text with its macros, preprocessed with
# the flags of the build type: assertions would name the folder, and no other clone would find what this one compiled.
function(hone_precompiled_headers name kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS;INCLUDES;LINKS" ${ARGN})
  if(kind STREQUAL "EXECUTABLE") # whose code is compiled as such
    add_executable(${name} ${PROJECT_SOURCE_DIR}/cmake/Pch.cpp)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  else()
    add_library(${name} ${kind} ${PROJECT_SOURCE_DIR}/cmake/Pch.cpp)
  endif()
  target_include_directories(${name} SYSTEM PRIVATE ${ARG_INCLUDES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir)
  set(sum ${folder}/cmake_pch.hxx.pch.sum)
  string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" flags)
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS} ${${flags}}")
  # Those that the compiler has of its own stay behind those of its libraries.
  set(included $<FILTER:$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>>,EXCLUDE,^/usr/include$>)
  # A copy: beside the precompiled header, the compiler would take that instead of the text.
  add_custom_command(OUTPUT ${sum}
    COMMAND ${CMAKE_COMMAND} -E copy cmake_pch.hxx cmake_pch.hxx.h
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -std=c++${CMAKE_CXX_STANDARD} -E -P -dD
      "$<$<BOOL:${included}>:-isystem$<JOIN:${included},;-isystem>>"
      -include cmake_pch.hxx.h ${PROJECT_SOURCE_DIR}/cmake/Pch.cpp -o cmake_pch.hxx.ii -MD -MF cmake_pch.hxx.ii.d -MT ${sum}
    COMMAND ${CMAKE_COMMAND} -E sha256sum cmake_pch.hxx.ii > ${sum}
    COMMAND ${CMAKE_COMMAND} -E rm cmake_pch.hxx.ii
    DEPENDS ${ARG_DEPENDS} DEPFILE ${folder}/cmake_pch.hxx.ii.d WORKING_DIRECTORY ${folder} COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Summing up ${name}")
  add_custom_target(${name}Sum DEPENDS ${sum})
  add_dependencies(${name} ${name}Sum)
endfunction()

# Headers that most of the runtime and of the unit tests read.
set(HONE_RUNTIME_HEADERS absl/functional/function_ref.h absl/status/statusor.h algorithm array atomic charconv chrono cmath cstdint cstdio cstring
  filesystem functional iostream limits map memory mutex numeric optional set span sstream string string_view thread unordered_map utility vector)

# hone_reuse_headers(TARGET NAME LINKS...): those of NAME, or of NAMEOpenMP where the target links OpenMP.
function(hone_reuse_headers target name)
  if(OpenMP::OpenMP_CXX IN_LIST ARGN)
    string(APPEND name OpenMP)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# What the compiler uses of MLIR, linked statically: the dynamic linker would look up 50,000 symbols of libMLIR.so at every start. LLVM stays
# a shared library, for which Debian's MLIR is built.
set(HONE_MLIR_LIBRARIES
  MLIRRegisterAllDialects
  MLIRRegisterAllExtensions
  MLIRRegisterAllPasses
  MLIRBuiltinToLLVMIRTranslation
  MLIRGPUToLLVMIRTranslation
  MLIRLLVMToLLVMIRTranslation
  MLIRNVVMToLLVMIRTranslation
  MLIRLspServerLib
  MLIROptLib
  MLIRReduceLib)

# hone_compiler_library(NAME [SOURCES...] [MLIR_HEADERS] [DEPENDS targets...] [LINKS libs...]). With MLIR_HEADERS the precompiled
# headers are those of MLIR alone: for libraries few of whose sources read the operations of `hone` or `onnx`. A program that links
# one names LLVM first: the dynamic linker goes through the libraries in this order.
function(hone_compiler_library name)
  cmake_parse_arguments(ARG "MLIR_HEADERS" "" "DEPENDS;LINKS" ${ARGN})
  hone_add_library(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} ${HONE_MLIR_LIBRARIES} LLVM)
  target_link_options(${name} INTERFACE $<TARGET_FILE:LLVM>)
  if(ARG_MLIR_HEADERS)
    hone_reuse_headers(${name} MlirPch)
  else()
    hone_reuse_headers(${name} HonePch)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# hone_tablegen(TARGET FILE.td OUT.inc ACTIONS...): appends to the folder's generated files.
macro(hone_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN})
endmacro()

# hone_unit_test(NAME sources... [LINKS libs...]): the program build/test/unit/NAMETests, which lit runs case by case.
function(hone_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_executable(${name}Tests ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name}Tests PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}Tests PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  hone_reuse_headers(${name}Tests HoneTestPch ${ARG_LINKS})
  set_target_properties(${name}Tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
endfunction()

# hone_commands(TARGET FOLDER NAMES...): the commands of a program. Adds <name>.cpp of this folder for each, which defines k<Name>Command,
# and makes FOLDER/commands.inc, a HONE_COMMAND(<Name>) for each, which the sources of TARGET include.
function(hone_commands target folder)
  set(rows "")
  foreach(name IN LISTS ARGN)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp)
    string(SUBSTRING ${name} 0 1 first)
    string(SUBSTRING ${name} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND rows "HONE_COMMAND(${first}${rest})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/commands/${folder}/commands.inc CONTENT "${rows}")
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/commands)
endfunction()

# hone_install(TARGET COMPONENT): installs a program or a library. Its RUNPATH, here and where it is installed, has the folders of what
# it links with that the system does not look in. CMake would fill up the one of the build tree for the installer to write over: with
# an empty element, which means the current folder, and a library that happens to lie there would be loaded.
function(hone_install target component)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} RUNTIME COMPONENT ${component} LIBRARY COMPONENT ${component})
endfunction()
