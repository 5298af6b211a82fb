# ASan and UBSan for every target, so that libraries and tests agree.
if(HALFSCOPE_SANITIZE OR HALFSCOPE_FUZZ)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# libFuzzer follows the paths that an input takes through these sources. Its driver is linked to the fuzz targets alone.
if(HALFSCOPE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HALFSCOPE_FUZZ needs clang++, for its libFuzzer; 'cmake --preset fuzz' chooses it")
  endif()
  set(halfscope_fuzz_options -fsanitize=fuzzer-no-link)
endif()
