// Looks at the pages of an LMDB file before LMDB does. LMDB trusts its file: on a damaged page it
// may end the process, loop, or answer with something else. check_pages() reads the two meta pages
// and walks every tree from its root, and asks of each page what LMDB takes for granted: that it is
// inside the file, used once and not on the free list, of the right kind and depth; that its
// entries lie within it and fill it, that keys ascend and stay within their parent's; and that the
// counts of each table are right. Contents are not looked at: those have checksums (sealed.h).
//
// The layout is that of LMDB 0.9 (lmdb/libraries/liblmdb/mdb.c), on a little-endian 64-bit machine.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace gantry::store {

struct PageCheck {
  // The leaves of tables with more of them than this are not read: their time would be the disk's,
  // and nothing at start needs them. For history alone, which only ever grows; see kBigTables.
  std::uint64_t most_leaves = ~0ULL;
};

struct PageCount {
  std::uint64_t read = 0;
  std::uint64_t skipped = 0;  // leaves of tables that are too big
};

// `path` is data.mdb; nobody may write to it meanwhile. malformed: what is wrong, at which octet.
Result<PageCount> check_pages(const std::string& path, const PageCheck& options);

}  // namespace gantry::store
