#include "noded/runtime/secret_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "noded/machine/files.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr std::size_t kMostName = 255;
constexpr const char* kStorePrefix = ".store.";
constexpr const char* kFresh = ".new";  // prefix that no file of a job has

std::string room_of(const std::string& state_dir) {
  return state_dir + "/secrets";
}

std::string store_keys_file(const std::string& state_dir, const AttemptKey& key) {
  return room_of(state_dir) + "/" + kStorePrefix + job_name(key);
}

bool is_tmpfs(const std::string& path) {
  struct statfs found {};
  return ::statfs(path.c_str(), &found) == 0 && found.f_type == TMPFS_MAGIC;
}

// A tmpfs may be swapped out unless it is mounted with noswap, which kernels have since 6.4.
Result<void> make_room(const std::string& room) {
  if (is_tmpfs(room)) return {};
  if (::geteuid() != 0)
    return fail(ErrorCode::unsupported,
                "secrets and identity tokens need a node daemon that is root: only root can keep "
                "them off the disk");
  if (::mkdir(room.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(ErrorCode::io_error, room);
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  constexpr const char* kOptions = "mode=0700,size=1g,nr_inodes=200k";
  const std::string locked = std::string(kOptions) + ",noswap";
  if (::mount("tmpfs", room.c_str(), "tmpfs", kFlags, locked.c_str()) == 0) return {};
  if (::mount("tmpfs", room.c_str(), "tmpfs", kFlags, kOptions) == 0) return {};
  return fail_errno(ErrorCode::runtime_failed, "tmpfs at " + room);
}

Result<void> check_name(std::string_view file) {
  const bool sound = !file.empty() && file.size() <= kMostName && file[0] != '.' &&
                     std::ranges::all_of(file, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
                     });
  if (sound) return {};
  return fail(ErrorCode::invalid_argument,
              "the controller names a file of secrets as no file may be named");
}

Result<void> write_file(const Fd& dir, const char* name, const Owner& owner,
                        std::string_view content) {
  const Fd file(
      ::openat(dir.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  if (!file) return fail_errno(ErrorCode::io_error, "a file of secrets");
  while (!content.empty()) {
    const ssize_t n = ::write(file.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail_errno(ErrorCode::out_of_space, "the room for secrets of this node");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fchown(file.get(), owner.uid.value(), owner.gid.value()) != 0 ||
      ::fchmod(file.get(), 0400) != 0)
    return fail_errno(ErrorCode::io_error, "a file of secrets");
  return {};
}

Result<Fd> open_dir(const std::string& path) {
  Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) return fail_errno(ErrorCode::io_error, path);
  return dir;
}

}  // namespace

Result<std::string> write_secrets(const std::string& state_dir, const AttemptKey& key,
                                  const Owner& owner, const std::vector<SecretText>& files) {
  const std::string room = room_of(state_dir);
  TRY(make_room(room));
  remove_secrets(state_dir, key);
  const std::string path = room + "/" + job_name(key);
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(ErrorCode::io_error, path);
  const auto fill = [&]() -> Result<void> {
    ASSIGN(dir, open_dir(path));
    for (const SecretText& one : files) {
      TRY(check_name(one.file));
      TRY(write_file(*dir, std::string(one.file).c_str(), owner, one.content));
    }
    if (::fchown(dir->get(), owner.uid.value(), owner.gid.value()) != 0 ||
        ::fchmod(dir->get(), 0500) != 0)
      return fail_errno(ErrorCode::io_error, path);
    return {};
  };
  if (auto r = fill(); !r) {
    remove_secrets(state_dir, key);
    return tl::unexpected(r.error());
  }
  return path;
}

Result<void> replace_secret(const std::string& state_dir, const AttemptKey& key, const Owner& owner,
                            const SecretText& file) {
  TRY(check_name(file.file));
  ASSIGN(dir, open_dir(room_of(state_dir) + "/" + job_name(key)));
  ::unlinkat(dir->get(), kFresh, 0);  // left by a daemon that was killed
  TRY(write_file(*dir, kFresh, owner, file.content));
  if (::renameat(dir->get(), kFresh, dir->get(), std::string(file.file).c_str()) != 0)
    return fail_errno(ErrorCode::io_error, "a file of secrets");
  return {};
}

void remove_secrets(const std::string& state_dir, const AttemptKey& key) {
  const std::string path = room_of(state_dir) + "/" + job_name(key);
  if (::access(path.c_str(), F_OK) == 0) remove_tree(path);
  ::unlink(store_keys_file(state_dir, key).c_str());
}

Result<void> write_store_keys(const std::string& state_dir, const AttemptKey& key,
                              std::string_view content) {
  const std::string room = room_of(state_dir);
  TRY(make_room(room));
  ASSIGN(dir, open_dir(room));
  const std::string name = kStorePrefix + job_name(key);
  ::unlinkat(dir->get(), name.c_str(), 0);
  return write_file(*dir, name.c_str(), Owner(), content);
}

Result<std::string> read_store_keys(const std::string& state_dir, const AttemptKey& key) {
  return read_file(store_keys_file(state_dir, key));
}

std::vector<AttemptKey> attempts_with_secrets(const std::string& state_dir) {
  std::vector<AttemptKey> out;
  for (std::string name : list_dir(room_of(state_dir))) {
    if (name.starts_with(kStorePrefix)) name.erase(0, std::string_view(kStorePrefix).size());
    if (const auto key = parse_job_name(name)) out.push_back(*key);
  }
  return out;
}

void unmount_secrets(const std::string& state_dir) {
  const std::string room = room_of(state_dir);
  while (is_tmpfs(room) && ::umount2(room.c_str(), MNT_DETACH) == 0) {
  }
  ::rmdir(room.c_str());
}

}  // namespace gantry::runtime
