#include "noded/image/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/codec/codec.h"
#include "common/codec/define.h"
#include "noded/image/manifest.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr unsigned kSlotsOfUser = 4;
constexpr const char* kRecord = "record.msgpack";
constexpr unsigned kPauseMicroseconds = 20'000;

// A process with the exclusive lock may remove the lock file; then `fd` is no longer the file of
// that name.
bool is_still_there(const Fd& fd, const std::string& path) {
  struct stat ours {
  }, named{};
  return ::fstat(fd.get(), &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

// An empty result without an error means that another process has the lock.
Result<Fd> try_lock(const std::string& path, int how, bool make) {
  for (;;) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0);
    Fd fd(::open(path.c_str(), flags, 0600));
    if (!fd) return fail_errno(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error, path);
    if (::flock(fd.get(), how | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return Fd();
      if (errno == EINTR) continue;
      return fail_errno(ErrorCode::io_error, path);
    }
    if (is_still_there(fd, path)) return fd;
  }
}

void pause_a_moment() {
  // tidy-allow(sleep): flock has no timeout, and an order to end must be seen meanwhile
  ::usleep(kPauseMicroseconds);
}

std::string slot_dir(const std::string& dir, unsigned number) {
  return dir + "/slots/" + std::to_string(number);
}

constexpr std::string_view kPolicy =
    R"({"default":[{"type":"reject"}],"transports":{)"
    R"("docker":{"":[{"type":"insecureAcceptAnything"}]},)"
    R"("oci":{"":[{"type":"insecureAcceptAnything"}]},)"
    R"("oci-archive":{"":[{"type":"insecureAcceptAnything"}]},)"
    R"("docker-archive":{"":[{"type":"insecureAcceptAnything"}]}}})";

Result<void> write_policy(int dir_fd) {
  ASSIGN(file, write_visible(dir_fd, "policy.json", kPolicy));
  if (::fchmod(file->get(), 0644) != 0) return fail_errno(ErrorCode::io_error, "policy.json");
  return {};
}

bool is_key(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<ImageRecord> read_record(const std::string& image) {
  const auto bytes = read_file(image + "/" + kRecord);
  if (!bytes) return std::nullopt;
  auto record = codec::decode<ImageRecord>(*bytes);
  if (!record) return std::nullopt;
  return std::move(*record);
}

}  // namespace

Result<void> ImageStore::make() const {
  if (dir_.empty()) return fail(ErrorCode::unsupported, "this node has no image cache");
  for (const auto& [path, mode] : {std::pair{dir_, 0711u},
                                   {dir_ + "/slots", 0711u},
                                   {dir_ + "/images", 0700u},
                                   {dir_ + "/gone", 0700u}}) {
    TRY(make_dirs(path, mode));
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) return fail_errno(ErrorCode::io_error, path);
    if (path != dir_ && (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid()))
      return fail(ErrorCode::io_error, path + ": not a directory of the node daemon's");
  }
  // This policy restricts from where and to where skopeo may copy, whatever the user's own settings
  // are.
  const Fd dir(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string path = policy();
  if (read_file(path).value_or("") == kPolicy) return {};
  return write_policy(dir.get());
}

void ImageStore::tidy_up() const {
  if (!make()) return;
  for (const char* old : {"/rootfs", "/users"}) remove_tree(dir_ + old);
  for (const auto& name : list_dir(dir_ + "/gone")) remove_tree(dir_ + "/gone/" + name);
  for (unsigned n = 0; n < kImageSlots; ++n) {
    auto lock = try_lock(slot_dir(dir_, n) + ".lock", LOCK_EX, false);
    if (lock && *lock) Slot(std::move(*lock), n, dir_).clear();
  }
  for (const auto& name : list_dir(dir_ + "/images"))
    if (is_key(name) && !read_record(image(name))) remove(name);
  make_room(0);
}

Slot::Slot(Fd held, unsigned n, std::string cache_dir)
    : lock(std::move(held)), number(n), cache(std::move(cache_dir)), dir(slot_dir(cache, n)) {}

Slot::~Slot() {
  if (lock) clear();
}

void Slot::clear() const {
  const std::string name = "slot-" + std::to_string(number) + ".";
  for (int i = 0; i < 1000; ++i) {
    const std::string gone = cache + "/gone/" + name + std::to_string(i);
    // If that name exists, it is an earlier work directory to which its user kept writing.
    if (::rename(dir.c_str(), gone.c_str()) == 0 || errno == ENOENT) break;
  }
  for (const auto& left : list_dir(cache + "/gone"))
    if (left.starts_with(name)) remove_tree(cache + "/gone/" + left);
}

Result<ImageStore::Locked> ImageStore::lock_one_of(const std::vector<std::string>& names,
                                                   const Stopped& stopped) const {
  for (;;) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      ASSIGN(lock, try_lock(dir_ + "/slots/" + names[i], LOCK_EX, true));
      if (*lock) return Locked{std::move(*lock), i};
    }
    if (const auto why = stopped(); !why.empty())
      return fail(ErrorCode::runtime_failed, why + " while waiting for other images");
    pause_a_moment();
  }
}

