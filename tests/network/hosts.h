// Machines for tests of the network: network namespaces that stand for hosts, joined by a bridge in
// one more namespace that stands for the switch. Root only; all of it goes with the object.
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
  std::string directory;  // of its Fabric
  Underlay underlay;
  NodeKey secret{};  // of wireguard
  std::unique_ptr<Fabric> fabric;
};

class Hosts {
 public:
  // By this transport, or by that of $GANTRY_TRANSPORT, so that all tests run with each.
  explicit Hosts(std::uint32_t count, std::optional<Transport> transport = std::nullopt);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Opens a host's Fabric, or opens it again as a daemon does that was killed.
  void open(Host& host, const std::vector<JobNetwork>& attempts);
  // A job of this id with a part on each of these hosts, as the host `here` is told of it.
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
