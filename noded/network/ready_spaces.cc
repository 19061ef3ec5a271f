#include "noded/network/ready_spaces.h"

#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "noded/network/rules.h"
#include "noded/network/space.h"

namespace gantry::network {
namespace {

// Inside the job's namespace, which the job itself cannot change: it has no capability there.
Result<void> settle(const std::string& sys) {
  auto links = Netlink::open(Netlink::For::changes);
  if (!links) return tl::unexpected(links.error());
  if (auto r = set_sysctl(fmt::format("ipv6/conf/{}/accept_ra", kJobEnd), "0"); !r) return r;
  if (auto r = links->together([&]() -> Result<void> {
        if (auto set = links->set_up(kJobEnd); !set) return set;
        if (auto set = links->add_neighbour(kJobEnd, kGateway, kNodeMac); !set) return set;
        return links->add_route(kJobEnd, Ip6{}, 0, kGateway);
      });
      !r)
    return r;
  if (::mount("sysfs", sys.c_str(), "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              nullptr) != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no sysfs can be mounted at {}: {}", sys, std::strerror(errno)));
  return {};
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

Result<void> release_ready(const std::string& directory) {
  const std::string ready = directory + "/" + kReadyDir;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(ready, error))
    if (auto r = release_directory(entry.path()); !r) return r;
  if (::rmdir(ready.c_str()) != 0 && errno != ENOENT)
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot be removed: {}", ready, std::strerror(errno)));
  return {};
}

Result<void> ReadySpaces::make() {
  auto made = make_one();
  if (!made) return tl::unexpected(made.error());
  spaces_.push_back(std::move(*made));
  return {};
}

Result<ReadySpace> ReadySpaces::take() {
  if (spaces_.empty()) return make_one();
  ReadySpace out = std::move(spaces_.front());
  spaces_.pop_front();
  return out;
}

Result<void> ReadySpaces::release() {
  spaces_.clear();
  return release_ready(directory_);
}

Result<ReadySpace> ReadySpaces::make_one() {
  const std::uint64_t number = next_++;
  const std::string ready = directory_ + "/" + kReadyDir;
  ReadySpace out{fmt::format("{}/{}", ready, number), fmt::format("{}{}", kJobLinks, number)};
  if (::mkdir(ready.c_str(), 0711) != 0 && errno != EEXIST)
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot be made: {}", ready, std::strerror(errno)));
  const auto done = [&]() -> Result<void> {
    if (auto r = make_directory(out.directory); !r) return r;
    const std::string sys = out.directory + "/" + kSysDir;
    if (auto r = make_directory(sys); !r) return r;
    const auto space = make_space(out.directory + "/" + kSpaceFile);
    if (!space) return tl::unexpected(space.error());
    Netlink::Veth veth;
    veth.name = out.link;
    veth.peer_name = kJobEnd;
    veth.mac = kNodeMac;
    veth.peer_mac = kJobMac;
    veth.peer_space = space->get();
    veth.mtu = kMtu;
    if (auto r = links_.make_veth(veth); !r) return r;
    if (auto r = inside(*space, [&] { return settle(sys); }); !r) return r;
    return links_.wait_until_up(out.link);
  }();
  if (done) return out;
  (void)release_directory(out.directory);
  return tl::unexpected(done.error());
}

}  // namespace gantry::network
