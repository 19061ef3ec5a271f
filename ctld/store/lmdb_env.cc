// Opening, locking, growing and compacting an LMDB environment; see the header.
#include "ctld/store/lmdb_env.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/assert.h"
#include "ctld/store/checksum.h"
#include "ctld/store/fault_guard.h"
#include "ctld/store/history_key.h"
#include "ctld/store/page_check.h"
#include "ctld/store/sealed.h"

namespace gantry::store {

namespace {

constexpr unsigned kMaxReaders = 126;
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr std::string_view kCreateDirectory = "/create.tmp";
constexpr std::string_view kCompactDirectory = "/compact.tmp";
constexpr std::string_view kUpgradeDirectory = "/upgrade.tmp";
// LMDB reports a short write as EIO. If less than this is free on the disk, the cause was a full
// disk.
constexpr std::uint64_t kFullDiskBytes = 1 << 20;

constexpr std::array<std::string_view, kDbCount> kDbNames{"store", "journal", "specs",
                                                          "blobs", "history", "history_index"};

unsigned flags_of(Db db) {
  return MDB_CREATE | (db == Db::journal || db == Db::specs ? MDB_INTEGERKEY : 0U);
}

// The key of a record as text for a person: a number, a time and a job, or a name.
std::string key_text(const TableHandle& table, std::string_view key) {
  if ((table.name == "journal" || table.name == "specs") && key.size() == 8) {
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof number);
    return fmt::format("{}", number);
  }
  if (table.name.starts_with("history") && key.size() >= kHistoryKeyBytes) {
    const HistoryPosition at = history_position(key.substr(key.size() - kHistoryKeyBytes));
    return fmt::format("of job {}, ended at {} us", at.job.value(), at.end.us);
  }
  std::string text;
  bool readable = !key.empty();
  for (const char c : key) {
    readable = readable && c >= ' ' && c <= '~';
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  if (readable) return fmt::format("\"{}\"", key);
  return key.size() == 8 ? fmt::format("{}", ordered_key_value(key)) : text;
}

// Makes the entries of a directory durable. Returns 0 or errno.
int sync_directory(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  int rc = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return rc;
}

int sync_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  int rc = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return rc;
}

void remove_scratch(const std::string& directory) {
  ::unlink((directory + "/data.mdb").c_str());
  ::unlink((directory + "/lock.mdb").c_str());
  ::rmdir(directory.c_str());
}

std::string parent_of(const std::string& path) {
  std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool disk_is_full(const std::string& directory) {
  struct statvfs fs {};
  return ::statvfs(directory.c_str(), &fs) == 0 &&
         static_cast<std::uint64_t>(fs.f_bavail) * fs.f_frsize < kFullDiskBytes;
}

}  // namespace

Error LmdbEnv::error(int rc, std::string_view doing) const {
  std::string where = env_ == nullptr ? options_.directory : data_path();
  bool full = rc == ENOSPC || rc == EDQUOT || (rc == EIO && disk_is_full(options_.directory));
  if (full)
    return {ErrorCode::out_of_space,
            fmt::format("{} failed, the file system of {} is full ({}): free space there and start "
                        "the controller again; everything acknowledged is still there",
                        doing, where, mdb_strerror(rc))};
  if (rc == MDB_MAP_FULL)
    return {ErrorCode::out_of_space,
            fmt::format("{} failed, {} has reached the largest map size of {} MiB: raise "
                        "controller.store_map_max and start the controller again; everything "
                        "acknowledged is still there",
                        doing, where, options_.max_map_bytes >> 20)};
  if (rc == ENOMEM)
    return {ErrorCode::io_error,
            fmt::format("{} failed, cannot map {} MiB of address space for {}: raise the address "
                        "space limit (ulimit -v) or lower controller.store_map",
                        doing, map_bytes_ >> 20, where)};
  if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID || rc == MDB_PANIC ||
      rc == MDB_VERSION_MISMATCH)
    return {ErrorCode::malformed,
            fmt::format("{} failed, {} is damaged ({}): check the disk, then restore the file from "
                        "a copy (docs/store.md)",
                        doing, where, mdb_strerror(rc))};
  return {ErrorCode::io_error,
          fmt::format("{} failed on {} ({}): check the disk and the system log, then start the "
                      "controller again",
                      doing, where, mdb_strerror(rc))};
}

Error LmdbEnv::error(const Damage& damage) const {
  return {
      ErrorCode::malformed,
      fmt::format("{} is damaged: the entry {} of table {} does not have its checksum; check the "
                  "disk, then restore the state directory from a copy (docs/store.md)",
                  data_path(), key_text(*damage.table, damage.key), damage.table->name)};
}

