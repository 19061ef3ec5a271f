#include "noded/network/space.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "noded/network/rules.h"

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

// A read-only sysfs of this thread's network namespace, not mounted anywhere.
Result<Fd> sysfs_here() {
  const auto failed = [] {
    return fail(ErrorCode::unavailable,
                fmt::format("no sysfs can be made: {}", std::strerror(errno)));
  };
  const Fd context(::fsopen("sysfs", FSOPEN_CLOEXEC));
  if (!context || ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "ro", nullptr, 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return failed();
  Fd out(::fsmount(context.get(), FSMOUNT_CLOEXEC,
                   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!out) return failed();
  return out;
}

// Set inside the job's namespace; the job cannot change it, because it has no capability there.
Result<Fd> settle() {
  ASSIGN(links, Netlink::open(Netlink::For::changes));
  TRY(set_sysctl(fmt::format("ipv6/conf/{}/accept_ra", kJobEnd), "0"));
  ASSIGN(done, links->together([&]() -> Result<void> {
    TRY(links->set_up(kJobEnd));
    TRY(links->add_neighbour(kJobEnd, kGateway, kNodeMac));
    return links->add_route(kJobEnd, Ip6{}, 0, kGateway);
  }));
  return sysfs_here();
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

Result<void> make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0711) == 0) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("{} cannot be made: {}", directory, std::strerror(errno)));
}

Result<void> release_directory(const std::string& directory) {
  if (::access(directory.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  while (::umount2((directory + "/" + kSysDir).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  ::rmdir((directory + "/" + kSysDir).c_str());
  TRY(release_space(directory + "/" + kSpaceFile));
  if (::rmdir(directory.c_str()) != 0 && errno != ENOENT)
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot be removed: {}", directory, std::strerror(errno)));
  return {};
}

Result<void> bind_directory(const std::string& directory, const ReadySpace& space) {
  TRY(make_directory(directory));
  const std::string sys = directory + "/" + kSysDir;
  TRY(make_directory(sys));
  TRY(bind_space(space.space, directory + "/" + kSpaceFile));
  if (::move_mount(space.sys.get(), "", AT_FDCWD, sys.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no sysfs can be mounted at {}: {}", sys, std::strerror(errno)));
  return {};
}

Result<void> ReadySpaces::make() {
  ASSIGN(made, make_one());
  spaces_.push_back(std::move(*made));
  return {};
}

Result<ReadySpace> ReadySpaces::take() {
  if (spaces_.empty()) return make_one();
  ReadySpace out = std::move(spaces_.front());
  spaces_.pop_front();
  return out;
}

Result<ReadySpace> ReadySpaces::make_one() {
  ReadySpace out;
  out.link = fmt::format("{}{}", kJobLinks, next_++);
  ASSIGN(space, new_space());
  out.space = std::move(*space);
  Netlink::Veth veth;
  veth.name = out.link;
  veth.peer_name = kJobEnd;
  veth.mac = kNodeMac;
  veth.peer_mac = kJobMac;
  veth.peer_space = out.space.get();
  veth.mtu = mtu_;
  TRY(links_.make_veth(veth));
  ASSIGN(settled, inside(out.space, [&]() -> Result<void> {
           ASSIGN(sys, settle());
           out.sys = std::move(*sys);
           return {};
         }));
  TRY(links_.wait_until_up(out.link));
  return out;
}

}  // namespace gantry::network
