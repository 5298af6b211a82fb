# Sources collected by folder and suffix: a new file needs no line here, and no line in any CMakeLists.txt.
#
#   *_simd.cpp         compiled once per instruction set
#   *.cu               kernels of the device: CUDA, or C++ for the simulated device of a build without CUDA
#   *_gpu.cu           what a GPU alone can do: only in a build with CUDA
#   *_cuda.cpp         host code that calls CUDA's runtime: only in a build with CUDA
#   *_simulated.cpp    its counterpart: only in a build without CUDA
#   *_mpi.cpp          host code that calls MPI: only in a build with MPI
#   *_alone.cpp        its counterpart: only in a build without MPI
#   *.cpp              everything else

# The instruction sets, and the options of each; `halfscope bench` compiles its peer for the same.
set(halfscope_isas baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(halfscope_isas baseline avx2 avx512)
  set(halfscope_options_baseline -mno-mmx)  # GCC moves words through MMX registers, which are the x87's
  set(halfscope_options_avx2 -mavx2 -mfma -mf16c)
  set(halfscope_options_avx512
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)
endif()

# Kernels are compiled for speed. Under a sanitizer -O1: -O3 makes the same checks, and takes three to nine times as long to
# compile.
set(halfscope_kernel_optimisation -O3)
# The simulated device is for tests; -O3 takes four times as long to compile as -O2, -O2 a third longer than -O1.
set(halfscope_simulation_optimisation -O1)
# Experiments and their tests take no time when they run. Under a sanitizer -O0 takes half as long to compile as -O1.
set(halfscope_experiments_optimisation -O1)
if(HALFSCOPE_SANITIZE OR HALFSCOPE_FUZZ)
  set(halfscope_kernel_optimisation -O1)
  set(halfscope_simulation_optimisation -O1)
  set(halfscope_experiments_optimisation -O0)
endif()

# halfscope_collect(VARIABLE PATTERN): the files of this folder, and below it, that match and belong to this build.
function(halfscope_collect variable pattern)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${pattern})
  if(HALFSCOPE_WITH_CUDA)
    list(FILTER files EXCLUDE REGEX "_simulated\\.cpp$")
  else()
    list(FILTER files EXCLUDE REGEX "_(cuda\\.cpp|gpu\\.cu)$")
  endif()
  if(HALFSCOPE_WITH_MPI)
    list(FILTER files EXCLUDE REGEX "_alone\\.cpp$")
  else()
    list(FILTER files EXCLUDE REGEX "_mpi\\.cpp$")
  endif()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# halfscope_add_simd_sources(TARGET SOURCES...): the same sources compiled once per instruction set; results do not
# depend on which one runs. GCC may not contract a*b+c into an fma, which rounds once where the two operations round twice.
function(halfscope_add_simd_sources target)
  foreach(isa IN LISTS halfscope_isas)
    set(objects ${target}_${isa})
    add_library(${objects} OBJECT ${ARGN})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${objects} PRIVATE HALFSCOPE_TARGET_ISA=${isa})
    target_compile_options(${objects} PRIVATE
      ${halfscope_kernel_optimisation} -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp-simd ${halfscope_options_${isa}}
      $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
    target_link_libraries(${objects} PRIVATE halfscope_warnings)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# halfscope_add_kernel_library(TARGET FOLDER): a library of the sources below FOLDER, each compiled as its suffix says. In a build
# without CUDA the *.cu files are C++, which a simulated device runs index by index: tests compare every kernel, and
# whole training runs, on machines without a GPU.
function(halfscope_add_kernel_library target folder)
  halfscope_collect(sources "${folder}/*.cpp")
  set(simd_sources ${sources})
  list(FILTER simd_sources INCLUDE REGEX "_simd\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_simd\\.cpp$")
  halfscope_collect(device_sources "${folder}/*.cu")
  if(HALFSCOPE_WITH_CUDA)
    set_source_files_properties(${device_sources} PROPERTIES
      COMPILE_OPTIONS "--fmad=false;--expt-relaxed-constexpr")
  else()
    set_source_files_properties(${device_sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS ${halfscope_simulation_optimisation})
  endif()
  add_library(${target} ${sources} ${device_sources})
  halfscope_group_by_folder(${target})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  halfscope_add_simd_sources(${target} ${simd_sources})
endfunction()

# halfscope_group_by_folder(TARGET): with HALFSCOPE_UNITY the sources of a folder and its subfolders are compiled as one, which
# reads and instantiates their headers once; lib/halfscope is three such groups. Names in anonymous namespaces are therefore
# unique in a group. A source with options of its own is compiled alone: the files that match EXCEPT.
function(halfscope_group_by_folder target)
  cmake_parse_arguments(arg "" "EXCEPT" "" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HALFSCOPE_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$<]*\\.cpp$")
  foreach(source IN LISTS sources)
    string(REGEX MATCH "^(halfscope/(io|kernel)|[^/]+)/" folder "${source}")
    string(MAKE_C_IDENTIFIER "${folder}" group)
    if(arg_EXCEPT AND source MATCHES "${arg_EXCEPT}")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    else()
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "_${group}")
    endif()
  endforeach()
endfunction()

# halfscope_move_sources(FROM TARGET SOURCES...): TARGET, an object library with FROM's options, compiles the SOURCES for FROM.
function(halfscope_move_sources from target)
  get_target_property(remaining ${from} SOURCES)
  list(REMOVE_ITEM remaining ${ARGN})
  set_property(TARGET ${from} PROPERTY SOURCES ${remaining})
  add_library(${target} OBJECT ${ARGN})
  halfscope_group_by_folder(${target})
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:${from},INCLUDE_DIRECTORIES>)
  foreach(property COMPILE_OPTIONS LINK_LIBRARIES)
    get_target_property(value ${from} ${property})
    set_property(TARGET ${target} PROPERTY ${property} ${value})
  endforeach()
  target_sources(${from} PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
