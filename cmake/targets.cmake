# How targets are declared: gantry_library, gantry_program, gantry_test, gantry_fuzz, and the
# precompiled header that they all share.

# gantry_add_folders(a b c): those subfolders that have a CMakeLists.txt.
function(gantry_add_folders)
  foreach(folder ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

# gantry_make_pch(VARIABLE flag ...): sets VARIABLE to the precompiled header for these flags beside
# the common ones. It is made here, at configure time, once per compiler and set of flags, and lies
# in build/.pch: all build folders share it, and so ccache shares objects between them. In another
# clone its bytes differ, but not what it declares: ccache reads the hash of that beside it
# (pch.h.gch.sum, CCACHE_PCH_EXTSUM), and so clones share objects as well. A compiler that cannot
# use it reads the plain header beside it.
function(gantry_make_pch variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/pch.h)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  file(READ ${CMAKE_SOURCE_DIR}/cmake/pch.h text)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} -std=c++20 ${ARGN}")
  set(compiler "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION}")
  string(SHA256 key "${compiler} ${fmt_VERSION} ${flags} ${text}")
  string(SUBSTRING ${key} 0 12 key)
  set(folder ${CMAKE_SOURCE_DIR}/build/.pch/${key})
  set(${variable} ${folder}/pch.h PARENT_SCOPE)
  if(NOT EXISTS ${folder}/pch.h)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/pch.h ${folder}/pch.h COPYONLY)
  endif()
  if(EXISTS ${folder}/pch.h.gch.sum OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  message(STATUS "Precompiling cmake/pch.h")
  separate_arguments(args UNIX_COMMAND "${flags}")
  string(RANDOM suffix)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} ${args} -x c++-header ${folder}/pch.h -o ${folder}/${suffix}.tmp
    RESULT_VARIABLE failed)
  if(failed)
    message(WARNING "cmake/pch.h could not be precompiled; the build will be slower")
    return()
  endif()
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} ${args} -E -P -dD -x c++-header ${folder}/pch.h
    OUTPUT_FILE ${folder}/${suffix}.text)
  file(SHA256 ${folder}/${suffix}.text sum)
  file(REMOVE ${folder}/${suffix}.text)
  file(RENAME ${folder}/${suffix}.tmp ${folder}/pch.h.gch)
  file(WRITE ${folder}/pch.h.gch.sum ${sum})
endfunction()
gantry_make_pch(GANTRY_PCH)
if(GANTRY_QUICK_FLAGS)
  gantry_make_pch(GANTRY_QUICK_PCH ${GANTRY_QUICK_FLAGS})
endif()

