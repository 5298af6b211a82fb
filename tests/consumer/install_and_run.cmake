# Installs the build into a fresh prefix, checks what is installed, then configures, builds and runs the projects of people
# who use it: the consumer beside this file, and the examples.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# build_and_test(NAME SOURCE): a project against the installed library.
function(build_and_test name source)
  run(${CMAKE_COMMAND} -S ${source} -B ${WORK}/${name} -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release)
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/${name} --output-on-failure --no-tests=error)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# A package that names the machine it was built on works nowhere else.
file(GLOB_RECURSE package_files ${WORK}/prefix/*.cmake)
foreach(package_file IN LISTS package_files)
  file(READ ${package_file} content)
  string(FIND "${content}" "${BUILD}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${package_file} names the build folder ${BUILD}")
  endif()
endforeach()

file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix ${WORK}/prefix/include/*)
if(NOT headers)
  message(FATAL_ERROR "no header is installed")
endif()
list(FILTER headers INCLUDE REGEX "/detail/")
if(headers)
  message(FATAL_ERROR "installed, but of a detail/ folder: ${headers}")
endif()

build_and_test(consumer ${SOURCE}/tests/consumer)
build_and_test(examples ${SOURCE}/examples)
