# What we compile with: optimisation per build type, warnings, sanitizers, linker, ccache.

set(GANTRY_SANITIZE "" CACHE STRING "'', 'address,undefined', 'thread' or 'fuzz'")
option(GANTRY_WERROR "Warnings are errors" ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
endif()

# Assertions (common/assert.h) are on in every build, so NDEBUG is never defined. -g1 keeps function
# names and lines for backtraces at a third of the cost of -g.
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_DEBUG "-O1 -g1")
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -g1")
endforeach()

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

# One cache for all build folders: no working directory in the key, and the precompiled header lies
# outside of the build folders (targets.cmake), so a file compiled once is free everywhere. Comments
# count: a precompiled header with other ones is not the same file to #pragma once.
find_program(GANTRY_CCACHE ccache)
if(GANTRY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_COMMENTS=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${GANTRY_CCACHE})
endif()
