# Installs the build into a fresh prefix, then configures, builds and runs the consumer against it.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
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
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure --no-tests=error)
