// Real packets from inside of jobs' namespaces, for tests.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "tests/network/hosts.h"

namespace gantry::network::test {

inline constexpr std::uint16_t kPort = 5000;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Address address_of(const std::string& text, std::uint16_t port, const char* link = nullptr);

// One part of a job, as the test sees it from inside.
struct Inside {
  JobNetwork network;
  Fd space, tcp6, tcp4, udp6, udp4;
  std::string six, four;
};

// A socket that listens, or that receives datagrams, in this thread's namespace.
Fd listener(const std::string& address, int type, std::uint16_t port = kPort);

Inside look_inside(Hosts& hosts, const JobNetwork& job);

// Which of the targets accept a connection from inside of the namespace, within the time.
std::set<std::string> reached(const Fd& space, const std::vector<std::string>& targets,
                              std::chrono::milliseconds patience, const char* link = nullptr,
                              std::uint16_t port = kPort);

// Adds what has arrived at the socket; waits until the set has `least` texts, or for two seconds.
void receive(const Fd& socket, std::set<std::string>& into, std::size_t least = 0);

std::uint64_t counter(Host& host, const std::string& name);

bool is_able();  // prints why not

}  // namespace gantry::network::test
