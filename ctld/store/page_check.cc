// Walks over the pages of an LMDB file; see the header.
#include "ctld/store/page_check.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace gantry::store {
namespace {

constexpr std::uint32_t kMagic = 0xBEEFC0DE;
constexpr std::uint32_t kDataVersion = 1;
constexpr std::uint64_t kNoPage = ~0ULL;  // the root page number of an empty table
constexpr std::uint64_t kMetaPages = 2;
constexpr std::size_t kPageHeader = 16;
constexpr std::size_t kNodeHeader = 8;
constexpr int kDeepest = 32;  // LMDB's CURSOR_STACK: the greatest depth
enum : std::uint16_t { kBranchPage = 1, kLeafPage = 2, kOverflowPage = 4, kMetaPage = 8 };
enum : std::uint16_t { kBigData = 1, kSubTable = 2 };
constexpr std::uint16_t kIntegerKeys = 8;
// Tables of which not all leaf pages are read at start.
constexpr std::string_view kBigTables[] = {"history", "history_index"};

struct TableRecord {  // MDB_db
  std::uint32_t pad = 0;
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t branch_pages = 0, leaf_pages = 0, overflow_pages = 0, entries = 0, root = 0;
};
static_assert(sizeof(TableRecord) == 48);

struct Meta {  // MDB_meta
  std::uint32_t magic = 0, version = 0;
  std::uint64_t address = 0, map_size = 0;
  TableRecord free, main;
  std::uint64_t last_page = 0, transaction = 0;
};
static_assert(sizeof(Meta) == 136);

template <class T>
T read_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct Node {
  std::string_view key;
  std::uint16_t flags = 0;
  std::uint64_t child = 0;  // if it is a branch
  std::uint64_t size = 0;   // if it is a leaf: size of the data
  const char* data = nullptr;
};

// What a walk knows about its table.
enum class Kind : std::uint8_t { free_list, names, data };
struct Walk {
  std::string_view name;
  Kind kind = Kind::data;
  TableRecord table;
  bool skip_leaves = false;
  TableRecord seen;  // what the walk has counted
};
// Keys of a subtree: lo <= key < hi.
struct Bounds {
  std::optional<std::string_view> lo, hi;
};

class Checker {
 public:
  Checker(const std::string& path, const char* base, std::uint64_t bytes, const PageCheck& options)
      : path_(path), base_(base), bytes_(bytes), options_(options) {}

  Result<PageCount> run() {
    if (read_metas() && table("the free list", Kind::free_list, meta_.free) &&
        table("the list of tables", Kind::names, meta_.main))
      return count_;
    return fail(ErrorCode::malformed, problem_);
  }

 private:
  bool bad(std::uint64_t page, std::string_view what) {
    problem_ = fmt::format(
        "{} is damaged: {} (page {}, octet {} of {}); check the disk, then restore the file from a "
        "copy (docs/store.md)",
        path_, what, page, page * page_bytes_, bytes_);
    return false;
  }
  [[nodiscard]] const char* at(std::uint64_t page) const { return base_ + page * page_bytes_; }

  bool read_metas();
  bool good_meta(std::uint64_t page, Meta& meta);
  bool table(std::string_view name, Kind kind, const TableRecord& record);
  bool page(Walk& walk, std::uint64_t number, int level, const Bounds& bounds);
  bool branch(Walk& walk, std::uint64_t number, int level, const Bounds& bounds);
  bool leaf(Walk& walk, std::uint64_t number, const Bounds& bounds);
  bool leaf_node(Walk& walk, std::uint64_t number, const Node& node);
  bool overflow(Walk& walk, std::uint64_t from, Node& node);
  bool free_pages(std::uint64_t number, const Node& node);
  bool nodes(std::uint64_t number, bool is_branch);
  bool key_fits(const Walk& walk, std::uint64_t number, std::string_view key, const Bounds& bounds);
  bool take(std::uint64_t number, std::uint64_t count, std::uint64_t from);
  static bool less(const Walk& walk, std::string_view a, std::string_view b);