# gantry_quick(): targets of this folder and the folders below it, declared from here on, are
# compiled with GANTRY_QUICK_FLAGS: tests, and the code that users wait for least. With RELEASE only
# in the release build, for code that gains less than a tenth at -O0. gantry_quick(OFF) takes that
# back for a folder whose own code computes much.
macro(gantry_quick)
  set(GANTRY_IS_QUICK ${GANTRY_QUICK_FLAGS})
  if("${ARGN}" STREQUAL "OFF" OR
     ("${ARGN}" STREQUAL "RELEASE" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release"))
    set(GANTRY_IS_QUICK)
  endif()
endmacro()

# gantry_pch(target): what every target of ours gets: the precompiled header and the include root.
# A target that asked for another one (gantry_shared_pch) gets that one instead.
function(gantry_pch target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set(pch ${GANTRY_PCH})
  if(GANTRY_IS_QUICK)
    target_compile_options(${target} PRIVATE ${GANTRY_QUICK_FLAGS})
    set(pch ${GANTRY_QUICK_PCH})
  endif()
  if(GANTRY_SHARED_PCH)
    return()
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${pch}>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endfunction()

# gantry_shared_pch(owner header): targets of this folder declared from here on share a header
# precompiled with the types of the library `owner` as well, which must be declared first. To read
# ctld/core's own takes 1.9 s of the 3.2 s that one of its files needs.
# Written <so>, the names in it are the same in every build folder, and ccache shares the objects.
macro(gantry_shared_pch owner header)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(GANTRY_SHARED_PCH ${owner})
    set(GANTRY_SHARED_PCH_HEADER <${header}>)
  endif()
endmacro()
function(gantry_use_shared_pch target)
  if(NOT GANTRY_SHARED_PCH)
    return()
  elseif(TARGET ${GANTRY_SHARED_PCH} AND NOT target STREQUAL GANTRY_SHARED_PCH)
    target_precompile_headers(${target} REUSE_FROM ${GANTRY_SHARED_PCH})
  else()
    target_precompile_headers(${target} PRIVATE <cmake/pch.h> ${GANTRY_SHARED_PCH_HEADER})
    # While it is made, the old one may lie there, and ccache's preprocessor would read that and not
    # the changed headers: ccache would then answer with what was once made in its presence. A
    # precompiled header is read only as the first file, so another header goes before it.
    set_source_files_properties(
      ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.cxx
      PROPERTIES COMPILE_OPTIONS "-include;${CMAKE_SOURCE_DIR}/cmake/pch.h")
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
endfunction()

# gantry_batches(VARIABLE target a.cc ... [APART b.cc ...]): sets VARIABLE to what is compiled for
# these sources. In the debug and release builds, which are made from clean most often, up to twelve
# of them (20 of a test) are compiled as one, so that headers are read and templates made once for
# all: a third of the CPU time of one file after another, and four fifths of that of batches of six.
# The presets asan and tsan compile each file by itself, and so find one that leans on its
# neighbours' includes.
# GANTRY_BATCH_FILES: another number than twelve, for a folder whose files share costly types.
# APART: files by themselves here too, because they give a name of their own another meaning than
# their neighbours do, as the commands do.
# (Not CMake's UNITY_BUILD: it writes absolute paths, and so two clones share nothing in ccache.)
option(GANTRY_BATCHES "Compile several files as one, but for asan and tsan" ON)
function(gantry_batches variable target)
  cmake_parse_arguments(arg "" "" "APART" ${ARGN})
  set(files ${arg_UNPARSED_ARGUMENTS})
  if(NOT GANTRY_BATCHES OR GANTRY_SANITIZE MATCHES "address|thread")
    set(${variable} ${files} PARENT_SCOPE)
    return()
  endif()
  set(together ${files})
  list(FILTER together INCLUDE REGEX "\\.cc$")
  list(REMOVE_ITEM together ${arg_APART})
  list(LENGTH together count)
  set(most 12)
  if(GANTRY_BATCH_FILES)
    set(most ${GANTRY_BATCH_FILES})
  elseif(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/tests/")
    set(most 20)
  endif()
  # First how many batches, then how long the longest of them is.
  math(EXPR size "(${count} + ${most} - 1) / ${most}")
  if(size)
    math(EXPR size "(${count} + ${size} - 1) / ${size}")
  endif()
  set(batches)
  while(together)
    list(SUBLIST together 0 ${size} some)
    list(REMOVE_ITEM together ${some})
    list(LENGTH batches number)
    set(batch ${CMAKE_CURRENT_BINARY_DIR}/batches/${target}_${number}.cc)
    set(text "")
    foreach(file ${some})
      cmake_path(ABSOLUTE_PATH file NORMALIZE OUTPUT_VARIABLE path)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      string(APPEND text "#include <${path}>\n")
    endforeach()
    file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
    list(APPEND batches ${batch})
    list(REMOVE_ITEM files ${some})
  endwhile()
  set(${variable} ${batches} ${files} PARENT_SCOPE)
endfunction()

# gantry_library(name SOURCES a.cc ... [LIBS other ...] [APART b.cc ...])
function(gantry_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;APART" ${ARGN})
  gantry_batches(sources ${name} ${arg_SOURCES} APART ${arg_APART})
  add_library(${name} STATIC ${sources})
  gantry_pch(${name})
  gantry_use_shared_pch(${name})
  target_link_libraries(${name} PUBLIC ${arg_LIBS})
endfunction()

add_custom_target(programs)  # what is shipped
add_custom_target(fuzzers)   # all that gantry_fuzz() declares
add_custom_target(extras)    # programs that only benches and long tests run; "all" lacks them

# gantry_program(name SOURCES main.cc ... [LIBS ...] [APART b.cc ...] [EXTRA]): lands in
# <build>/bin; a shipped program, unless its folder is in bench or tests. EXTRA: `./dev test` does
# not need it.
# The programs of bench are extra by themselves.
function(gantry_program name)
  cmake_parse_arguments(arg "EXTRA" "" "SOURCES;LIBS;APART" ${ARGN})
  gantry_batches(sources ${name} ${arg_SOURCES} APART ${arg_APART})
  add_executable(${name} ${sources})
  gantry_pch(${name})
  gantry_use_shared_pch(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/(bench|tests)/")
    add_dependencies(programs ${name})
  endif()
  if(arg_EXTRA OR CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/bench/")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(extras ${name})
  endif()
endfunction()

# gantry_test(name SOURCES ... [LIBS ...] [LABELS unit|container|sim|e2e [long]] [TIMEOUT seconds]
#             [LOCK name] [WAITS] [APART b.cc ...]): one doctest executable for ctest. The
# main function comes from tests/unit/doctest_main.cc. Tests labelled `long` run only in `./dev test
# --long`. Of tests with the same LOCK one runs at a time; tests/e2e/CMakeLists.txt lists the locks.
# `./dev test` gives ctest three places for each core. A test without a lock computes, and takes
# two of them (GANTRY_COMPUTES); one with a lock, or that WAITS for the most part, takes one.
set(GANTRY_COMPUTES 2)
function(gantry_test name)
  cmake_parse_arguments(arg "WAITS" "TIMEOUT;LOCK" "SOURCES;LIBS;LABELS;APART" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  gantry_batches(sources ${name} ${arg_SOURCES} APART ${arg_APART})
  add_executable(${name} ${sources})
  gantry_pch(${name})
  gantry_use_shared_pch(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} gantry_doctest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                                          RESOURCE_LOCK "${arg_LOCK}")
  if(NOT arg_LOCK AND NOT arg_WAITS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${GANTRY_COMPUTES})
  endif()
  if(arg_LOCK)  # the longest chains of tests begin first
    set_tests_properties(${name} PROPERTIES COST 2000)
  elseif(arg_TIMEOUT GREATER 120)
    set_tests_properties(${name} PROPERTIES COST ${arg_TIMEOUT})
  endif()
  if(GANTRY_SANITIZE STREQUAL "thread")
    set_tests_properties(${name} PROPERTIES
      ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")
  endif()
endfunction()

# gantry_fuzz(name SOURCES ... [LIBS ...] [CORPUS folder]): a libFuzzer target, built only by the
# preset `fuzz` and run there by ctest for a minute. CORPUS holds samples to start from.
function(gantry_fuzz name)
  if(NOT GANTRY_SANITIZE STREQUAL "fuzz")
    return()
  endif()
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  gantry_pch(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(found ${CMAKE_BINARY_DIR}/fuzz/${name}.corpus)  # new samples land in the first folder
  file(MAKE_DIRECTORY ${found})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
  add_test(NAME ${name} COMMAND ${name} -max_total_time=60 -timeout=10 -rss_limit_mb=2048
                                -artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/ ${found} ${arg_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 180)
endfunction()