LmdbEnv::LmdbEnv(EnvOptions options) : options_(std::move(options)) {
  const auto name = [](TableHandle& table, std::string_view text) {
    table.name = text;
    table.seed = xxh64(text, 0);
  };
  for (std::size_t i = 0; i < kDbCount; ++i) name(dbs_[i], kDbNames[i]);
  for (Table table : kTables)
    name(tables_[static_cast<std::size_t>(table)], "t." + std::string(name_of(table)));
}

Result<std::unique_ptr<LmdbEnv>> LmdbEnv::open(const EnvOptions& options) {
  std::unique_ptr<LmdbEnv> env(new LmdbEnv(options));
  std::string& directory = env->options_.directory;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (!options.read_only && ::mkdir(directory.c_str(), kDirectoryMode) == 0) {
    if (int rc = sync_directory(parent_of(directory)); rc != 0)
      return tl::unexpected(env->error(rc, "creating the state directory"));
  } else if (!options.read_only && errno != EEXIST) {
    return tl::unexpected(env->error(errno, "creating the state directory"));
  }
  ASSIGN(opened, env->lock_directory().and_then([&] { return env->open_env(); }));
  return env;
}

LmdbEnv::~LmdbEnv() {
  close_env();
  if (lock_fd_ >= 0) ::close(lock_fd_);  // releases the lock
}

Result<void> LmdbEnv::lock_directory() {
  std::string path = options_.directory + "/store.lock";
  lock_fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode);
  if (lock_fd_ < 0) return tl::unexpected(error(errno, "opening the lock file store.lock"));
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return tl::unexpected(error(errno, "locking the state directory"));
    char holder[32] = "unknown";
    if (ssize_t n = ::pread(lock_fd_, holder, sizeof holder - 1, 0); n > 0) holder[n] = '\0';
    return fail(ErrorCode::already_exists,
                fmt::format("the state directory {} is in use by another controller (process {}): "
                            "stop that one first, or give this one its own directory",
                            options_.directory, holder));
  }
  // The pid is only for another controller's error message, so a full disk does not matter here.
  std::string pid = fmt::format("{}", ::getpid());
  if (::ftruncate(lock_fd_, 0) == 0) {
    [[maybe_unused]] ssize_t n = ::pwrite(lock_fd_, pid.data(), pid.size(), 0);
  }
  return {};
}

Result<void> LmdbEnv::open_env() {
  struct stat st {};
  bool existed = ::stat(data_path().c_str(), &st) == 0;
  if (options_.read_only && !existed)
    return fail(ErrorCode::not_found, fmt::format("there is no store in {}", options_.directory));
  // Removes files that were left when the last controller was interrupted.
  for (std::string_view scratch : {kCreateDirectory, kCompactDirectory, kUpgradeDirectory})
    if (!options_.read_only) remove_scratch(options_.directory + std::string(scratch));
  if (!existed) {
    if (auto created = create(); !created) return created;
  }
  map_bytes_ = options_.map_bytes;
  if (existed) {
    map_bytes_ = std::max<std::uint64_t>(map_bytes_, st.st_size);
    ASSIGN(pages, check_pages(data_path(), {options_.most_leaves}));
    pages_ = pages->read;
  }
  if (auto opened = open_at(options_.directory); !opened) return opened;
  return old_format_ != 0 && !options_.read_only ? upgrade() : Result<void>{};
}

// The store is created in another directory and then renamed, so that data.mdb never exists without
// its first commit.
Result<void> LmdbEnv::create() {
  std::string elsewhere = options_.directory + std::string(kCreateDirectory);
  if (::mkdir(elsewhere.c_str(), kDirectoryMode) != 0)
    return tl::unexpected(error(errno, "creating the state"));
  map_bytes_ = options_.map_bytes;
  creating_ = true;
  auto opened = open_at(elsewhere);
  creating_ = false;
  close_env();
  if (!opened) return opened;
  if (::rename((elsewhere + "/data.mdb").c_str(), data_path().c_str()) != 0)
    return tl::unexpected(error(errno, "creating the state"));
  remove_scratch(elsewhere);
  if (int rc = sync_directory(options_.directory); rc != 0)
    return tl::unexpected(error(rc, "syncing the state directory"));
  return {};
}