Result<ImageStore::Turn> ImageStore::take_turn(Uid uid, const std::string& source,
                                               const Stopped& stopped) const {
  const std::string user = "user-" + std::to_string(uid.value());
  Turn turn;
  ASSIGN(same, lock_one_of({user + "-" + sha256_hex(source) + ".lock"}, stopped));
  turn.path = dir_ + "/slots/" + user + "-" + sha256_hex(source) + ".lock";
  turn.same_source = std::move(same->lock);
  std::vector<std::string> names;
  for (unsigned n = 0; n < kSlotsOfUser; ++n)
    names.push_back(user + "." + std::to_string(n) + ".lock");
  ASSIGN(one, lock_one_of(names, stopped));
  turn.one_of_user = std::move(one->lock);
  turn.number = one->index;
  return turn;
}

ImageStore::Turn::~Turn() {
  if (same_source) ::unlink(path.c_str());
}

Result<Slot> ImageStore::take_slot(const Stopped& stopped) const {
  for (;;) {
    for (unsigned n = 0; n < kImageSlots; ++n) {
      ASSIGN(lock, try_lock(slot_dir(dir_, n) + ".lock", LOCK_EX, true));
      if (!*lock) continue;
      Slot slot(std::move(*lock), n, dir_);
      slot.clear();  // removes the rest of a killed fetch
      if (::mkdir(slot.dir.c_str(), 0711) != 0) return fail_errno(ErrorCode::io_error, slot.dir);
      return slot;
    }
    if (const auto why = stopped(); !why.empty())
      return fail(ErrorCode::runtime_failed, why + " while waiting for other images");
    pause_a_moment();
  }
}

std::optional<ImageStore::Held> ImageStore::hold(const std::string& key) const {
  for (;;) {
    auto lock = try_lock(image(key) + ".lock", LOCK_SH, false);
    if (!lock) return std::nullopt;
    auto record = read_record(image(key));
    if (!record) return std::nullopt;
    if (!*lock) {  // another process checks the image, or removes it
      pause_a_moment();
      continue;
    }
    (void)::futimens(lock->get(), nullptr);  // marks it as used now
    return Held{std::move(*lock), image(key) + "/tree", std::move(*record)};
  }
}

std::optional<ImageStore::Held> ImageStore::find(const std::string& key, Uid uid) const {
  const std::string proof = image(key) + "/proofs/" + std::to_string(uid.value());
  if (::access(proof.c_str(), F_OK) != 0) return std::nullopt;
  return hold(key);
}

std::optional<ImageStore::Held> ImageStore::find_by_state(const std::string& state, Uid uid) const {
  const std::string proof = "/proofs/" + std::to_string(uid.value()) + "." + state;
  for (const auto& name : list_dir(dir_ + "/images"))
    if (is_key(name) && ::access((image(name) + proof).c_str(), F_OK) == 0) return hold(name);
  return std::nullopt;
}

Result<void> ImageStore::prove(const std::string& key, Uid uid, const std::string& state) const {
  const std::string dir = image(key) + "/proofs";
  for (const auto& name :
       {std::to_string(uid.value()), std::to_string(uid.value()) + "." + state}) {
    if (name.ends_with(".")) continue;
    const std::string path = dir + "/" + name;
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno(ErrorCode::io_error, path);
  }
  return {};
}

Result<Fd> ImageStore::lock_key(const std::string& key, const Stopped& stopped) const {
  for (;;) {
    auto lock = try_lock(image(key) + ".lock", LOCK_EX, true);
    if (!lock || *lock) return lock;
    if (const auto why = stopped(); !why.empty())
      return fail(ErrorCode::runtime_failed, why + " while another job unpacks the image");
    // Other jobs may use the image for days. Then it exists, and nobody has to make it.
    if (read_record(image(key))) return Fd();
    pause_a_moment();
  }
}

bool ImageStore::is_there(const std::string& key) const {
  return read_record(image(key)).has_value();
}