  const std::string& path_;
  const char* base_;
  std::uint64_t bytes_;
  PageCheck options_;
  std::uint64_t page_bytes_ = 4096;
  Meta meta_;
  std::vector<bool> taken_;
  std::vector<Node> nodes_;  // the page that nodes() read last
  PageCount count_;
  std::string problem_;
};

bool Checker::good_meta(std::uint64_t page, Meta& meta) {
  if ((page + 1) * page_bytes_ > bytes_) return bad(page, "it ends before its second page");
  const char* start = at(page);
  meta = read_as<Meta>(start + kPageHeader);
  if (read_as<std::uint64_t>(start) != page || read_as<std::uint16_t>(start + 10) != kMetaPage ||
      meta.magic != kMagic || meta.version != kDataVersion)
    return bad(page, "its head is not that of an LMDB file");
  if (meta.free.flags != kIntegerKeys || meta.main.flags != 0)
    return bad(page, "its head has flags that no store has");
  return true;
}

bool Checker::read_metas() {
  if (bytes_ < kMetaPages * page_bytes_) return bad(0, "it is cut off within its head");
  const std::uint32_t size = read_as<Meta>(base_ + kPageHeader).free.pad;
  if (size < 512 || size > 65536 || (size & (size - 1)) != 0)
    return bad(0, "its head is not that of an LMDB file");
  page_bytes_ = size;
  Meta meta[kMetaPages];
  for (std::uint64_t i = 0; i < kMetaPages; ++i)
    if (!good_meta(i, meta[i])) return false;
  if (meta[1].free.pad != size) return bad(1, "its two heads differ in their page size");
  // LMDB has two meta pages: even transactions write the first one, odd transactions the second.
  const std::uint64_t a = meta[0].transaction;
  const std::uint64_t b = meta[1].transaction;
  const bool fresh = a == 0 && b == 0;
  if (!fresh && ((a & 1) != 0 || (b & 1) != 1 || (a > b ? a - b : b - a) != 1))
    return bad(0, fmt::format("its two heads are of transactions {} and {}, which do not follow "
                              "each other",
                              a, b));
  meta_ = b > a ? meta[1] : meta[0];
  if (meta_.last_page >= (1ULL << 47) / page_bytes_)
    return bad(b > a ? 1 : 0, "its head names a last page that cannot be");
  taken_.resize(bytes_ / page_bytes_);
  taken_[0] = taken_[1] = true;
  return true;
}

// Marks the pages as used. Each page may be used once, and must be inside the file.
bool Checker::take(std::uint64_t number, std::uint64_t count, std::uint64_t from) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t page = number + i;
    if (page >= taken_.size() && page <= meta_.last_page)
      return bad(page, fmt::format("it is cut off: it has lost page {}", page));
    if (page < kMetaPages || page > meta_.last_page)
      return bad(from, fmt::format("a page names page {}, which cannot be", page));
    if (taken_[page]) return bad(page, "a page is in use twice, or in use and free");
    taken_[page] = true;
  }
  return true;
}

bool Checker::less(const Walk& walk, std::string_view a, std::string_view b) {
  if (walk.table.flags == kIntegerKeys)
    return read_as<std::uint64_t>(a.data()) < read_as<std::uint64_t>(b.data());
  return a < b;
}

bool Checker::table(std::string_view name, Kind kind, const TableRecord& record) {
  Walk walk{name, kind, record, false, {}};
  for (std::string_view big : kBigTables)
    walk.skip_leaves |= big == name && record.leaf_pages > options_.most_leaves;
  if (record.root == kNoPage) {
    if (record.depth == 0 && record.entries == 0) return true;
    return bad(0, fmt::format("table {} has lost its root", name));
  }
  if (record.depth == 0 || record.depth > kDeepest)
    return bad(0, fmt::format("table {} has a depth of {}", name, record.depth));
  if (!page(walk, record.root, 1, {})) return false;
  const TableRecord& seen = walk.seen;
  const bool counts =
      seen.branch_pages == record.branch_pages && seen.leaf_pages == record.leaf_pages &&
      (walk.skip_leaves ||
       (seen.overflow_pages == record.overflow_pages && seen.entries == record.entries));
  if (counts) return true;
  return bad(record.root, fmt::format("table {} has {} entries and should have {}", name,
                                      seen.entries, record.entries));
}

