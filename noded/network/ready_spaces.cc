#include "noded/network/ready_spaces.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "noded/network/rules.h"
#include "noded/network/space.h"

namespace gantry::network {
namespace {

// A read-only sysfs of this thread's network namespace, mounted nowhere.
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

// Inside the job's namespace, which the job itself cannot change: it has no capability there.
Result<Fd> settle() {
  ASSIGN(links, Netlink::open(Netlink::For::changes));
  TRY(set_sysctl(fmt::format("ipv6/conf/{}/accept_ra", kJobEnd), "0"));
  ASSIGN(done, links->together([&]() -> Result<void> {
    if (auto r = links->set_up(kJobEnd); !r) return r;
    if (auto r = links->add_neighbour(kJobEnd, kGateway, kNodeMac); !r) return r;
    return links->add_route(kJobEnd, Ip6{}, 0, kGateway);
  }));
  return sysfs_here();
}

}  // namespace

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
  if (auto r = release_space(directory + "/" + kSpaceFile); !r) return r;
  if (::rmdir(directory.c_str()) != 0 && errno != ENOENT)
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot be removed: {}", directory, std::strerror(errno)));
  return {};
}

Result<void> bind_directory(const std::string& directory, const ReadySpace& space) {
  if (auto r = make_directory(directory); !r) return r;
  const std::string sys = directory + "/" + kSysDir;
  if (auto r = make_directory(sys); !r) return r;
  if (auto r = bind_space(space.space, directory + "/" + kSpaceFile); !r) return r;
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
