// Namespaces for jobs that are to come. To make one takes milliseconds, in which the kernel holds
// the lock on all links; all of it but the addresses and the rules can be done before anybody knows
// whose it will be. A namespace is given to one attempt and removed after it, never given again.
//
//   DIRECTORY/ready/7/net, sys    made in advance, with the link j7, which is up and has no address
//   DIRECTORY/12.1/net, sys       the same after it was given to attempt 1 of job 12
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "common/result.h"
#include "noded/network/netlink.h"

namespace gantry::network {

inline constexpr const char* kReadyDir = "ready";
inline constexpr const char* kSpaceFile = "net";  // in the directory of an attempt
inline constexpr const char* kSysDir = "sys";
inline constexpr const char* kJobEnd = "eth0";
// VXLAN adds 50 bytes to a packet over IPv4 and 70 over IPv6. Networks of 1,500 bytes are what can
// be relied on; the machine's route may take more, which nobody here is told.
inline constexpr std::uint32_t kMtu = 1500 - 70;

// Locally administered MAC addresses; they are never seen outside of the links that we make.
inline constexpr Mac kJobMac{0x02, 'g', 'n', 't', 0, 2};
inline constexpr Mac kNodeMac{0x02, 'g', 'n', 't', 0, 1};
// The gateway of every job.
inline constexpr Ip6 kGateway{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

Result<void> make_directory(const std::string& directory);
// Removes the directory of a namespace with what is mounted there; there may be nothing.
Result<void> release_directory(const std::string& directory);
// Removes all that was made in advance in a fabric's directory, also by an earlier process.
Result<void> release_ready(const std::string& directory);

struct ReadySpace {
  std::string directory, link;
};

class ReadySpaces {
 public:
  // In the directory of a fabric, with links of the node's namespace. `first` is above the number
  // of every link that is there.
  ReadySpaces(std::string directory, Netlink& links, std::uint64_t first)
      : directory_(std::move(directory)), links_(links), next_(first) {}

  // Makes one more.
  Result<void> make();
  // The one that was made first, or one that is made now. It belongs to the caller.
  Result<ReadySpace> take();
  [[nodiscard]] std::size_t size() const { return spaces_.size(); }
  Result<void> release();  // all of them

 private:
  Result<ReadySpace> make_one();

  std::string directory_;
  Netlink& links_;
  std::uint64_t next_;
  std::deque<ReadySpace> spaces_;
};

}  // namespace gantry::network