Result<void> LmdbEnv::open_at(const std::string& directory) {
  int rc = mdb_env_create(&env_);
  if (rc == 0) rc = mdb_env_set_mapsize(env_, map_bytes_);
  if (rc == 0) rc = mdb_env_set_maxdbs(env_, kDbCount + kTables.size() + 8);
  if (rc == 0) rc = mdb_env_set_maxreaders(env_, kMaxReaders);
  if (rc == 0) rc = mdb_env_set_userctx(env_, this);
  if (rc == 0)
    rc = mdb_env_set_assert(env_, [](MDB_env* env, const char* what) {
      end_damaged(static_cast<LmdbEnv*>(mdb_env_get_userctx(env))->data_path().c_str(), what);
    });
  const unsigned flags = MDB_NOTLS | (options_.read_only ? MDB_RDONLY : 0U);
  if (rc == 0) rc = mdb_env_open(env_, directory.c_str(), flags, kFileMode);
  if (rc == 0) rc = check_readers();
  Result<void> opened;
  if (rc != 0)
    opened = tl::unexpected(error(rc, "opening the state"));
  else
    opened = open_tables();
  if (!opened) close_env();
  return opened;
}

// Fills in the handles. A missing table is created if `create` is true; else its name goes to
// `missing`.
int LmdbEnv::open_handles(MDB_txn* txn, bool create, std::string& missing) {
  const auto open = [&](TableHandle& table, unsigned flags) {
    const int rc =
        mdb_dbi_open(txn, table.name.c_str(), flags | (create ? MDB_CREATE : 0U), &table.dbi);
    if (rc == MDB_NOTFOUND) missing = table.name;
    return rc;
  };
  int rc = 0;
  for (std::size_t i = 1; rc == 0 && i < kDbCount; ++i)
    rc = open(dbs_[i], flags_of(static_cast<Db>(i)));
  for (Table table : kTables)
    if (rc == 0) rc = open(tables_[static_cast<std::size_t>(table)], 0);
  MDB_dbi names = 0;
  MDB_stat stat{};
  if (rc == 0) rc = mdb_dbi_open(txn, nullptr, 0, &names);
  if (rc == 0) rc = mdb_stat(txn, names, &stat);
  if (rc == 0 && stat.ms_entries != kDbCount + kTables.size()) {
    missing = "of no name that this release knows";
    rc = MDB_NOTFOUND;
  }
  return rc;
}

// The format is a plain number, so that every release can read it; its checksum is stored beside
// it. From kSealedFormat on, every table exists from the first commit.
Result<void> LmdbEnv::open_tables() {
  std::uint64_t format = 0;
  std::string missing;
  old_format_ = 0;
  int rc = write([&](MDB_txn* txn) {
    TableHandle& store = dbs_[0];
    int e = mdb_dbi_open(txn, store.name.c_str(), creating_ ? MDB_CREATE : 0U, &store.dbi);
    if (e == MDB_NOTFOUND) missing = store.name;
    if (e != 0) return e;
    MDB_val key = as_val("format");
    MDB_val value{};
    if (creating_) {
      format = kFormatVersion;
      value = {sizeof format, &format};
      e = mdb_put(txn, store.dbi, &key, &value, 0);
      std::uint64_t seal = seal_of(store, "format", as_view(value));
      key = as_val("format-seal");
      value = {sizeof seal, &seal};
      if (e == 0) e = mdb_put(txn, store.dbi, &key, &value, 0);
      return e == 0 ? open_handles(txn, true, missing) : e;
    }
    e = mdb_get(txn, store.dbi, &key, &value);
    if (e == MDB_NOTFOUND || (e == 0 && value.mv_size != sizeof format)) return MDB_CORRUPTED;
    if (e != 0) return e;
    std::memcpy(&format, value.mv_data, sizeof format);
    const std::uint64_t seal = seal_of(store, "format", as_view(value));
    key = as_val("format-seal");
    e = mdb_get(txn, store.dbi, &key, &value);
    const bool sealed = e == 0;
    if (e != 0 && e != MDB_NOTFOUND) return e;
    if (sealed &&
        (value.mv_size != sizeof seal || std::memcmp(value.mv_data, &seal, sizeof seal) != 0))
      return MDB_CORRUPTED;
    if (format > kFormatVersion) return MDB_VERSION_MISMATCH;
    if (sealed != (format >= kSealedFormat)) return MDB_CORRUPTED;
    if (!sealed) {
      old_format_ = format;
      return 0;
    }
    return open_handles(txn, false, missing);
  });
  if (rc == MDB_VERSION_MISMATCH && format > kFormatVersion)
    return fail(ErrorCode::version_mismatch,
                fmt::format("{} was written by a newer Gantry (format {}, this one reads up to "
                            "{}): start that version again, or restore an older copy",
                            data_path(), format, kFormatVersion));
  if (rc == MDB_NOTFOUND && !missing.empty())
    return fail(
        ErrorCode::malformed,
        fmt::format("{} is damaged: it has lost a table, or has one too many ({}); check the "
                    "disk, then restore the file from a copy (docs/store.md)",
                    data_path(), missing));
  if (rc != 0) return tl::unexpected(error(rc, "opening the tables"));
  return {};
}