bool Checker::page(Walk& walk, std::uint64_t number, int level, const Bounds& bounds) {
  if (!take(number, 1, number)) return false;
  const bool is_leaf = level == walk.table.depth;
  ++(is_leaf ? walk.seen.leaf_pages : walk.seen.branch_pages);
  if (is_leaf && walk.skip_leaves) {
    ++count_.skipped;
    return true;
  }
  ++count_.read;
  const char* start = at(number);
  if (read_as<std::uint64_t>(start) != number ||
      read_as<std::uint16_t>(start + 10) != (is_leaf ? kLeafPage : kBranchPage))
    return bad(number, fmt::format("a page of table {} is another one", walk.name));
  if (!nodes(number, !is_leaf)) return false;
  return is_leaf ? leaf(walk, number, bounds) : branch(walk, number, level, bounds);
}

// Reads the page's nodes. They must lie within the page, and together fill it.
bool Checker::nodes(std::uint64_t number, bool is_branch) {
  const char* start = at(number);
  const std::size_t lower = read_as<std::uint16_t>(start + 12);
  const std::size_t upper = read_as<std::uint16_t>(start + 14);
  nodes_.clear();
  if (lower < kPageHeader || lower > upper || upper > page_bytes_ || lower % 2 != 0)
    return bad(number, "a page's bounds are wrong");
  std::size_t filled = 0;
  for (std::size_t i = kPageHeader; i < lower; i += 2) {
    const std::size_t offset = read_as<std::uint16_t>(start + i);
    if (offset < upper || offset + kNodeHeader > page_bytes_ || offset % 2 != 0)
      return bad(number, "an entry lies outside of its page");
    const char* head = start + offset;
    const std::uint64_t low =
        read_as<std::uint16_t>(head) | std::uint64_t{read_as<std::uint16_t>(head + 2)} << 16;
    Node node;
    node.flags = read_as<std::uint16_t>(head + 4);
    const std::size_t key = read_as<std::uint16_t>(head + 6);
    std::size_t bytes = kNodeHeader + key;
    if (is_branch) {
      node.child = low | std::uint64_t{node.flags} << 32;
    } else {
      node.size = low;
      bytes += (node.flags & kBigData) != 0 ? sizeof(std::uint64_t) : low;
    }
    bytes += bytes % 2;
    if (offset + bytes > page_bytes_) return bad(number, "an entry lies outside of its page");
    filled += bytes;
    node.key = {head + kNodeHeader, key};
    node.data = head + kNodeHeader + key;
    nodes_.push_back(node);
  }
  if (filled != page_bytes_ - upper) return bad(number, "a page's entries do not fill it");
  return true;
}

bool Checker::key_fits(const Walk& walk, std::uint64_t number, std::string_view key,
                       const Bounds& bounds) {
  if (walk.table.flags == kIntegerKeys && key.size() != sizeof(std::uint64_t))
    return bad(number, fmt::format("a key of table {} is no number", walk.name));
  if ((bounds.lo && less(walk, key, *bounds.lo)) || (bounds.hi && !less(walk, key, *bounds.hi)))
    return bad(number, fmt::format("keys of table {} are out of order", walk.name));
  return true;
}

bool Checker::branch(Walk& walk, std::uint64_t number, int level, const Bounds& bounds) {
  const std::vector<Node> children = nodes_;
  if (children.size() < (walk.kind == Kind::free_list ? 1 : 2))
    return bad(number, "a page has too few entries");
  for (std::size_t i = 1; i < children.size(); ++i) {  // LMDB ignores the key of the first child
    if (!key_fits(walk, number, children[i].key, bounds)) return false;
    if (i > 1 && !less(walk, children[i - 1].key, children[i].key))
      return bad(number, fmt::format("keys of table {} are out of order", walk.name));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    Bounds inner = bounds;
    if (i > 0) inner.lo = children[i].key;
    if (i + 1 < children.size()) inner.hi = children[i + 1].key;
    if (!page(walk, children[i].child, level + 1, inner)) return false;
  }
  return true;
}

