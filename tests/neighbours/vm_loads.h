// What the jobs of vm_scenarios do: fio, stress-ng and iperf3, and readers of our own whose work is
// counted. Also what they need of the machine: a link to a far end, and disks that can become slow.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/neighbours/vm_machine.h"

namespace gantry::vm {

using Words = std::vector<std::string>;  // a program and its arguments

// Runs it in a process group of its own; does not return.
[[noreturn]] void become(const Words& words);
// Waits for the program; returns false if it fails. Its output is discarded.
bool done(const std::string& command);

// Reads or writes at random places of `disk`, `how` as fio has it, with so many threads.
Words fio(const std::string& disk, const std::string& how, unsigned threads,
          const std::string& bytes);
Words little_work(unsigned percent);
// Streams to the far end's server of this number (0 to kServers - 1), or from it.
Words stream(unsigned server, unsigned streams, bool back, unsigned megabits);
inline constexpr unsigned kServers = 3;

// Reads 64 KiB at random places and sleeps so that it asks for so many bytes per second.
[[noreturn]] void read_paced(const std::string& disk, double bytes_per_second, std::size_t counter,
                             unsigned seed);
// Reads the first `bytes` of the disk through the page cache again and again, at random places.
[[noreturn]] void read_cached(const std::string& disk, std::size_t bytes, std::size_t counter,
                              unsigned seed);

// A link of the machine that ends in a namespace of this machine, where iperf3 listens. Jobs have
// networks of their own, whose traffic is forwarded.
class FarEnd {
 public:
  // Requires two network cards that are connected at `megabits`; returns the reason if there are
  // none.
  static std::optional<std::string> make(unsigned megabits);
  // Makes the network with this number (1 to 200); its sysfs, with the card eth0.
  static std::string add(unsigned number);
  static void remove(unsigned number);
  static void enter(unsigned number);  // the calling process is in it from now on
  // Bytes per second of what it sends (or receives); 0 = no limit.
  static void limit(unsigned number, bool sends, std::uint64_t most);
};

// A device in front of `disk` whose requests can be made to wait.
class SlowDisk {
 public:
  explicit SlowDisk(std::string disk, unsigned number);
  [[nodiscard]] const std::string& path() const { return path_; }  // "" = it could not be made
  void delay(unsigned milliseconds);

 private:
  [[nodiscard]] std::string table(unsigned milliseconds) const;
  std::string disk_, name_, path_;
  std::uint64_t sectors_ = 0;
};

}  // namespace gantry::vm
