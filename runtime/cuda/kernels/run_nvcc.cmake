# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -DPTXAS_LOG=FILE -P run_nvcc.cmake -- COMMAND...: runs nvcc, keeps what it says, and shows it where it failed.
set(command)
set(is_command FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(is_command)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(is_command TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
file(WRITE ${PTXAS_LOG} "${text}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "nvcc ended with ${status}:\n${text}")
endif()
