#include "noded/network/trial.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "noded/network/fabric.h"
#include "noded/network/space.h"
#include "noded/network/wireguard.h"

namespace gantry::network {
namespace {

constexpr std::uint16_t kPort = 4789;  // of the stand-in's own machine

Result<void> make_one(const std::string& directory, Transport transport) {
  ASSIGN(blocks, read_blocks("fd00::/48", "100.64.0.0/10"));
  FabricOptions options{directory, *blocks, 1, {"127.0.0.1", kPort}, 1};
  options.transport = transport;
  options.secret = new_key();
  ASSIGN(fabric, Fabric::open(options, {}));
  JobNetwork job;
  job.key = {JobId(1), Attempt(1)};
  job.part = {1, JobId(1), 0U, 0};
  if (transport == Transport::wireguard)
    job.peers.push_back(
        {{2, JobId(1), 0U, 0}, {"127.0.0.2", kPort, text_of_key(public_key(new_key()))}});
  if (auto r = (*fabric)->attach(job); !r) return r;
  return (*fabric)->detach(job.key);
}

// In a mount namespace of this thread, so what a killed daemon leaves goes with it.
Result<void> try_here(const std::string& directory, Transport transport) {
  namespace fs = std::filesystem;
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no mount namespace can be made: {}", std::strerror(errno)));
  const std::string machine = directory + "/machine", node = directory + "/node";
  std::error_code error;
  fs::remove_all(directory, error);  // of a daemon that was killed meanwhile
  fs::create_directories(node, error);
  if (error)
    return fail(ErrorCode::io_error, fmt::format("{} cannot be made: {}", node, error.message()));
  auto space = make_space(machine);
  Result<void> made;
  if (!space)
    made = tl::unexpected(space.error());
  else
    made = inside(*space, [&] { return make_one(node, transport); });
  (void)Fabric::remove(node);
  (void)release_space(machine);
  fs::remove_all(directory, error);
  return made;
}

}  // namespace

Result<void> try_networks(const std::string& directory, Transport transport) {
  const auto families = WayOut::forwarded();
  if (transport == Transport::routed && (!families.four || !families.six))
    return fail(ErrorCode::unavailable,
                fmt::format("packets between nodes are routed, and the machine forwards none: "
                            "net.{} is 0",
                            families.four ? "ipv6.conf.all.forwarding" : "ipv4.ip_forward"));
  Result<void> out;
  std::thread([&] { out = try_here(directory, transport); }).join();
  if (out || transport == Transport::vxlan) return out;
  return fail(out.error().code, fmt::format("{} ({})", out.error().message, name_of(transport)));
}

}  // namespace gantry::network
