// Machines for tests of the network: network namespaces that stand for hosts, joined by a bridge in
// one more namespace that stands for the switch. Needs root; all of it is removed with the object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"
#include "noded/network/fabric.h"
#include "noded/network/space.h"

namespace gantry::network::test {

struct Host {
  std::uint32_t node = 0;  // 1, 2, ...
  Fd space;
  std::string directory;  // directory of its Fabric
  Underlay underlay;
  NodeKey secret{};  // wireguard's key
  std::unique_ptr<Fabric> fabric;
};

class Hosts {
 public:
  // With this transport, or that of $GANTRY_TRANSPORT, so that all tests run with each.
  explicit Hosts(std::uint32_t count, std::optional<Transport> transport = std::nullopt);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Opens a host's Fabric, or opens it again as a daemon does that was killed.
  void open(Host& host, const std::vector<JobNetwork>& attempts);
  // A job with this id and a part on each of these hosts, as the node on host `here` gets it.
  [[nodiscard]] JobNetwork job(std::uint64_t id, const std::vector<std::uint32_t>& nodes,
                               std::uint32_t here, std::uint32_t group = 0) const;
  Host& operator[](std::uint32_t node) { return hosts_[node - 1]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }
  [[nodiscard]] const std::string& top() const { return top_; }
  [[nodiscard]] const Fd& wire() const { return wire_; }
  [[nodiscard]] Transport transport() const { return transport_; }

  std::vector<NetworkRange> guarded, resolvers;  // of each Fabric that is opened from now on

 private:
  void introduce(Host& host);

  std::string top_;
  Transport transport_;
  Blocks blocks_;
  Fd wire_;
  std::vector<Host> hosts_;
};

// Runs a command in the namespace that the file holds; whether it ended with 0.
bool run_in(const std::string& file, const std::string& command);
// What it writes to standard output.
std::string output_in(const std::string& file, const std::string& command);

}  // namespace gantry::network::test
