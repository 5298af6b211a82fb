# ASan and UBSan for every target, so that libraries and tests agree.
if(HALFSCOPE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# The same under libFuzzer, which follows the paths that an input takes; its driver is linked to the targets alone.
if(HALFSCOPE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HALFSCOPE_FUZZ needs clang++, for its libFuzzer; 'cmake --preset fuzz' chooses it")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
