# What we build on: Debian packages, each as one target deps::NAME. `./dev setup` installs them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# deps::NAME from pkg-config module MODULE.
function(gantry_dep name module)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(deps::${name} ALIAS PkgConfig::${name})
endfunction()

gantry_dep(zmq libzmq)
gantry_dep(lmdb lmdb)
gantry_dep(munge munge)
gantry_dep(seccomp libseccomp)
gantry_dep(spdlog spdlog)
gantry_dep(yaml yaml-cpp)
gantry_dep(nl libnl-3.0)
gantry_dep(nftables libnftables)
gantry_dep(crypto libcrypto)

# deps::NAME for headers without a library: HEADER must exist; DEFINITIONS go to who uses it.
function(gantry_header_dep name header)
  find_path(${name}_include ${header} REQUIRED)
  add_library(deps_${name} INTERFACE)
  target_compile_definitions(deps_${name} INTERFACE ${ARGN})
  add_library(deps::${name} ALIAS deps_${name})
endfunction()

gantry_header_dep(msgpack msgpack.hpp MSGPACK_NO_BOOST)
gantry_header_dep(expected tl/expected.hpp)
gantry_header_dep(boost boost/asio/io_context.hpp
                  BOOST_ASIO_NO_DEPRECATED BOOST_ERROR_CODE_HEADER_ONLY)
gantry_header_dep(robin_map tsl/robin_map.h)
gantry_header_dep(rapidjson rapidjson/document.h)
gantry_header_dep(doctest doctest/doctest.h)

# fmt and libsodium statically: commands start in under 3 ms, and each shared library costs a part
# of that.
pkg_check_modules(fmt REQUIRED fmt)  # the headers' version
add_library(deps_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt.cc)
add_library(deps::fmt ALIAS deps_fmt)

find_library(GANTRY_SODIUM_A libsodium.a REQUIRED)
add_library(deps_sodium INTERFACE)
target_link_libraries(deps_sodium INTERFACE ${GANTRY_SODIUM_A} Threads::Threads)
add_library(deps::sodium ALIAS deps_sodium)

# The allocator of programs that live on what lies in memory: the controller, and those that run its
# scheduler (docs/decisions/core-and-store.md, 98). Sanitizers bring their own.
add_library(deps_jemalloc INTERFACE)
add_library(deps::jemalloc ALIAS deps_jemalloc)
if(NOT GANTRY_SANITIZE)
  pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)
  # Compiled once for all of them, and without the header that each would precompile for it.
  add_library(deps_malloc_conf OBJECT ${CMAKE_SOURCE_DIR}/cmake/malloc_conf.cc)
  target_sources(deps_jemalloc INTERFACE $<TARGET_OBJECTS:deps_malloc_conf>)
  target_link_libraries(deps_jemalloc INTERFACE PkgConfig::jemalloc)
endif()
