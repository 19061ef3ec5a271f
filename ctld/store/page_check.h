// Checks the pages of an LMDB file before LMDB uses them. LMDB trusts its file: on a damaged page
// it may end the process, loop, or return wrong data. check_pages() reads the two meta pages and
// walks through every tree from its root. For each page it checks what LMDB assumes: the page is
// inside the file, is used once and is not on the free list, and has the right kind and depth; its
// entries lie within it and fill it; keys ascend and stay within the bounds of the parent's keys;
// and the counts of each table are right. Contents are not checked here: they have checksums
// (sealed.h).
//
// The layout is that of LMDB 0.9 (lmdb/libraries/liblmdb/mdb.c), on a little-endian 64-bit machine.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace gantry::store {

struct PageCheck {
  // If a table has more leaf pages than this, they are not read, because reading them would take
  // long and nothing at start needs them. This is only for the history, which always grows; see
  // kBigTables.
  std::uint64_t most_leaves = ~0ULL;
};

struct PageCount {
  std::uint64_t read = 0;
  std::uint64_t skipped = 0;  // leaf pages that were not read, of tables that are too big
};

// `path` is data.mdb; nobody may write to it meanwhile. The error malformed tells what is wrong,
// and at which octet.
Result<PageCount> check_pages(const std::string& path, const PageCheck& options);

}  // namespace gantry::store
