// XXH64, the checksum of everything in the store: 64 bits, fast and well distributed, against
// accidents, not against attackers. It is specified in
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, and has only about forty lines,
// so it is implemented here instead of using a package.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry::store {

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed);

}  // namespace gantry::store
