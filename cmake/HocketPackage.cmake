# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` gives beside the library, the headers and hocket-perf: the CMake package, the pkg-config file and
# the licence. Both packages are relocatable: they find the prefix from where they lie.

# The version is written twice, here and for users of the header: the same in both.
file(STRINGS ${PROJECT_SOURCE_DIR}/include/hocket/hocket.h version_lines REGEX "^#define HOCKET_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9]+" "." header_version "${version_lines}")
if(NOT header_version STREQUAL ".${PROJECT_VERSION}")
  message(FATAL_ERROR "hocket.h has version ${header_version}, CMakeLists.txt has ${PROJECT_VERSION}")
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hocket)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hocket-config.cmake.in
                              ${PROJECT_BINARY_DIR}/hocket-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0, a minor version may break what used the one before.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hocket-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hocket-config.cmake ${PROJECT_BINARY_DIR}/hocket-config-version.cmake
        DESTINATION ${package_dir})
install(EXPORT hocket-targets NAMESPACE hocket:: DESTINATION ${package_dir})

if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(HOCKET_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(HOCKET_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(HOCKET_PC_PREFIX "\${pcfiledir}/${up}")
  set(HOCKET_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(HOCKET_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(HOCKET_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/hocket.pc.in ${PROJECT_BINARY_DIR}/hocket.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hocket.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Installs into a scratch folder, builds the example of README.md against it in both ways, and runs it on two ranks.
# A sanitizer's runtime would have to be linked into the example, so only ordinary builds do this.
if(HOCKET_BUILD_TESTS AND NOT HOCKET_SANITIZE)
  add_test(NAME package_test COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}
                                     -DC_COMPILER=${CMAKE_C_COMPILER} -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
                                     -DGENERATOR=${CMAKE_GENERATOR}
                                     -P ${PROJECT_SOURCE_DIR}/tests/package/package_test.cmake)
  set_tests_properties(package_test PROPERTIES TIMEOUT 120 LABELS integration)
endif()
