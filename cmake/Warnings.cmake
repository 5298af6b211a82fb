# The warnings that every target of this project is compiled with.
add_library(halfscope_warnings INTERFACE)
target_compile_options(halfscope_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast>
  # GCC's takes the enumerators of an enum class for shadows of globals. In a folder's one source a name may hide one of
  # its neighbour's.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>,$<NOT:$<BOOL:${HALFSCOPE_UNITY}>>>:-Wshadow>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HALFSCOPE_WARNINGS_AS_ERRORS}>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${HALFSCOPE_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>
  # A folder's one source: GCC takes the included sources for headers.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HALFSCOPE_UNITY}>>:-Wno-subobject-linkage>)
