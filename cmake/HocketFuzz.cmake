# SPDX-License-Identifier: Apache-2.0
# One libFuzzer binary per *_fuzz.cc beside the code that it prods, and the target `fuzzers` for all of them
# (preset `fuzz`: clang only).
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "HOCKET_BUILD_FUZZERS needs clang: use the preset `fuzz`")
endif()
add_custom_target(fuzzers)
file(GLOB_RECURSE fuzz_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_fuzz.cc
                                               ${PROJECT_SOURCE_DIR}/transports/*_fuzz.cc)
foreach(file ${fuzz_files})
  get_filename_component(name ${file} NAME_WE)
  add_executable(${name} ${file})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/transports)
  target_link_libraries(${name} PRIVATE hocket_objects)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
