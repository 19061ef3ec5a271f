#include "noded/shim/image.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "noded/shim/as_user.h"
#include "noded/shim/image_cache.h"
#include "noded/shim/outputs.h"

namespace gantry::runtime {
namespace {

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  for (const auto e : endings)
    if (text.ends_with(e)) return true;
  return false;
}

bool is_below(std::string_view path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

// A directory or a file is taken from anywhere, or from the node's list when it has one.
Result<void> check_allowed(const NodeSetup& setup, const Fd& fd, const std::string& name) {
  if (setup.image_dirs.empty()) return {};
  std::array<char, 4096> real{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  if (::readlink(link.c_str(), real.data(), real.size() - 1) <= 0)
    return fail_errno(ErrorCode::runtime_failed, name);
  for (const auto& top : setup.image_dirs)
    if (is_below(real.data(), top)) return {};
  return fail(ErrorCode::permission_denied,
              "image " + name + ": not below one of this node's image directories");
}

// A loop device for `file`, which frees itself with the last user.
Result<std::string> attach_loop(const Fd& file) {
  constexpr int kTries = 64;
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return fail_errno(ErrorCode::unsupported, "/dev/loop-control");
  for (int i = 0; i < kTries; ++i) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno(ErrorCode::runtime_failed, "no free loop device");
    const std::string path = "/dev/loop" + std::to_string(number);
    const Fd loop(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!loop) return fail_errno(ErrorCode::runtime_failed, path);
    loop_config config{};
    config.fd = static_cast<unsigned>(file.get());
    config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
    if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) != 0) {
      if (errno == EBUSY) continue;  // another shim was faster
      return fail_errno(ErrorCode::runtime_failed, path);
    }
    // Mounted through our own descriptor's path, before it closes and the device clears itself.
    return path + ":" + std::to_string(::fcntl(loop.get(), F_DUPFD_CLOEXEC, 3));
  }
  return fail(ErrorCode::runtime_failed, "no loop device could be had");
}

Result<void> mount_squashfs(const Shim& shim, ImageUse& image) {
  if (shim.setup.rootless)
    return fail(ErrorCode::unsupported,
                "image " + image.path + ": a squashfs image needs a node daemon that is root");
  const auto file = open_as_user(
      shim.request.owner, [&](const AsUser& user) { return user.open_file(image.path, O_RDONLY); });
  if (!file) return fail(file.error().code, "image " + file.error().message);
  if (auto r = check_allowed(shim.setup, *file, image.path); !r) return r;
  const auto loop = attach_loop(*file);
  if (!loop) return fail(loop.error().code, "image " + image.path + ": " + loop.error().message);
  const auto colon = loop->rfind(':');
  const Fd keep(std::stoi(loop->substr(colon + 1)));
  const std::string target = shim.setup.mount_dir + "/image";
  if (::mkdir(target.c_str(), 0755) != 0) return fail_errno(ErrorCode::runtime_failed, target);
  if (::mount(loop->substr(0, colon).c_str(), target.c_str(), "squashfs",
              MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
    return fail_errno(ErrorCode::runtime_failed, "image " + image.path);
  image.root.reset(::open(target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return {};
}

Result<void> open_directory(const Shim& shim, ImageUse& image) {
  auto dir = open_as_user(shim.request.owner, [&](const AsUser& user) -> Result<Fd> {
    auto opened = user.open(image.path, O_PATH | O_DIRECTORY);
    if (!opened) return opened;
    // The overlay would read it with root's rights.
    if (auto r = check_holds_files(*opened, image.path); !r) return tl::unexpected(r.error());
    if (!user.may(*opened, R_OK | X_OK))
      return fail(ErrorCode::permission_denied,
                  image.path + ": " + shim.request.owner.user + " may not read it");
    return opened;
  });
  if (!dir) return fail(dir.error().code, "image " + dir.error().message);
  if (auto r = check_allowed(shim.setup, *dir, image.path); !r) return r;
  image.root = std::move(*dir);
  return {};
}

// skopeo would only say that it failed, and not whose fault that is.
Result<void> check_local(const Shim& shim, std::string_view source) {
  if (source.starts_with("docker://")) return {};
  source.remove_prefix(source.find(':') + 1);
  const std::string path(source.substr(0, source.find(':')));
  const auto there = open_as_user(shim.request.owner, [&](const AsUser& user) -> Result<Fd> {
    auto found = user.open(path, O_PATH);
    if (found && !user.may(*found, R_OK)) return fail_errno(code_of_path_error(errno), path);
    return found;
  });
  if (!there) return fail(there.error().code, "image " + there.error().message);
  return {};
}

}  // namespace

Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir) {
  if (reference.empty()) return ImageReference{};
  for (const std::string_view scheme : {"docker://", "oci:", "oci-archive:", "docker-archive:"}) {
    if (!reference.starts_with(scheme)) continue;
    std::string rest = reference.substr(scheme.size());
    if (rest.empty()) return fail(ErrorCode::invalid_argument, "image " + reference + ": no name");
    if (scheme == "docker://") {
      if (const auto hash = rest.find('#'); hash != std::string::npos) rest[hash] = '/';
    } else {
      rest = absolute_path(work_dir, rest);
    }
    return ImageReference{ImageKind::copied, std::string(scheme) + rest};
  }
  if (reference.starts_with("/") || reference.starts_with("./") || reference.starts_with("../")) {
    const auto path = absolute_path(work_dir, reference);
    const bool file = ends_with_any(path, {".sqsh", ".squashfs", ".sqfs"});
    return ImageReference{file ? ImageKind::squashfs : ImageKind::directory, path};
  }
  if (reference.find("://") != std::string::npos)
    return fail(ErrorCode::invalid_argument,
                "image " + reference +
                    ": expected docker://, oci:, oci-archive:, docker-archive:, a directory or a "
                    ".sqsh file");
  std::string rest = reference;
  if (const auto hash = rest.find('#'); hash != std::string::npos) rest[hash] = '/';
  return ImageReference{ImageKind::copied, "docker://" + rest};
}

Result<void> fetch_image(const Shim& shim, ImageUse& image, Signals& signals) {
  auto reference = parse_image(shim.request.container.image, shim.request.work_dir);
  if (!reference) return tl::unexpected(reference.error());
  image.kind = reference->kind;
  image.path = reference->source;
  if (image.kind != ImageKind::copied) return {};
  if (auto r = check_local(shim, reference->source); !r) return r;
  auto cached = cached_image(shim, reference->source, signals);
  if (!cached) return fail(ErrorCode::runtime_failed, "image " + cached.error().message);
  image.path = cached->rootfs;
  image.config = std::move(cached->config);
  return {};
}

Result<void> mount_image(const Shim& shim, ImageUse& image) {
  switch (image.kind) {
    case ImageKind::none: return {};
    case ImageKind::directory: return open_directory(shim, image);
    case ImageKind::squashfs: return mount_squashfs(shim, image);
    case ImageKind::copied:
      image.root.reset(::open(image.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!image.root) return fail_errno(ErrorCode::runtime_failed, "image " + image.path);
      return {};
  }
  return {};
}

}  // namespace gantry::runtime
