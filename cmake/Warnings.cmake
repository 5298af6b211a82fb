# The warnings that every target of this project is compiled with.
add_library(halfscope_warnings INTERFACE)
target_compile_options(halfscope_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HALFSCOPE_WARNINGS_AS_ERRORS}>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${HALFSCOPE_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>
  # A folder's one source: a name may hide one of its neighbour's, and GCC takes the included sources for headers.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HALFSCOPE_UNITY}>>:-Wno-shadow>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HALFSCOPE_UNITY}>>:-Wno-subobject-linkage>)
