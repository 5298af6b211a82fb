# Finding packages of the system, and the message without one of them.

# halfscope_stop_without(PACKAGE DEBIAN_PACKAGE [VERSION]): ends the configuration.
function(halfscope_stop_without package debian_package)
  string(REGEX MATCH "^[0-9.]+" version "${ARGN}")
  set(name ${package})
  if(version)
    string(APPEND name " ${version} or newer")
  endif()
  message(FATAL_ERROR "halfscope needs ${name}, which CMake did not find. "
    "Debian and Ubuntu have it in the package ${debian_package}: apt-get install ${debian_package}")
endfunction()

# halfscope_find(PACKAGE DEBIAN_PACKAGE [OPTIONS...]): find_package(PACKAGE OPTIONS...); without it the configuration ends with
# the name of the Debian package. A macro, because find_package sets variables of its caller.
macro(halfscope_find package debian_package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    halfscope_stop_without(${package} ${debian_package} ${ARGN})
  endif()
endmacro()

# halfscope_find_compiler(COMPILER DEBIAN_PACKAGE): the same for a compiler that a preset names, before project() looks for it.
function(halfscope_find_compiler compiler debian_package)
  if(NOT CMAKE_CXX_COMPILER STREQUAL compiler)
    return()
  endif()
  find_program(HALFSCOPE_COMPILER ${compiler})
  if(NOT HALFSCOPE_COMPILER)
    halfscope_stop_without(${compiler} ${debian_package})
  endif()
endfunction()

# halfscope_find_library(VARIABLE LIBRARY DEBIAN_PACKAGE): the same for a library without a CMake package.
function(halfscope_find_library variable library debian_package)
  find_library(${variable} ${library})
  if(NOT ${variable})
    halfscope_stop_without(${library} ${debian_package})
  endif()
endfunction()
