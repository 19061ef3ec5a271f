#include "noded/network/space.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gantry::network {
namespace {

constexpr const char* kOwn = "/proc/thread-self/ns/net";

tl::unexpected<Error> failed(const std::string& what) {
  return fail(ErrorCode::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<void> start_loopback() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  if (!socket || ::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return failed("the loopback link could not be started");
  return {};
}

}  // namespace

Result<Fd> own_space() {
  Fd out(::open(kOwn, O_RDONLY | O_CLOEXEC));
  if (!out) return failed("the own network namespace cannot be opened");
  return out;
}

Result<Fd> new_space() {
  auto before = own_space();
  if (!before) return before;
  if (::unshare(CLONE_NEWNET) != 0) return failed("no network namespace can be made");
  Result<Fd> made = own_space();
  if (made)
    if (auto up = start_loopback(); !up) made = tl::unexpected(up.error());
  if (::setns(before->get(), CLONE_NEWNET) != 0) std::abort();
  return made;
}

Result<void> bind_space(const Fd& space, const std::string& file) {
  const Fd target(::open(file.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target) return failed(fmt::format("{} cannot be made", file));
  const std::string source = fmt::format("/proc/thread-self/fd/{}", space.get());
  if (::mount(source.c_str(), file.c_str(), nullptr, MS_BIND, nullptr) == 0) return {};
  const auto error = failed(fmt::format("no namespace can be bound to {}", file));
  ::unlink(file.c_str());
  return error;
}

Result<Fd> make_space(const std::string& file) {
  auto made = new_space();
  if (!made) return made;
  TRY(bind_space(*made, file));
  return made;
}

Result<Fd> open_space(const std::string& file) {
  Fd out(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct statfs about {};
  if (!out || ::fstatfs(out.get(), &about) != 0 || about.f_type != NSFS_MAGIC)
    return fail(ErrorCode::not_found, fmt::format("{} holds no network namespace", file));
  return out;
}

Result<void> release_space(const std::string& file) {
  while (::umount2(file.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  if (::unlink(file.c_str()) != 0 && errno != ENOENT)
    return failed(fmt::format("{} cannot be removed", file));
  return {};
}

Result<void> inside(const Fd& space, const std::function<Result<void>()>& work) {
  ASSIGN(before, own_space());
  if (::setns(space.get(), CLONE_NEWNET) != 0) return failed("the namespace cannot be entered");
  auto done = work();
  if (::setns(before->get(), CLONE_NEWNET) != 0) std::abort();
  return done;
}

Result<void> set_sysctl(const std::string& name, std::string_view value) {
  const std::string path = "/proc/sys/net/" + name;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0)
    return failed(fmt::format("{} cannot be set to {}", path, value));
  return {};
}

}  // namespace gantry::network
