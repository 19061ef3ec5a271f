// XXH64, the checksum of everything in the store: 64 bits, fast and well distributed, meant against
// accidents and not against attackers. It is specified in
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, and takes about forty lines,
// which is why it is here and not a package.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry::store {

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed);

}  // namespace gantry::store
