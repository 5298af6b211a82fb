# Finding packages of the system, and the message without some of them.

# halfscope_miss(PACKAGE DEBIAN_PACKAGE [VERSION]): a line for the message that ends the configuration.
function(halfscope_miss package debian_package)
  string(REGEX MATCH "^[0-9.]+" version "${ARGN}")
  set(name ${package})
  if(version)
    string(APPEND name " ${version} or newer")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY halfscope_missing
    "  halfscope needs ${name}, which CMake did not find; on Debian and Ubuntu: apt-get install ${debian_package}\n")
endfunction()

# halfscope_stop_where_missing(): ends the configuration with a line for each package that was missed.
function(halfscope_stop_where_missing)
  get_property(missing GLOBAL PROPERTY halfscope_missing)
  if(missing)
    message(FATAL_ERROR "\n${missing}")
  endif()
endfunction()

# halfscope_stop_without(PACKAGE DEBIAN_PACKAGE [VERSION]): ends the configuration.
function(halfscope_stop_without package debian_package)
  halfscope_miss(${package} ${debian_package} ${ARGN})
  halfscope_stop_where_missing()
endfunction()

# halfscope_look_for(PACKAGE DEBIAN_PACKAGE [OPTIONS...]): find_package(PACKAGE OPTIONS...); halfscope_stop_where_missing names
# it without. A macro, because find_package sets variables of its caller.
macro(halfscope_look_for package debian_package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    halfscope_miss(${package} ${debian_package} ${ARGN})
  endif()
endmacro()

# halfscope_find(PACKAGE DEBIAN_PACKAGE [OPTIONS...]): the same, and the configuration ends at once without it.
macro(halfscope_find package debian_package)
  halfscope_look_for(${package} ${debian_package} ${ARGN})
  halfscope_stop_where_missing()
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

# halfscope_look_for_library(VARIABLE LIBRARY DEBIAN_PACKAGE): as halfscope_look_for, for a library without a CMake package.
function(halfscope_look_for_library variable library debian_package)
  find_library(${variable} ${library})
  if(NOT ${variable})
    halfscope_miss(${library} ${debian_package})
  endif()
endfunction()

# halfscope_find_library(VARIABLE LIBRARY DEBIAN_PACKAGE): as halfscope_find.
function(halfscope_find_library variable library debian_package)
  halfscope_look_for_library(${variable} ${library} ${debian_package})
  halfscope_stop_where_missing()
endfunction()