Result<void> ImageStore::keep(const Slot& slot, const std::string& key, ImageRecord record) const {
  const std::string fresh = slot.dir + "/new", tree = slot.dir + "/out/tree";
  const Fd root(::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) return fail_errno(ErrorCode::runtime_failed, "the unpacked image");
  const auto size = settle_tree(root.get(), limits_);
  if (size.bytes > limits_.image_bytes || size.files > limits_.image_files)
    return fail(ErrorCode::invalid_argument,
                "it is larger than images may be here (noded.image_size, noded.image_files)");
  record.bytes = size.bytes;
  record.files = size.files;
  record.unpacked = wall_clock();
  if (::fchmod(root.get(), 0755) != 0) return fail_errno(ErrorCode::io_error, tree);
  for (const auto& path : {fresh, fresh + "/proofs"})
    if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(ErrorCode::io_error, path);
  const Fd dir(::open(fresh.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY(write_whole(dir.get(), kRecord, codec::encode(record), Durability::none));
  if (::rename(tree.c_str(), (fresh + "/tree").c_str()) != 0)
    return fail_errno(ErrorCode::io_error, tree);
  // A power failure must not leave an image that only looks complete: so the content is synced
  // before the rename.
  if (::syncfs(dir.get()) != 0) return fail_errno(ErrorCode::io_error, fresh);
  if (::rename(fresh.c_str(), image(key).c_str()) != 0)
    return fail_errno(ErrorCode::io_error, image(key));
  return {};
}

bool ImageStore::remove(const std::string& key) const {
  const auto lock = try_lock(image(key) + ".lock", LOCK_EX, true);
  if (!lock || !*lock) return false;
  const std::string gone = dir_ + "/gone/" + key + "." + std::to_string(::getpid());
  if (::rename(image(key).c_str(), gone.c_str()) != 0) return false;
  ::unlink((image(key) + ".lock").c_str());
  remove_tree(gone);
  return true;
}

void ImageStore::make_room(std::int64_t more) const {
  const auto alone = try_lock(dir_ + "/prune.lock", LOCK_EX, true);
  if (!alone || !*alone) return;  // another process is making room already
  auto images = list();
  std::int64_t total = more;
  for (const auto& one : images) total += one.record.bytes;
  std::ranges::sort(images, [](const ListedImage& a, const ListedImage& b) {
    return a.used != b.used ? a.used < b.used : a.key < b.key;
  });
  for (const auto& one : images) {
    if (total <= limits_.cache_bytes) return;
    if (remove(one.key)) total -= one.record.bytes;
  }
}

std::vector<ListedImage> ImageStore::list() const {
  std::vector<ListedImage> out;
  for (const auto& name : list_dir(dir_ + "/images")) {
    if (!is_key(name)) continue;
    auto record = read_record(image(name));
    if (!record) continue;
    ListedImage one{name, std::move(*record), {}, false};
    struct stat st {};
    const std::string lock_path = image(name) + ".lock";
    if (::stat(lock_path.c_str(), &st) == 0)
      one.used = Instant{std::int64_t{st.st_mtim.tv_sec} * 1'000'000 + st.st_mtim.tv_nsec / 1000};
    const auto lock = try_lock(lock_path, LOCK_EX, false);
    one.in_use = lock && !*lock;
    out.push_back(std::move(one));
  }
  return out;
}

namespace {

constexpr int kMaxTreeDepth = 100;

struct Walk {
  const StoreLimits& limits;
  bool strip;  // whether to remove setuid and setgid bits
  TreeSize size{};
};

// Opens an entry of a directory, or returns -1 if a user has mounted something there (FUSE). Such a
// mount is not on this disk, and its contents are not read, because its program might never answer.
int open_beside(int dir_fd, const char* name, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, dir_fd, name, &how, sizeof how));
}

void walk(int parent, const char* name, Walk& w, int depth);

void walk_entry(int dir_fd, const char* name, Walk& w, int depth) {
  struct stat st {};
  ++w.size.files;
  const Fd seen(open_beside(dir_fd, name, O_PATH));
  if (!seen || ::fstat(seen.get(), &st) != 0) return;
  // Each hard link counts a share of the file's bytes, so the file counts once.
  const auto names = std::max<std::int64_t>(1, static_cast<std::int64_t>(st.st_nlink));
  const bool directory = S_ISDIR(st.st_mode);
  w.size.bytes += directory ? 4096 : std::int64_t{st.st_blocks} * 512 / names;
  if (w.strip && S_ISREG(st.st_mode) && (st.st_mode & (S_ISUID | S_ISGID)) != 0) {
    const Fd file(open_beside(dir_fd, name, O_RDONLY | O_NONBLOCK));
    if (file) (void)!::fchmod(file.get(), st.st_mode & 01777);
  }
  if (directory) walk(dir_fd, name, w, depth + 1);
}

// The walk needs one descriptor for each level, and one for the present entry.
void walk(int parent, const char* name, Walk& w, int depth) {
  if (depth > kMaxTreeDepth) w.size.files = w.limits.image_files + 1;
  if (depth > kMaxTreeDepth) return;
  const int fd = open_beside(parent, name, O_RDONLY | O_DIRECTORY);
  DIR* dir = fd < 0 ? nullptr : ::fdopendir(fd);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    if (w.size.files > w.limits.image_files || w.size.bytes > w.limits.image_bytes) break;
    const std::string_view child = entry->d_name;
    if (child != "." && child != "..") walk_entry(fd, entry->d_name, w, depth);
  }
  ::closedir(dir);
}

}  // namespace

TreeSize tree_size(int dir_fd, const StoreLimits& limits) {
  Walk w{limits, false};
  walk(dir_fd, ".", w, 0);
  return w.size;
}

TreeSize settle_tree(int dir_fd, const StoreLimits& limits) {
  Walk w{limits, true};
  walk(dir_fd, ".", w, 0);
  return w.size;
}

}  // namespace gantry::runtime

GANTRY_CODEC_INSTANTIATE(gantry::runtime::ImageRecord)
