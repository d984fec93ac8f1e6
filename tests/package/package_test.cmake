# SPDX-License-Identifier: Apache-2.0
# The installed package works, and so does the example in README.md:
#   cmake -DBUILD=... -DSOURCE=... -DC_COMPILER=... -DLIBDIR=... -DGENERATOR=... -P package_test.cmake
set(work ${BUILD}/package_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Two ranks started by one shell: its process id is what they agree on to meet.
function(run_two_ranks program)
  execute_process(COMMAND sh -c "HOCKET_RANK=1 HOCKET_NRANKS=2 '${program}' & HOCKET_RANK=0 HOCKET_NRANKS=2 '${program}' \
                                 && wait $!"
                  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result TIMEOUT 60)
  message(STATUS "${program}:\n${output}")
  if(NOT result EQUAL 0 OR NOT output MATCHES "rank 0 of 2: 3" OR NOT output MATCHES "rank 1 of 2: 3")
    message(FATAL_ERROR "the example failed: ${result}")
  endif()
endfunction()

# The first C block of README.md.
file(READ ${SOURCE}/README.md readme)
string(FIND "${readme}" "```c\n" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "README.md has no C example")
endif()
math(EXPR begin "${begin} + 5")
string(SUBSTRING "${readme}" ${begin} -1 rest)
string(FIND "${rest}" "```" end)
string(SUBSTRING "${rest}" 0 ${end} example)
file(WRITE ${work}/example.c "${example}")

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package -B ${work}/cmake -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_C_COMPILER=${C_COMPILER} -DEXAMPLE=${work}/example.c)
run(${CMAKE_COMMAND} --build ${work}/cmake)
run_two_ranks(${work}/cmake/example)

set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run(sh -c "${C_COMPILER} -std=c99 -Wall -Wextra -Werror '${work}/example.c' $(pkg-config --cflags --libs hocket) \
           -Wl,-rpath,$(pkg-config --variable=libdir hocket) -o '${work}/example'")
run_two_ranks(${work}/example)

if(EXISTS ${prefix}/bin/hocket-perf)
  run(${prefix}/bin/hocket-perf --version)
endif()