bool Checker::leaf(Walk& walk, std::uint64_t number, const Bounds& bounds) {
  if (nodes_.empty()) return bad(number, "a page has no entries");
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!key_fits(walk, number, nodes_[i].key, bounds)) return false;
    if (i > 0 && !less(walk, nodes_[i - 1].key, nodes_[i].key))
      return bad(number, fmt::format("keys of table {} are out of order", walk.name));
  }
  walk.seen.entries += nodes_.size();
  const bool others = walk.kind == Kind::names;  // the nodes of such a table point to other tables
  const std::vector<Node> tables = others ? nodes_ : std::vector<Node>();
  for (const Node& node : others ? tables : nodes_)
    if (!leaf_node(walk, number, node)) return false;
  return true;
}

bool Checker::leaf_node(Walk& walk, std::uint64_t number, const Node& leaf) {
  Node node = leaf;
  if (walk.kind == Kind::names) {
    if (node.flags != kSubTable || node.size != sizeof(TableRecord))
      return bad(number, "the list of tables has an entry that is none");
    const auto record = read_as<TableRecord>(node.data);
    const bool numbered = node.key == "journal" || node.key == "specs";
    if (record.flags != (numbered ? kIntegerKeys : 0))
      return bad(number, fmt::format("table {} has flags that it cannot have", node.key));
    return table(node.key, Kind::data, record);
  }
  if (node.flags != 0 && node.flags != kBigData)
    return bad(number, fmt::format("an entry of table {} is of another kind", walk.name));
  if (node.flags == kBigData && !overflow(walk, number, node)) return false;
  return walk.kind != Kind::free_list || free_pages(number, node);
}

// Checks a value that is stored on a contiguous run of pages of its own.
bool Checker::overflow(Walk& walk, std::uint64_t from, Node& node) {
  const auto first = read_as<std::uint64_t>(node.data);
  if (!take(first, 1, from)) return false;
  const char* start = at(first);
  const std::uint64_t pages = read_as<std::uint32_t>(start + 12);
  const std::uint64_t needed = (kPageHeader - 1 + node.size) / page_bytes_ + 1;
  if (read_as<std::uint64_t>(start) != first ||
      read_as<std::uint16_t>(start + 10) != kOverflowPage || pages < needed)
    return bad(first, fmt::format("a page of table {} is another one", walk.name));
  if (!take(first + 1, pages - 1, first)) return false;
  walk.seen.overflow_pages += pages;
  node.data = start + kPageHeader;
  count_.read += pages;
  return true;
}

// Checks a list of pages that a transaction has freed: their number, then the page numbers,
// descending.
bool Checker::free_pages(std::uint64_t number, const Node& node) {
  if (read_as<std::uint64_t>(node.key.data()) > meta_.transaction)
    return bad(number, "the free list is of a transaction to come");
  const std::uint64_t count = node.size < 8 ? kNoPage : read_as<std::uint64_t>(node.data);
  if (count > node.size / 8 - 1) return bad(number, "the free list is longer than its entry");
  std::uint64_t before = kNoPage;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const auto page = read_as<std::uint64_t>(node.data + 8 * i);
    if (page >= before || page < kMetaPages || page > meta_.last_page)
      return bad(number, fmt::format("the free list names page {}, which cannot be", page));
    before = page;
    if (page >= taken_.size()) continue;  // this page was never written
    if (taken_[page]) return bad(page, "a page is in use twice, or in use and free");
    taken_[page] = true;
  }
  return true;
}

}  // namespace

Result<PageCount> check_pages(const std::string& path, const PageCheck& options) {
  const auto cannot = [&](std::string_view what) {
    return fail(ErrorCode::io_error,
                fmt::format("cannot {} {} ({}): check the disk and the system log, then start the "
                            "controller again",
                            what, path, std::strerror(errno)));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot("open");
  struct stat st {};
  if (::fstat(fd, &st) != 0) {
    ::close(fd);
    return cannot("look at");
  }
  const auto bytes = static_cast<std::uint64_t>(st.st_size);
  if (bytes == 0) {
    ::close(fd);
    return fail(ErrorCode::malformed,
                fmt::format("{} is damaged: it is empty; check the disk, then restore the file "
                            "from a copy (docs/store.md)",
                            path));
  }
  void* base = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (base == MAP_FAILED) return cannot("map");
  auto result = Checker(path, static_cast<const char*>(base), bytes, options).run();
  ::munmap(base, bytes);
  return result;
}

}  // namespace gantry::store
