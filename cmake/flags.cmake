# What we compile with: optimisation per build type, warnings, sanitizers, linker, ccache.

set(GANTRY_SANITIZE "" CACHE STRING "'', 'address,undefined', 'thread' or 'fuzz'")
option(GANTRY_WERROR "Warnings are errors" ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
endif()

# Assertions (common/assert.h) are on in every build, so NDEBUG is never defined. Without debug
# information an object is a tenth as large (7.9 and 0.7 MB of a batch of tests); names of functions
# are in the symbol table all the same. -DGANTRY_DEBUG_INFO=-g1 brings lines for a
# debugger; the sanitizers, whose reports name lines, have them always.
set(GANTRY_DEBUG_INFO "-g0" CACHE STRING "-g0, -g1 or -g: debug information of every object")
if(GANTRY_SANITIZE)
  set(debug_info -g1)
else()
  set(debug_info ${GANTRY_DEBUG_INFO})
endif()
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_DEBUG "-O1 ${debug_info}")
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 ${debug_info}")
endforeach()

# What gantry_quick() gives to code that computes little. In the debug build the compiler does not
# optimise it, which saves 11 to 31 % of its time; in the release build it optimises less (-O1),
# which saves 19 to 24 %. Sanitizers make code slow enough as it is.
if(NOT GANTRY_SANITIZE)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(GANTRY_QUICK_FLAGS -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(GANTRY_QUICK_FLAGS -O1)
  endif()
endif()

set(gantry_flags -Wall -Wextra -Wnon-virtual-dtor -fno-omit-frame-pointer)
if(GANTRY_WERROR)
  list(APPEND gantry_flags -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these wrongly in inlined library code (GCC bugs 105329, 105593, 107532).
  list(APPEND gantry_flags -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
              -Wno-stringop-overread -Wno-array-bounds)
endif()

if(GANTRY_SANITIZE STREQUAL "fuzz")
  set(gantry_sanitize -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
elseif(GANTRY_SANITIZE)
  set(gantry_sanitize -fsanitize=${GANTRY_SANITIZE} -fno-sanitize-recover=all)
endif()
if(GANTRY_SANITIZE STREQUAL "thread")
  list(APPEND gantry_sanitize -Wno-tsan)  # Asio's fences, which ThreadSanitizer does not model
endif()

string(JOIN " " gantry_flags_text ${gantry_flags} ${gantry_sanitize})
# As text in the language flags, so that the shared precompiled header gets the very same ones.
# -Wnon-virtual-dtor is C++ only; there is no C code but what a test may bring.
set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} ${gantry_flags_text}")
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -D_GLIBCXX_ASSERTIONS")
endif()
if(gantry_sanitize)
  add_link_options(${gantry_sanitize})
endif()

find_program(GANTRY_GOLD ld.gold)  # in Debian's binutils; links several times faster than ld.bfd
if(GANTRY_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=gold)
endif()

# ccache reads which headers a file needs from what the compiler writes for ninja (depend mode), so
# it does not preprocess a file before it is compiled.
# One cache for all build folders and clones: no working directory in the key, and the precompiled
# header lies outside of the build folders (targets.cmake), so a file compiled once is free
# everywhere. Comments count: a precompiled header with other ones is not the same file to
# #pragma once.
find_program(GANTRY_CCACHE ccache)
if(GANTRY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1 CCACHE_COMMENTS=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${GANTRY_CCACHE})
endif()
