#include "noded/shim/image_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::runtime {
namespace {

struct UserCache {
  std::string dir, layout, temporary;
};

// <cache>/users/<uid>, owned by the user; everything above belongs to us.
Result<UserCache> user_cache(const Shim& shim) {
  const auto& top = shim.setup.image_cache_dir;
  const auto uid = shim.request.owner.uid.value();
  if (top.empty()) return fail(ErrorCode::unsupported, "this node has no image cache");
  if (auto r = make_dirs(top, 0711); !r) return tl::unexpected(r.error());
  if (auto r = make_dirs(top + "/users", 0711); !r) return tl::unexpected(r.error());
  if (auto r = make_dirs(top + "/rootfs", 0700); !r) return tl::unexpected(r.error());
  UserCache cache;
  cache.dir = top + "/users/" + std::to_string(uid);
  cache.layout = cache.dir + "/layout";
  cache.temporary = cache.dir + "/tmp";
  for (const auto& dir : {cache.dir, cache.layout, cache.temporary}) {
    if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST)
      return fail_errno(ErrorCode::io_error, dir);
    if (!shim.setup.rootless && dir == cache.dir &&
        ::lchown(dir.c_str(), uid, shim.request.owner.gid.value()) != 0)
      return fail_errno(ErrorCode::io_error, dir);
    if (dir == cache.dir) continue;
    struct stat st {};  // the user may have put anything here
    if (::lstat(dir.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
      return fail(ErrorCode::io_error, dir + ": not a directory");
    if (!shim.setup.rootless && st.st_uid == 0)
      (void)!::lchown(dir.c_str(), uid, shim.request.owner.gid.value());
  }
  return cache;
}

// Waits for another shim of this node, but not longer than our own order lives.
Result<Fd> lock_file(const std::string& path, Signals& signals) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(ErrorCode::io_error, path);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(ErrorCode::io_error, path);
    for (int s = signals.next(); s != 0; s = signals.next())
      if (s == SIGTERM) return fail(ErrorCode::runtime_failed, "ended by order while waiting");
    // tidy-allow(sleep): flock has no time limit, and SIGTERM must be seen meanwhile
    ::usleep(20'000);
  }
  return fd;
}

// A tag for the layout; two sources with one tag do no harm, as the digest is read under the lock.
std::string tag_of(const std::string& source) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return "i" + std::to_string(hash);
}

bool on_loopback(const std::string& source) {
  for (const char* host : {"docker://127.0.0.1", "docker://localhost", "docker://[::1]"})
    if (source.starts_with(host)) return true;
  return false;
}

Result<void> copy(const Shim& shim, const UserCache& cache, const std::string& source,
                  const std::string& tag, Signals& signals) {
  const auto& owner = shim.request.owner;
  ChildSpec spec;
  spec.argv = {"/usr/bin/skopeo", "--insecure-policy", "copy", "--quiet", "--retry-times", "2"};
  if (on_loopback(source)) spec.argv.emplace_back("--src-tls-verify=false");
  spec.argv.push_back(source);
  spec.argv.push_back("oci:" + cache.layout + ":" + tag);
  spec.env = {"PATH=/usr/bin:/bin", "HOME=" + owner.home, "TMPDIR=" + cache.temporary,
              "XDG_RUNTIME_DIR=/run/user/" + std::to_string(owner.uid.value())};
  if (!shim.setup.rootless) {
    spec.uid = owner.uid.value();
    spec.gid = owner.gid.value();
    for (const auto g : owner.groups) spec.groups.push_back(g.value());
  }
  auto done = run_helper(std::move(spec), signals, shim.setup.image_timeout);
  if (!done) return fail(done.error().code, source + ": " + done.error().message);
  return {};
}

Result<void> unpack(const Shim& shim, const UserCache& cache, const std::string& tag,
                    const std::string& rootfs, Signals& signals) {
  const std::string temporary = rootfs + ".tmp";
  remove_tree(temporary);
  ChildSpec spec;
  spec.argv = {"/usr/bin/umoci", "raw", "unpack"};
  if (shim.setup.rootless) spec.argv.emplace_back("--rootless");
  for (const auto& word : {std::string("--image"), cache.layout + ":" + tag, temporary})
    spec.argv.push_back(word);
  spec.env = {"PATH=/usr/bin:/bin", "HOME=/"};
  auto done = run_helper(std::move(spec), signals, shim.setup.image_timeout);
  if (!done) {
    remove_tree(temporary);
    return tl::unexpected(done.error());
  }
  if (::rename(temporary.c_str(), rootfs.c_str()) != 0)
    return fail_errno(ErrorCode::io_error, rootfs);
  return {};
}

}  // namespace

Result<CachedImage> cached_image(const Shim& shim, const std::string& source, Signals& signals) {
  const auto cache = user_cache(shim);
  if (!cache) return tl::unexpected(cache.error());
  const auto tag = tag_of(source);
  const auto& top = shim.setup.image_cache_dir;
  const auto mine = lock_file(
      top + "/users/" + std::to_string(shim.request.owner.uid.value()) + ".lock", signals);
  if (!mine) return tl::unexpected(mine.error());
  if (auto r = copy(shim, *cache, source, tag, signals); !r) return tl::unexpected(r.error());
  auto image = read_layout(cache->layout, tag);
  if (!image) return fail(image.error().code, source + ": " + image.error().message);
  const auto hex = image->digest.substr(image->digest.find(':') + 1);
  CachedImage out{top + "/rootfs/" + hex, std::move(image->config)};
  const auto lock = lock_file(out.rootfs + ".lock", signals);
  if (!lock) return tl::unexpected(lock.error());
  struct stat st {};
  if (::stat(out.rootfs.c_str(), &st) == 0) return out;
  if (auto r = unpack(shim, *cache, tag, out.rootfs, signals); !r)
    return fail(r.error().code, source + ": " + r.error().message);
  return out;
}

}  // namespace gantry::runtime
