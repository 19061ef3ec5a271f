// Network namespaces that survive the process which made them: each is bound to a file, so it stays
// until the file is released. Only root can use them.
//
// A thread that enters a namespace returns to its own before the call ends; other threads are not
// affected. In a process with several threads only one should make these calls, because files below
// /proc/sys/net and new sockets belong to the thread's namespace.
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

// Makes a namespace that has only a loopback link, which is up. It is removed with the descriptor.
Result<Fd> new_space();

// Binds a namespace to a new file.
Result<void> bind_space(const Fd& space, const std::string& file);

// Makes a namespace and binds it to a new file.
Result<Fd> make_space(const std::string& file);

// Opens the namespace bound to the file. Error not_found: there is no such file, or it is left from
// before a reboot.
Result<Fd> open_space(const std::string& file);

// Removes the file; the namespace ends when nothing runs in it any more.
Result<void> release_space(const std::string& file);

// Runs `work` inside the namespace. Ends the process if the thread cannot return.
Result<void> inside(const Fd& space, const std::function<Result<void>()>& work);

// Writes a setting of this thread's namespace, for example "ipv6/conf/all/forwarding".
Result<void> set_sysctl(const std::string& name, std::string_view value);

// Namespaces for future jobs. Making one takes milliseconds, in which the kernel holds the lock on
// all links; everything except the addresses and the rules can be done before a job needs it. A
// namespace is given to one attempt and removed after it, never reused.
//
// A namespace without an attempt is held only by descriptors of this process, so it disappears with
// the process. It has no mount either, because every container that starts copies all mounts of the
// machine.

inline constexpr const char* kSpaceFile = "net";  // file in the directory of an attempt
inline constexpr const char* kSysDir = "sys";
inline constexpr const char* kJobEnd = "eth0";

// Locally administered MAC addresses; they appear only on links made here.
inline constexpr Mac kJobMac{0x02, 'g', 'n', 't', 0, 2};
inline constexpr Mac kNodeMac{0x02, 'g', 'n', 't', 0, 1};
// The gateway of every job.
inline constexpr Ip6 kGateway{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

struct ReadySpace {
  std::string link;  // the node's end of its link, which is up and has no address
  Fd space, sys;     // the namespace, and a read-only sysfs that shows it, not mounted anywhere
};

Result<void> make_directory(const std::string& directory);
// Binds a namespace and its sysfs into a new directory, where they survive this process.
Result<void> bind_directory(const std::string& directory, const ReadySpace& space);
// Removes the directory of a namespace with its mounts; there may be nothing.
Result<void> release_directory(const std::string& directory);

class ReadySpaces {
 public:
  // The links are in the node's namespace. `first` is above the number of every existing link;
  // packets of jobs have at most `mtu` bytes.
  ReadySpaces(Netlink& links, std::uint64_t first, std::uint32_t mtu)
      : links_(links), next_(first), mtu_(mtu) {}

  // Makes one more.
  Result<void> make();
  // Returns the oldest ready namespace, or makes one.
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