void LmdbEnv::close_env() {
  if (env_ != nullptr) mdb_env_close(env_);
  env_ = nullptr;
}

int LmdbEnv::grow() {
  if (map_bytes_ >= options_.max_map_bytes) return MDB_MAP_FULL;
  std::lock_guard turn(turnstile_);     // no new reader can begin
  std::unique_lock moving(map_guard_);  // waits for open readers, at most kReadBudget
  std::uint64_t wanted = std::min(map_bytes_ * 2, options_.max_map_bytes);
  int rc = mdb_env_set_mapsize(env_, wanted);
  if (rc != 0) return rc;
  map_bytes_ = wanted;
  ++map_growths_;
  return 0;
}

int LmdbEnv::check_readers() {
  int dead = 0;
  return mdb_reader_check(env_, &dead);
}

int LmdbEnv::measure(EnvUse& use) const {
  MDB_envinfo info{};
  MDB_stat stat{};
  int rc = mdb_env_info(env_, &info);
  if (rc == 0) rc = mdb_env_stat(env_, &stat);
  if (rc != 0) return rc;
  std::uint64_t free_pages = 0;
  rc = read([&](MDB_txn* txn) {
    Cursor cursor(txn, 0);  // LMDB's own table of free pages: value = count, then page numbers
    MDB_val key{};
    MDB_val value{};
    int e = 0;
    while ((e = cursor.get(key, &value, MDB_NEXT)) == 0) {
      std::size_t count = 0;
      GANTRY_ASSERT(value.mv_size >= sizeof count, "LMDB's free list");
      std::memcpy(&count, value.mv_data, sizeof count);
      free_pages += count;
    }
    return e == MDB_NOTFOUND ? 0 : e;
  });
  use.file_bytes = (info.me_last_pgno + 1) * stat.ms_psize;
  use.free_bytes = free_pages * stat.ms_psize;
  return rc;
}

Result<void> LmdbEnv::compact() {
  std::string copy_directory = options_.directory + std::string(kCompactDirectory);
  std::string copy = copy_directory + "/data.mdb";
  int rc = ::mkdir(copy_directory.c_str(), kDirectoryMode) == 0 ? 0 : errno;
  if (rc == 0) rc = mdb_env_copy2(env_, copy_directory.c_str(), MDB_CP_COMPACT);
  if (rc == 0) rc = sync_file(copy);
  if (rc != 0) {  // the original file is unchanged
    Error e = error(rc, "compacting the state");
    remove_scratch(copy_directory);
    if (e.code == ErrorCode::out_of_space) return {};
    return tl::unexpected(std::move(e));
  }
  close_env();
  // The copy counts transactions from 1. LMDB's reader table belongs to the old file, so it is
  // removed first.
  ::unlink((options_.directory + "/lock.mdb").c_str());
  rc = ::rename(copy.c_str(), data_path().c_str()) == 0 ? 0 : errno;
  remove_scratch(copy_directory);
  if (rc == 0) rc = sync_directory(options_.directory);
  if (rc != 0) return tl::unexpected(error(rc, "putting the compacted state in place"));
  return open_env();
}

// Works like compact(): it writes a whole new file and renames it; until then the old file is
// unchanged.
Result<void> LmdbEnv::upgrade() {
  const std::string elsewhere = options_.directory + std::string(kUpgradeDirectory);
  MDB_env* old = std::exchange(env_, nullptr);
  upgraded_from_ = old_format_;
  int rc = ::mkdir(elsewhere.c_str(), kDirectoryMode) == 0 ? 0 : errno;
  Result<void> done;
  if (rc == 0) {
    creating_ = true;
    done = open_at(elsewhere);
    creating_ = false;
    if (done) rc = copy_sealed(old);
    close_env();
  }
  mdb_env_close(old);
  if (done && rc == 0) {
    ::unlink((options_.directory + "/lock.mdb").c_str());  // belongs to the old file; see compact()
    rc = ::rename((elsewhere + "/data.mdb").c_str(), data_path().c_str()) == 0 ? 0 : errno;
  }
  remove_scratch(elsewhere);
  if (done && rc == 0) rc = sync_directory(options_.directory);
  if (!done) return done;
  if (rc != 0) return tl::unexpected(error(rc, "giving the state checksums"));
  return open_at(options_.directory);
}

}  // namespace gantry::store
