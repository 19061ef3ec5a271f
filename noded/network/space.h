// Network namespaces that outlive the process which made them: each is bound to a file, so it stays
// until the file is released. Only root can use them.
//
// A thread that enters a namespace comes back before the call returns; other threads are where they
// were. In a process of several threads only one should call these, because files below
// /proc/sys/net and new sockets belong to the namespace of the thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"
#include "noded/network/netlink.h"

namespace gantry::network {

// The namespace of this thread.
Result<Fd> own_space();

// Makes a namespace with nothing but a loopback link, which is up. It goes with the descriptor.
Result<Fd> new_space();

// Binds a namespace to a new file.
Result<void> bind_space(const Fd& space, const std::string& file);

// Makes a namespace and binds it to a new file.
Result<Fd> make_space(const std::string& file);

// Opens the namespace that the file holds. The error is not_found if the file holds none: it is not
// there, or it was left over from before the machine started.
Result<Fd> open_space(const std::string& file);

// The file is gone afterwards, and so is the namespace once nothing runs in it.
Result<void> release_space(const std::string& file);

// Runs `work` inside of the namespace. Ends the process if the thread cannot come back.
Result<void> inside(const Fd& space, const std::function<Result<void>()>& work);

// Writes a setting of this thread's namespace: "ipv6/conf/all/forwarding".
Result<void> set_sysctl(const std::string& name, std::string_view value);

// Namespaces for jobs that are to come. To make one takes milliseconds, in which the kernel holds
// the lock on all links; all of it but the addresses and the rules can be done before anybody knows
// whose it will be. A namespace is given to one attempt and removed after it, never given again.
//
// Nothing holds a namespace that is nobody's but descriptors of this process, so it goes with the
// process. It has no mount either: every container that begins copies all mounts of the machine.

inline constexpr const char* kSpaceFile = "net";  // in the directory of an attempt
inline constexpr const char* kSysDir = "sys";
inline constexpr const char* kJobEnd = "eth0";

// Locally administered MAC addresses; they are never seen outside of the links that we make.
inline constexpr Mac kJobMac{0x02, 'g', 'n', 't', 0, 2};
inline constexpr Mac kNodeMac{0x02, 'g', 'n', 't', 0, 1};
// The gateway of every job.
inline constexpr Ip6 kGateway{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

struct ReadySpace {
  std::string link;  // the node's end of its link, which is up and has no address
  Fd space, sys;     // the namespace, and a read-only sysfs that shows it, mounted nowhere
};

Result<void> make_directory(const std::string& directory);
// Binds a namespace and its sysfs into a new directory, where they outlive this process.
Result<void> bind_directory(const std::string& directory, const ReadySpace& space);
// Removes the directory of a namespace with what is mounted there; there may be nothing.
Result<void> release_directory(const std::string& directory);

class ReadySpaces {
 public:
  // With links of the node's namespace. `first` is above the number of every link that is there;
  // packets of jobs have `mtu` bytes at most.
  ReadySpaces(Netlink& links, std::uint64_t first, std::uint32_t mtu)
      : links_(links), next_(first), mtu_(mtu) {}

  // Makes one more.
  Result<void> make();
  // The one that was made first, or one that is made now.
  Result<ReadySpace> take();
  [[nodiscard]] std::size_t size() const { return spaces_.size(); }

 private:
  Result<ReadySpace> make_one();

  Netlink& links_;
  std::uint64_t next_;
  std::uint32_t mtu_;
  std::deque<ReadySpace> spaces_;
};

}  // namespace gantry::network
